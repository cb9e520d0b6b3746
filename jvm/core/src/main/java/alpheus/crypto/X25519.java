// The platform's X25519, over bytes.
package alpheus.crypto;

import java.math.BigInteger;
import java.security.GeneralSecurityException;
import java.security.InvalidKeyException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.spec.NamedParameterSpec;
import java.security.spec.XECPrivateKeySpec;
import java.security.spec.XECPublicKeySpec;
import java.util.Optional;
import javax.crypto.KeyAgreement;

/** The platform's X25519 (RFC 7748), over bytes. It takes constant time. */
final class X25519 {
    static final int LENGTH = 32;

    private static final String NAME = "X25519";
    private static final byte[] BASE = base();

    private X25519() {}

    private static byte[] base() {
        byte[] point = new byte[LENGTH];
        point[0] = 9;
        return point;
    }

    /** The public half of a private key. */
    static byte[] publicHalf(SecretBytes key) {
        try (SecretBytes point = agree(key, BASE).orElseThrow()) {
            return point.expose().clone();
        }
    }

    /** Whether a public key is not of small order. Any private key shows it. */
    static boolean isOfLargeOrder(byte[] theirs) {
        try (SecretBytes any = SecretBytes.takeOver(BASE.clone())) {
            return agree(any, theirs).isPresent();
        }
    }

    /** The agreed secret; empty if their key is of small order, for which everybody gets the same. */
    static Optional<SecretBytes> agree(SecretBytes key, byte[] theirs) {
        try {
            KeyFactory factory = KeyFactory.getInstance(NAME);
            PrivateKey own = factory.generatePrivate(new XECPrivateKeySpec(NamedParameterSpec.X25519, key.expose()));
            PublicKey other = factory.generatePublic(new XECPublicKeySpec(NamedParameterSpec.X25519, coordinate(theirs)));
            KeyAgreement agreement = KeyAgreement.getInstance(NAME);
            agreement.init(own);
            agreement.doPhase(other, true);
            return Optional.of(SecretBytes.takeOver(agreement.generateSecret()));
        } catch (InvalidKeyException smallOrder) {
            return Optional.empty();
        } catch (GeneralSecurityException missing) {
            throw new IllegalStateException("this Java lacks X25519", missing);
        }
    }

    /** Little-endian; RFC 7748 ignores the highest bit. */
    private static BigInteger coordinate(byte[] bytes) {
        byte[] reversed = new byte[LENGTH];
        for (int i = 0; i < LENGTH; i++) {
            reversed[LENGTH - 1 - i] = bytes[i];
        }
        reversed[0] &= 0x7f;
        return new BigInteger(1, reversed);
    }
}
