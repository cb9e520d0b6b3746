// Certificates, deployments and seeds, as the Rust tools write them.
package alpheus.identity;

import static alpheus.Vectors.bytes;
import static alpheus.Vectors.cases;
import static alpheus.Vectors.has;
import static alpheus.Vectors.name;
import static alpheus.Vectors.text;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import alpheus.crypto.SecretBytes;
import alpheus.crypto.VerifyingKey;
import alpheus.document.Node;
import alpheus.identity.Certificate.Role;
import alpheus.identity.CertificateException.Fault;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.Test;

class IdentityTest {
    private static Certificate read(Node each) throws Exception {
        return Certificate.read(
                text(each, "certificate"), new VerifyingKey(bytes(each, "authority")),
                Role.valueOf(text(each, "role").toUpperCase(Locale.ROOT)));
    }

    @Test
    void certificates() throws Exception {
        for (Node each : cases("ticks/v1/certificate.json")) {
            Certificate certificate = read(each);
            assertArrayEquals(bytes(each, "digest"), certificate.digest());
            assertArrayEquals(bytes(each, "verifying"), certificate.verifying().bytes());
            SecretBytes seed = SecretBytes.takeOver(bytes(each, "seed"));
            SecretBytes other = SecretBytes.takeOver(new byte[32]);
            if (has(each, "sealing")) {
                assertArrayEquals(bytes(each, "sealing"), certificate.sealing().orElseThrow().bytes());
                assertEquals(certificate, Certificate.ofKey(List.of(certificate), seed));
                assertFault(Fault.OTHER_SEED, () -> Certificate.ofKey(List.of(certificate), other));
            } else {
                certificate.signingKey(seed).close();
                assertFault(Fault.OTHER_SEED, () -> certificate.signingKey(other));
            }
        }
        for (Node each : cases("ticks/v1/certificate_bad_content.json")) {
            CertificateException refused = assertThrows(CertificateException.class, () -> read(each), text(each, "error"));
            assertEquals(text(each, "error"), name(refused.fault()), text(each, "certificate"));
        }
    }

    @Test
    void aDeploymentNamesItsIngestKeys() throws Exception {
        Node ingest = cases("ticks/v1/certificate.json").get(1);
        String good = "{\"version\": 1, \"authority\": \"" + text(ingest, "authority")
                + "\", \"service\": \"00\", \"ingest\": [\"" + text(ingest, "certificate") + "\"]}";
        assertArrayEquals(bytes(ingest, "digest"), Deployment.read(good).ingest().get(0).digest());
        assertFault(Fault.NO_INGEST, () -> Deployment.read(good.replace("ingest", "digest")));
        assertFault(Fault.NOT_A_DEPLOYMENT, () -> Deployment.read(good.replace("\"version\": 1", "\"version\": 2")));
        assertFault(Fault.NOT_A_DEPLOYMENT, () -> Deployment.read(good.replace("authority", "author")));
        assertFault(Fault.NOT_A_DEPLOYMENT, () -> Deployment.read(good.replace(text(ingest, "authority"), "00")));
        assertFault(Fault.NOT_A_DEPLOYMENT, () -> Deployment.read("[]"));
        String device = text(cases("ticks/v1/certificate.json").get(0), "certificate");
        assertFault(Fault.ROLE, () -> Deployment.read(good.replace(text(ingest, "certificate"), device)));
    }

    @Test
    void aSeedIsReadAndItsTextOverwritten() throws Exception {
        char[] text = (" " + "0a".repeat(32) + "\n").toCharArray();
        Seeds.read(text).close();
        assertArrayEquals(new char[text.length], text);
        for (String bad : List.of("", "0a".repeat(31), "0a".repeat(33), "zz".repeat(32), "0a".repeat(31) + "0\u0661")) {
            assertFault(Fault.NOT_A_SEED, () -> Seeds.read(bad.toCharArray()));
        }
    }

    private static void assertFault(Fault fault, org.junit.jupiter.api.function.Executable run) {
        assertEquals(fault, assertThrows(CertificateException.class, run).fault());
    }
}
