// Opens secrets that were sealed for its public half.
package alpheus.crypto;

/** Opens secrets that were sealed for its public half. */
public final class SealingKey implements AutoCloseable {
    /** Bytes of a seed. */
    public static final int SEED = 32;

    private final SecretBytes key;
    private final byte[] own;

    private SealingKey(SecretBytes key) {
        this.key = key;
        this.own = X25519.publicHalf(key);
    }

    /**
     * The key that a seed determines.
     *
     * @param seed {@link #SEED} bytes, which may be wiped afterwards
     * @return the key
     */
    public static SealingKey fromSeed(SecretBytes seed) {
        return new SealingKey(Hpke.deriveKey(seed));
    }

    /**
     * The public half.
     *
     * @return its bytes
     */
    public byte[] publicHalf() {
        return own.clone();
    }

    /**
     * Opens a secret.
     *
     * @param label the label that it was sealed under
     * @param context what it is bound to
     * @param sealed the encapsulated key, then the ciphertext
     * @return the secret
     * @throws CryptoException if it does not open
     */
    public SecretBytes open(String label, byte[] context, byte[] sealed) throws CryptoException {
        return Hpke.open(key, own, LabelledHash.of(label, context), new byte[0], sealed);
    }

    /** Wipes the key. */
    @Override
    public void close() {
        key.close();
    }
}
