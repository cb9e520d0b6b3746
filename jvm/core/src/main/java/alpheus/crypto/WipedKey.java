// A key as the platform's ciphers take it, wiped after use.
package alpheus.crypto;

import java.io.InvalidObjectException;
import java.io.ObjectOutputStream;
import javax.crypto.SecretKey;

/** A key in the form that the platform's ciphers take. It is wiped after use and never serialized. */
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

    /** A copy. The platform's ciphers wipe it themselves. */
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
        throw new InvalidObjectException("a key is never serialized");
    }
}
