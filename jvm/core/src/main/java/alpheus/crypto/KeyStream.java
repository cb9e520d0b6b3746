// Counter mode for key vectors: many blocks under one key.
package alpheus.crypto;

import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import javax.crypto.Cipher;
import javax.crypto.spec.IvParameterSpec;

/**
 * AES-128 in counter mode: AES(first), AES(first + 1), … with a counter of 128 bits, big-endian. The
 * platform computes many blocks at a time with the processor's AES instructions. Not safe for concurrent
 * use.
 */
public final class KeyStream implements AutoCloseable {
    private static final int BLOCK = 16;
    private static final byte[] ZEROS = new byte[8 * 8192 + BLOCK];

    private final Cipher cipher = Digests.counterMode();
    private final WipedKey key;
    private final byte[] first = new byte[BLOCK];

    /**
     * Expands a key.
     *
     * @param key 16 bytes, which may be wiped afterwards
     */
    public KeyStream(SecretBytes key) {
        this.key = new WipedKey("AES", key);
    }

    /**
     * Writes key stream.
     *
     * @param high the counter's first eight bytes
     * @param low its last eight
     * @param out the output, filled from its start
     * @param length number of bytes, at most 64 KiB
     */
    public void fill(long high, long low, byte[] out, int length) {
        ByteBuffer.wrap(first).putLong(high).putLong(low);
        try {
            cipher.init(Cipher.ENCRYPT_MODE, key, new IvParameterSpec(first));
            cipher.doFinal(ZEROS, 0, length, out, 0);
        } catch (GeneralSecurityException broken) {
            throw new IllegalStateException("AES failed with valid arguments", broken);
        }
    }

    /** Wipes the key. */
    @Override
    public void close() {
        key.close();
    }
}
