// An exact fraction between 0 and 1.
package alpheus.document;

import java.math.BigInteger;
import java.util.Optional;

/**
 * An exact fraction between 0 and 1, in lowest terms. Both numbers are below 2^32.
 *
 * @param numerator the numerator
 * @param denominator the denominator, never 0
 */
public record Fraction(long numerator, long denominator) {
    /** 0. */
    public static final Fraction ZERO = new Fraction(0, 1);
    /** 1. */
    public static final Fraction ONE = new Fraction(1, 1);
    /** The default share of colluding controllers. */
    public static final Fraction THIRD = new Fraction(1, 3);
    /** The default share that may drop out. */
    public static final Fraction FIFTH = new Fraction(1, 5);

    private static final long MAX = 0xffff_ffffL;
    private static final int PLACES = 9;
    private static final long UNITS = 1_000_000_000L;

    /**
     * Reads {@code 1/3} or {@code 0.2}.
     *
     * @param text the text
     * @return empty if it is not such a fraction
     */
    public static Optional<Fraction> parse(String text) {
        int line = text.indexOf('/');
        long numerator = line < 0 ? scaled(text) : whole(text.substring(0, line).strip());
        long denominator = line < 0 ? UNITS : whole(text.substring(line + 1).strip());
        if (numerator < 0 || denominator <= 0 || numerator > denominator) {
            return Optional.empty();
        }
        long divisor = BigInteger.valueOf(numerator).gcd(BigInteger.valueOf(denominator)).longValueExact();
        return Optional.of(new Fraction(numerator / divisor, denominator / divisor));
    }

    private static long scaled(String text) {
        try {
            long number = Decimals.parseExact(text, PLACES);
            return number <= MAX ? number : -1;
        } catch (DecimalException refused) {
            return -1;
        }
    }

    /** A number below 2^32, or −1. */
    private static long whole(String text) {
        if (!text.matches("\\+?[0-9]{1,400}")) {
            return -1;
        }
        BigInteger number = new BigInteger(text);
        return number.bitLength() <= 32 ? number.longValueExact() : -1;
    }
}
