// A key that secrets are sealed for.
package alpheus.crypto;

import alpheus.crypto.CryptoException.Fault;
import java.util.random.RandomGenerator;

/** A public key that secrets are sealed for, so that only its holder opens them. */
public final class SealingPublic {
    /** Bytes of a key. */
    public static final int LENGTH = X25519.LENGTH;

    private final byte[] bytes;

    /**
     * Checks that bytes are a key.
     *
     * @param bytes {@link #LENGTH} of them
     * @throws CryptoException if they are not as many, or of small order, for which everybody could open
     *     what is sealed
     */
    public SealingPublic(byte[] bytes) throws CryptoException {
        if (bytes.length != LENGTH || !X25519.isOfLargeOrder(bytes)) {
            throw new CryptoException(Fault.SEALING_KEY);
        }
        this.bytes = bytes.clone();
    }

    /**
     * Its bytes.
     *
     * @return a copy
     */
    public byte[] bytes() {
        return bytes.clone();
    }

    /**
     * Seals a secret. It opens only under the same label and context. Anyone who learns the output of
     * {@code random} can open it.
     *
     * @param label what is sealed, with its version
     * @param context what it is bound to
     * @param secret the secret
     * @param random gives 32 secret bytes
     * @return the encapsulated key, then the ciphertext: 48 bytes more than the secret
     */
    public byte[] seal(String label, byte[] context, SecretBytes secret, RandomGenerator random) {
        byte[] seed = new byte[X25519.LENGTH];
        random.nextBytes(seed);
        try (SecretBytes ephemeral = SecretBytes.takeOver(seed)) {
            return Hpke.seal(bytes, LabelledHash.of(label, context), new byte[0], secret, ephemeral);
        }
    }
}
