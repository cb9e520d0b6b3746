// The deployment that a party belongs to.
package alpheus.identity;

import alpheus.crypto.CryptoException;
import alpheus.crypto.VerifyingKey;
import alpheus.document.DocumentException;
import alpheus.document.Node;
import alpheus.document.Value.Scalar;
import alpheus.identity.Certificate.Role;
import alpheus.identity.CertificateException.Fault;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/**
 * The deployment that a party belongs to: {@code deployment.json}, the same file for all.
 *
 * @param authority the key of its authority
 * @param ingest certificates of the service's ingest keys: the one that devices use, then retired ones
 */
public record Deployment(VerifyingKey authority, List<Certificate> ingest) {
    private static final long VERSION = 1;

    /**
     * Reads the file, and checks that the authority signed the ingest keys' certificates.
     *
     * @param text the file
     * @return the deployment
     * @throws CertificateException if it is not such a file, or names no ingest key
     */
    public static Deployment read(String text) throws CertificateException {
        try {
            Node file = Node.fromJson(text);
            needed(file, "version").integer(VERSION, VERSION);
            VerifyingKey authority = new VerifyingKey(HexFormat.of().parseHex(needed(file, "authority").text()));
            List<Certificate> ingest = new ArrayList<>();
            if (file.map().containsKey("ingest")) {
                for (Node each : file.map().get("ingest").list()) {
                    if (!(each.value() instanceof Scalar scalar)) {
                        throw new CertificateException(Fault.NOT_A_DEPLOYMENT);
                    }
                    ingest.add(Certificate.read(scalar.text(), authority, Role.INGEST));
                }
            }
            if (ingest.isEmpty()) {
                throw new CertificateException(Fault.NO_INGEST);
            }
            return new Deployment(authority, List.copyOf(ingest));
        } catch (DocumentException | CryptoException | IllegalArgumentException refused) {
            throw new CertificateException(Fault.NOT_A_DEPLOYMENT);
        }
    }

    private static Node needed(Node file, String key) throws DocumentException, CertificateException {
        Node found = file.map().get(key);
        if (found == null) {
            throw new CertificateException(Fault.NOT_A_DEPLOYMENT);
        }
        return found;
    }
}
