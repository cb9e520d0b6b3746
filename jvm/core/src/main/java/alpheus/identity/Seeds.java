// Seeds in files, from which parties derive their keys.
package alpheus.identity;

import alpheus.crypto.SecretBytes;
import alpheus.identity.CertificateException.Fault;
import java.util.Arrays;

/** Seeds in files, from which parties derive their keys: 64 hexadecimal digits. */
public final class Seeds {
    private static final int LENGTH = 32;

    private Seeds() {}

    /**
     * Reads a seed. It is never in a {@code String}.
     *
     * @param text the file, which is overwritten
     * @return the seed
     * @throws CertificateException if it is not a seed
     */
    public static SecretBytes read(char[] text) throws CertificateException {
        byte[] bytes = new byte[LENGTH];
        try {
            int start = 0;
            int end = text.length;
            while (start < end && text[start] <= ' ') {
                start++;
            }
            while (end > start && text[end - 1] <= ' ') {
                end--;
            }
            boolean good = end - start == 2 * LENGTH;
            for (int i = 0; good && i < LENGTH; i++) {
                int high = digit(text[start + 2 * i]);
                int low = digit(text[start + 2 * i + 1]);
                good = high >= 0 && low >= 0;
                bytes[i] = (byte) (high << 4 | low);
            }
            if (!good) {
                Arrays.fill(bytes, (byte) 0);
                throw new CertificateException(Fault.NOT_A_SEED);
            }
            return SecretBytes.takeOver(bytes);
        } finally {
            Arrays.fill(text, '\0');
        }
    }

    private static int digit(char digit) {
        return digit < 128 ? Character.digit(digit, 16) : -1;
    }
}
