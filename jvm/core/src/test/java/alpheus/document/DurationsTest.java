// Durations and fractions as people write them.
package alpheus.document;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class DurationsTest {
    @Test
    void durations() {
        Map<String, Long> good = Map.of(
                "10s", 10_000_000L, "5 min", 300_000_000L, "1hr", 3_600_000_000L, "1d", 86_400_000_000L,
                "250ms", 250_000L, "PT1H", 3_600_000_000L, "PT90M", 5_400_000_000L, "P1DT12H", 129_600_000_000L);
        good.forEach((text, micros) -> assertEquals(micros, Durations.parse(text).orElseThrow(), text));
        for (String text : new String[] {
            "", "10", "s", "0s", "-1s", "1.5h", "1 fortnight", "PT", "P", "PT1X", "9999999999999999999d", "200000d"
        }) {
            assertTrue(Durations.parse(text).isEmpty(), text);
        }
    }

    @Test
    void fractionsAreExactAndInLowestTerms() {
        Map<String, Fraction> good = Map.of(
                "1/3", Fraction.THIRD, "2/6", Fraction.THIRD, "0.2", Fraction.FIFTH, "0", Fraction.ZERO,
                "1", Fraction.ONE, "0/7", Fraction.ZERO);
        good.forEach((text, fraction) -> assertEquals(Optional.of(fraction), Fraction.parse(text), text));
        for (String text : new String[] {"", "1/0", "0/0", "4/3", "1.1", "-0.1", "a/b", "1e-12"}) {
            assertTrue(Fraction.parse(text).isEmpty(), text);
        }
    }
}
