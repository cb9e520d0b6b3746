// Independent keys from one secret: HKDF-SHA256.
package alpheus.crypto;

import java.util.Arrays;
import javax.crypto.Mac;

/** HKDF-SHA256 (RFC 5869) without salt. The info is a label and parts, each preceded by its length. */
public final class Hkdf {
    private static final int BLOCK = 32;

    private Hkdf() {}

    /**
     * A key that is bound to a label and parts. One output reveals nothing about the secret or any other
     * output.
     *
     * @param secret the secret to derive from
     * @param length bytes of the key, at most 255 · 32
     * @param label what the key is for
     * @param parts what it is bound to
     * @return the key
     */
    public static SecretBytes derive(SecretBytes secret, int length, String label, byte[]... parts) {
        if (length < 1 || length > 255 * BLOCK) {
            throw new IllegalArgumentException("HKDF-SHA256 gives 1 to 8160 bytes");
        }
        byte[] info = LabelledHash.delimited(label, parts);
        try (SecretBytes none = SecretBytes.takeOver(new byte[BLOCK]);
                SecretBytes extracted = SecretBytes.takeOver(Digests.hmac(none).doFinal(secret.expose()))) {
            return expand(Digests.hmac(extracted), info, length);
        }
    }

    static SecretBytes expand(Mac mac, byte[] info, int length) {
        byte[] out = new byte[length];
        byte[] block = new byte[0];
        for (int number = 1, at = 0; at < length; number++, at += BLOCK) {
            mac.update(block);
            mac.update(info);
            mac.update((byte) number);
            Arrays.fill(block, (byte) 0);
            block = mac.doFinal();
            System.arraycopy(block, 0, out, at, Math.min(BLOCK, length - at));
        }
        Arrays.fill(block, (byte) 0);
        return SecretBytes.takeOver(out);
    }
}
