// Known answers of signatures, sealed secrets and Merkle roots.
package alpheus.crypto;

import static alpheus.Vectors.bytes;
import static alpheus.Vectors.cases;
import static alpheus.Vectors.frames;
import static alpheus.Vectors.name;
import static alpheus.Vectors.text;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import alpheus.crypto.CryptoException.Fault;
import alpheus.document.Node;
import java.util.Random;
import org.junit.jupiter.api.Test;

class PartiesVectorsTest {
    private static SecretBytes secret(Node each, String key) {
        return SecretBytes.takeOver(bytes(each, key));
    }

    @Test
    void signatures() throws CryptoException {
        for (Node each : cases("crypto/v1/signature.json")) {
            SigningKey key = new SigningKey(secret(each, "seed"));
            assertArrayEquals(bytes(each, "signature"), key.sign(text(each, "label"), bytes(each, "message")));
            verify(each);
        }
        for (String kind : "label malleated message no_point small_order_key small_order_point".split(" ")) {
            for (Node each : cases("crypto/v1/signature_bad_" + kind + ".json")) {
                CryptoException refused = assertThrows(CryptoException.class, () -> verify(each), kind);
                assertEquals(text(each, "error"), name(refused.fault()), kind);
            }
        }
        Node good = cases("crypto/v1/signature.json").get(0);
        VerifyingKey key = new VerifyingKey(bytes(good, "public"));
        assertThrows(CryptoException.class, () -> key.verify(text(good, "label"), bytes(good, "message"), new byte[63]));
    }

    private static void verify(Node each) throws CryptoException {
        new VerifyingKey(bytes(each, "public")).verify(text(each, "label"), bytes(each, "message"), bytes(each, "signature"));
    }

    @Test
    void rfc9180() throws CryptoException {
        for (Node each : cases("crypto/v1/hpke.json")) {
            byte[] recipient = SealingKey.fromSeed(secret(each, "seed")).publicHalf();
            assertArrayEquals(bytes(each, "public"), recipient);
            byte[] sealed = Hpke.seal(
                    recipient, bytes(each, "info"), bytes(each, "data"), secret(each, "secret"), secret(each, "ephemeral"));
            assertArrayEquals(bytes(each, "sealed"), sealed);
            SecretBytes opened = Hpke.open(
                    Hpke.deriveKey(secret(each, "seed")), recipient, bytes(each, "info"), bytes(each, "data"), sealed);
            assertArrayEquals(bytes(each, "secret"), opened.expose());
        }
    }

    @Test
    void sealedSecrets() throws CryptoException {
        for (Node each : cases("crypto/v1/sealed.json")) {
            assertArrayEquals(bytes(each, "secret"), open(each).expose());
            SealingPublic recipient = new SealingPublic(bytes(each, "public"));
            byte[] again = recipient.seal(text(each, "label"), bytes(each, "context"), secret(each, "secret"), new Fixed(each));
            assertArrayEquals(bytes(each, "sealed"), again);
        }
        for (String kind : "key label context bytes low_order".split(" ")) {
            for (Node each : cases("crypto/v1/sealed_bad_" + kind + ".json")) {
                CryptoException refused = assertThrows(CryptoException.class, () -> open(each), kind);
                assertEquals(text(each, "error"), name(refused.fault()), kind);
            }
        }
    }

    private static SecretBytes open(Node each) throws CryptoException {
        return SealingKey.fromSeed(secret(each, "seed")).open(text(each, "label"), bytes(each, "context"), bytes(each, "sealed"));
    }

    /** Gives the ephemeral seed of a vector. */
    private static final class Fixed extends Random {
        private static final long serialVersionUID = 1L;
        private final byte[] seed;

        Fixed(Node each) {
            this.seed = bytes(each, "ephemeral");
        }

        @Override
        public void nextBytes(byte[] out) {
            System.arraycopy(seed, 0, out, 0, out.length);
        }
    }

    @Test
    void nothingIsSealedForAKeyThatEverybodyHas() {
        for (Node each : cases("crypto/v1/agreement_bad_low_order.json")) {
            CryptoException refused =
                    assertThrows(CryptoException.class, () -> new SealingPublic(bytes(each, "their")));
            assertEquals(Fault.SEALING_KEY, refused.fault());
        }
    }

    @Test
    void merkleRoots() {
        for (Node each : cases("crypto/v1/merkle_root.json")) {
            assertArrayEquals(bytes(each, "root"), MerkleRoot.of(frames(each, "leaves")));
        }
    }
}
