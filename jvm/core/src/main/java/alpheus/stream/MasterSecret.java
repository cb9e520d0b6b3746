// The secret that a producer shares with its owner's controller.
package alpheus.stream;

import alpheus.crypto.SecretBytes;

/**
 * The secret that a producer shares with its owner's controller and nobody else. Deleting every copy of it
 * erases the stream's data everywhere.
 */
public final class MasterSecret implements AutoCloseable {
    /** Bytes of a secret. */
    public static final int LENGTH = 32;

    private final SecretBytes secret;

    /**
     * Takes ownership of a secret.
     *
     * @param secret {@link #LENGTH} bytes
     */
    public MasterSecret(SecretBytes secret) {
        if (secret.length() != LENGTH) {
            throw new IllegalArgumentException("a master secret has " + LENGTH + " bytes");
        }
        this.secret = secret;
    }

    SecretBytes secret() {
        return secret;
    }

    /** Wipes it. */
    @Override
    public void close() {
        secret.close();
    }
}
