// A key as the platform's ciphers take it, wiped after use.
package alpheus.crypto;

import java.io.InvalidObjectException;
import java.io.ObjectOutputStream;
import javax.crypto.SecretKey;

/** A key as the platform's ciphers take it. It is wiped, and never written. */
final class WipedKey implements SecretKey, AutoCloseable {
    private static final long serialVersionUID = 1L;

    private final String algorithm;
    private final transient SecretBytes key;

    WipedKey(String algorithm, SecretBytes key) {
        this.algorithm = algorithm;
        this.key = key.duplicate();
    }

    @Override
    public String getAlgorithm() {
        return algorithm;
    }

    @Override
    public String getFormat() {
        return "RAW";
    }

    /** A copy, which the platform's ciphers wipe themselves. */
    @Override
    public byte[] getEncoded() {
        return key.expose().clone();
    }

    @Override
    public void destroy() {
        key.close();
    }

    @Override
    public void close() {
        destroy();
    }

    private void writeObject(ObjectOutputStream out) throws InvalidObjectException {
        throw new InvalidObjectException("a key is never written");
    }
}
