// A secret: bytes that are wiped.
package alpheus.crypto;

import java.util.Arrays;

/**
 * Bytes that nobody else may know. It cannot be written, compared or shown: it has no {@code toString},
 * no {@code equals} and no serial form of its own. {@link #close()} overwrites it.
 *
 * <p>What Java cannot promise: the collector may have moved the bytes before, and the platform's
 * ciphers keep expanded copies of keys until they are collected.
 */
public final class SecretBytes implements AutoCloseable {
    private final byte[] bytes;
    private boolean wiped;

    private SecretBytes(byte[] bytes) {
        this.bytes = bytes;
    }

    /**
     * Takes an array over: whoever gives it keeps no other reference.
     *
     * @param bytes the secret
     * @return the secret
     */
    public static SecretBytes takeOver(byte[] bytes) {
        return new SecretBytes(bytes);
    }

    /**
     * A second holder of the same secret, which is wiped on its own.
     *
     * @return the copy
     */
    public SecretBytes duplicate() {
        return new SecretBytes(expose().clone());
    }

    /**
     * How many bytes there are.
     *
     * @return the number
     */
    public int length() {
        return bytes.length;
    }

    /** The bytes themselves, not a copy. */
    byte[] expose() {
        if (wiped) {
            throw new IllegalStateException("this secret was wiped");
        }
        return bytes;
    }

    /** Overwrites it. It cannot be used any more. */
    @Override
    public void close() {
        wiped = true;
        Arrays.fill(bytes, (byte) 0);
    }
}
