// Converts decimal text to scaled integers without floating point.
package alpheus.document;

import alpheus.document.DecimalException.Fault;
import java.math.BigInteger;

/**
 * Converts decimal text to scaled integers. A value v of an attribute with scale s is the integer v × 10^s.
 * Parsing works on the digits of the text, so 0.285 at scale 2 is 29 and never 28.
 */
public final class Decimals {
    private static final int MAX_BYTES = 400;
    private static final int MAX_EXPONENT = 400;
    /** Any number with this many digits fits in 64 bits. */
    private static final int PLAIN_DIGITS = 18;
    private static final BigInteger BEYOND = BigInteger.ONE.shiftLeft(64);

    private final boolean negative;
    /** The digits alone, in order. */
    private final char[] digits;
    private final int count;
    /** The number is ±digits × 10^exponent. */
    private final int exponent;

    private Decimals(boolean negative, char[] digits, int count, int exponent) {
        this.negative = negative;
        this.digits = digits;
        this.count = count;
        this.exponent = exponent;
    }

    /**
     * Reads text × 10^scale, rounding digits beyond the scale half away from zero.
     *
     * @param text the number
     * @param scale decimal places
     * @return the scaled integer
     * @throws DecimalException if it is no number, or too large
     */
    public static long parseScaled(String text, int scale) throws DecimalException {
        return read(text).scaled(scale, false);
    }

    /**
     * Reads text × 10^scale, and rejects digits beyond the scale.
     *
     * @param text the number
     * @param scale decimal places
     * @return the scaled integer
     * @throws DecimalException if it is no number, too large, or too fine
     */
    public static long parseExact(String text, int scale) throws DecimalException {
        return read(text).scaled(scale, true);
    }

    private static Decimals read(String text) throws DecimalException {
        if (text.isEmpty()) {
            throw new DecimalException(Fault.EMPTY, 0);
        }
        if (text.length() > MAX_BYTES) {
            throw new DecimalException(Fault.MALFORMED, MAX_BYTES + 1);
        }
        char first = text.charAt(0);
        int at = first == '+' || first == '-' ? 1 : 0;
        char[] digits = new char[text.length()];
        int count = 0;
        int behind = 0;
        boolean point = false;
        for (; at < text.length(); at++) {
            char c = text.charAt(at);
            if (c >= '0' && c <= '9') {
                digits[count++] = c;
                behind += point ? 1 : 0;
            } else if (c == '.' && !point) {
                point = true;
            } else if ((c == 'e' || c == 'E') && count > 0) {
                break;
            } else {
                throw new DecimalException(Fault.MALFORMED, at + 1);
            }
        }
        if (count == 0) {
            throw new DecimalException(Fault.MALFORMED, at + 1);
        }
        return new Decimals(first == '-', digits, count, exponent(text, at) - behind);
    }

    /** Reads the exponent after the digits, if there is one: e and a whole number. */
    private static int exponent(String text, int at) throws DecimalException {
        if (at + 1 > text.length()) {
            return 0;
        }
        String written = text.substring(at + 1);
        if (!written.matches("[+-]?[0-9]{1,19}")) {
            throw new DecimalException(Fault.MALFORMED, at + 2);
        }
        BigInteger exponent = new BigInteger(written);
        if (exponent.abs().compareTo(BigInteger.valueOf(MAX_EXPONENT)) > 0) {
            throw new DecimalException(Fault.MALFORMED, at + 2);
        }
        return exponent.intValueExact();
    }

    private long scaled(int scale, boolean exact) throws DecimalException {
        // Number of digits before the decimal point of the scaled number.
        int kept = count + exponent + scale;
        int split = Math.min(Math.max(kept, 0), count);
        if (exact && !onlyZeros(split)) {
            // A number that is too large is reported as too large first.
            magnitude(split, kept, scale);
            throw new DecimalException(Fault.TOO_FINE, scale);
        }
        boolean up = kept >= 0 && split < count && digits[split] >= '5';
        if (kept <= PLAIN_DIGITS) {
            long small = 0;
            for (int i = 0; i < kept; i++) {
                small = small * 10 + (i < count ? digits[i] - '0' : 0);
            }
            small += up ? 1 : 0;
            return negative ? -small : small;
        }
        BigInteger magnitude = magnitude(split, kept, scale).add(up ? BigInteger.ONE : BigInteger.ZERO);
        BigInteger signed = negative ? magnitude.negate() : magnitude;
        if (signed.bitLength() > 63) {
            throw new DecimalException(Fault.TOO_LARGE, scale);
        }
        return signed.longValueExact();
    }

    private boolean onlyZeros(int from) {
        for (int i = from; i < count; i++) {
            if (digits[i] != '0') {
                return false;
            }
        }
        return true;
    }

    private BigInteger magnitude(int split, int kept, int scale) throws DecimalException {
        BigInteger magnitude = BigInteger.ZERO;
        for (int i = 0; i < kept; i++) {
            int digit = i < split ? digits[i] - '0' : 0;
            magnitude = magnitude.multiply(BigInteger.TEN).add(BigInteger.valueOf(digit));
            if (magnitude.compareTo(BEYOND) > 0) {
                throw new DecimalException(Fault.TOO_LARGE, scale);
            }
        }
        return magnitude;
    }
}
