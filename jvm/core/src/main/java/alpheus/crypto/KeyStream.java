// Counter mode for key vectors: many blocks under one key.
package alpheus.crypto;

import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import javax.crypto.Cipher;
import javax.crypto.spec.IvParameterSpec;

/**
 * AES-128 in counter mode: AES(first), AES(first + 1), … with a counter of 128 bits, big-endian. The
 * platform computes it with the processor's AES instructions, many blocks at a time. No thread may share
 * one.
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
     * @param out where the bytes go, from its start on
     * @param length how many, at most 64 KiB
     */
    public void fill(long high, long low, byte[] out, int length) {
        ByteBuffer.wrap(first).putLong(high).putLong(low);
        try {
            cipher.init(Cipher.ENCRYPT_MODE, key, new IvParameterSpec(first));
            cipher.doFinal(ZEROS, 0, length, out, 0);
        } catch (GeneralSecurityException broken) {
            throw new IllegalStateException("this Java's AES does not take its own arguments", broken);
        }
    }

    /** Wipes the key. */
    @Override
    public void close() {
        key.close();
    }
}
