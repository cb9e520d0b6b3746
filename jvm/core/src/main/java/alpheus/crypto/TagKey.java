// Message authentication: HMAC-SHA256, cut to 16 bytes.
package alpheus.crypto;

import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.Arrays;
import javax.crypto.Mac;

/**
 * A key for tags of 16 bytes. Each attempt to forge one succeeds with a probability of 2^-128. Not safe for
 * concurrent use.
 */
public final class TagKey {
    /** Bytes of a tag. */
    public static final int TAG = 16;

    private final Mac mac;

    /**
     * Expands a key.
     *
     * @param key the key, which may be wiped afterwards
     */
    public TagKey(SecretBytes key) {
        mac = Digests.hmac(key);
    }

    /**
     * The tag of a label and parts, each preceded by its length.
     *
     * @param label the label
     * @param parts the parts
     * @return 16 bytes
     */
    public byte[] tag(String label, byte[]... parts) {
        return Arrays.copyOf(mac.doFinal(LabelledHash.delimited(label, parts)), TAG);
    }

    /**
     * The tag of a label, a part, and the start of an array, which is not copied.
     *
     * @param label the label
     * @param part the part
     * @param bytes the array
     * @param length how much of it is the last part
     * @return 16 bytes
     */
    public byte[] tagOfStart(String label, byte[] part, byte[] bytes, int length) {
        mac.update(LabelledHash.delimited(label, part));
        mac.update(ByteBuffer.allocate(Long.BYTES).putLong(0, length));
        mac.update(bytes, 0, length);
        return Arrays.copyOf(mac.doFinal(), TAG);
    }

    /**
     * Whether a tag was made for this message with this key. Takes constant time.
     *
     * @param tag the tag
     * @param label the label
     * @param parts the parts
     * @return true if so
     */
    public boolean verifies(byte[] tag, String label, byte[]... parts) {
        return MessageDigest.isEqual(tag(label, parts), tag);
    }
}
