// Secret bytes that are wiped after use.
package alpheus.crypto;

import java.util.Arrays;

/**
 * Secret bytes. They cannot be printed, compared or serialized: there is no {@code toString}, no {@code
 * equals} and no serial form. {@link #close()} overwrites them.
 *
 * <p>Java cannot guarantee that no copy remains. The garbage collector may have moved the bytes, and the
 * platform's ciphers keep expanded keys until they are collected.
 */
public final class SecretBytes implements AutoCloseable {
    private final byte[] bytes;
    private boolean wiped;

    private SecretBytes(byte[] bytes) {
        this.bytes = bytes;
    }

    /**
     * Takes ownership of an array. The caller must keep no other reference.
     *
     * @param bytes the secret
     * @return the secret
     */
    public static SecretBytes takeOver(byte[] bytes) {
        return new SecretBytes(bytes);
    }

    /**
     * A copy of the secret, which must be closed separately.
     *
     * @return the copy
     */
    public SecretBytes duplicate() {
        return new SecretBytes(expose().clone());
    }

    /**
     * The number of bytes.
     *
     * @return the number
     */
    public int length() {
        return bytes.length;
    }

    /** The bytes themselves, not a copy. */
    byte[] expose() {
        if (wiped) {
            throw new IllegalStateException("this secret has been wiped");
        }
        return bytes;
    }

    /** Overwrites the secret. It cannot be used afterwards. */
    @Override
    public void close() {
        wiped = true;
        Arrays.fill(bytes, (byte) 0);
    }
}
