// Decimal text is parsed exactly.
package alpheus.document;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import alpheus.document.DecimalException.Fault;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.Random;
import org.junit.jupiter.api.Test;

class DecimalsTest {
    private static void scaled(long expected, String text, int scale) throws DecimalException {
        assertEquals(expected, Decimals.parseScaled(text, scale), text + " at " + scale);
    }

    @Test
    void roundsHalfAwayFromZeroOnTheText() throws DecimalException {
        scaled(29, "0.285", 2);
        scaled(-29, "-0.285", 2);
        scaled(28, "0.2849999999999999999999999", 2);
        scaled(3, "2.5", 0);
        scaled(-3, "-2.5", 0);
        scaled(1, ".5", 0);
        scaled(0, "0.05", 0);
        scaled(50, "5.", 1);
        scaled(70, "+7", 1);
        scaled(100_000, "1e3", 2);
        scaled(123, "12.34e-1", 2);
        scaled(1_000_000_000, "1e-9", 18);
        scaled(0, "1e-300", 2);
        scaled(Long.MAX_VALUE, "9223372036854775807", 0);
        scaled(Long.MIN_VALUE, "-9223372036854775808", 0);
        scaled(Long.MIN_VALUE, "-9223372036854775808.4", 0);
        assertEquals(12, Decimals.parseExact("1.20", 1));
    }

    @Test
    void rejectsTextThatIsNotANumberOrTooLarge() {
        refused(Fault.EMPTY, "", 0);
        for (String text : new String[] {"-", ".", "1.2.3", "1e", "0x1", "1 ", "\u0661", "NaN", "e5", "1e401"}) {
            refused(Fault.MALFORMED, text, 0);
        }
        for (String text : new String[] {"9223372036854775807.5", "-9223372036854775809", "1e19", "1e400"}) {
            refused(Fault.TOO_LARGE, text, 0);
        }
        refused(Fault.TOO_LARGE, "1", 19);
        assertEquals(
                Fault.TOO_FINE,
                assertThrows(DecimalException.class, () -> Decimals.parseExact("1.25", 1)).fault());
    }

    private static void refused(Fault fault, String text, int scale) {
        assertEquals(
                fault, assertThrows(DecimalException.class, () -> Decimals.parseScaled(text, scale), text).fault());
    }

    @Test
    void agreesWithExactArithmetic() throws DecimalException {
        Random random = new Random(1);
        for (int i = 0; i < 20_000; i++) {
            String digits = (random.nextBoolean() ? "-" : "") + new java.math.BigInteger(1 + random.nextInt(62), random);
            String text = digits + "e" + (random.nextInt(40) - 30);
            int scale = random.nextInt(19);
            BigDecimal value = new BigDecimal(text).scaleByPowerOfTen(scale).setScale(0, RoundingMode.HALF_UP);
            if (value.unscaledValue().bitLength() <= 63) {
                scaled(value.longValueExact(), text, scale);
            } else {
                refused(Fault.TOO_LARGE, text, scale);
            }
        }
    }
}
