// SHA-256 over a label and parts.
package alpheus.crypto;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;

/**
 * SHA-256 over a label and parts, each preceded by its length as eight big-endian bytes, so that no two
 * lists of parts hash alike.
 */
public final class LabelledHash {
    private LabelledHash() {}

    /**
     * The digest.
     *
     * @param label what is hashed, with its version
     * @param parts the parts, in order
     * @return 32 bytes
     */
    public static byte[] of(String label, byte[]... parts) {
        MessageDigest hash = Digests.sha256();
        hash.update(delimited(label, parts));
        return hash.digest();
    }

    /**
     * Label and parts, each preceded by its length.
     *
     * @param label the label
     * @param parts the parts, in order
     * @return the bytes
     */
    static byte[] delimited(String label, byte[]... parts) {
        byte[] name = label.getBytes(StandardCharsets.UTF_8);
        int length = Long.BYTES + name.length;
        for (byte[] part : parts) {
            length += Long.BYTES + part.length;
        }
        ByteBuffer out = ByteBuffer.allocate(length).putLong(name.length).put(name);
        for (byte[] part : parts) {
            out.putLong(part.length).put(part);
        }
        return out.array();
    }
}
