// Upper bounds on the cells of a window's sum.
package alpheus.layout;

import alpheus.layout.Statistic.Moment;
import alpheus.schema.AttributeKind;
import alpheus.schema.Budget;
import alpheus.schema.PolicyOption;
import alpheus.schema.PolicyOption.Kind;
import alpheus.schema.Schema;
import java.math.BigInteger;
import java.util.stream.Stream;

/**
 * Bounds on a cell of one statistic.
 *
 * @param event maximum magnitude in one event
 * @param noise maximum magnitude of the noise in a window
 */
record Bounds(BigInteger event, BigInteger noise) {
    /**
     * The noise exceeds this tail with a probability of 2^-64: 45 &gt; 64·ln 2 times the scale of a Laplace
     * distribution. Its variance bounds that of all noise we add.
     */
    private static final BigInteger TAIL = BigInteger.valueOf(45_000_000L);

    /** Bounds of each cell of a statistic, unless it is a random word. */
    static Bounds of(Schema schema, Statistic statistic) {
        BigInteger event = event(schema, statistic);
        return new Bounds(event, noise(schema, statistic, event));
    }

    /** Maximum magnitude of a window's sum over this many events. */
    BigInteger window(BigInteger events) {
        return event.multiply(events).add(noise);
    }

    private static BigInteger event(Schema schema, Statistic statistic) {
        if (statistic instanceof Statistic.Sum sum) {
            return magnitude(schema, sum.of());
        } else if (statistic instanceof Statistic.SumOfSquares squares) {
            return magnitude(schema, squares.of()).pow(2);
        } else if (statistic instanceof Statistic.Threshold threshold) {
            return magnitude(schema, threshold.of()).pow(threshold.order());
        } else if (statistic instanceof Statistic.By by) {
            return magnitude(schema, by.of()).pow(by.order());
        } else if (statistic instanceof Statistic.Pair pair) {
            return moment(pair.moment(), magnitude(schema, pair.x()), magnitude(schema, pair.y()));
        }
        return BigInteger.ONE;
    }

    private static BigInteger moment(Moment moment, BigInteger x, BigInteger y) {
        return switch (moment) {
            case ONE -> BigInteger.ONE;
            case X -> x;
            case Y -> y;
            case XX -> x.multiply(x);
            case XY -> x.multiply(y);
            case YY -> y.multiply(y);
        };
    }

    /** Maximum |scaled value| of an attribute; 1 if it is not a number. */
    private static BigInteger magnitude(Schema schema, int attribute) {
        if (schema.attributes().get(attribute).kind() instanceof AttributeKind.Numeric number) {
            return BigInteger.valueOf(number.min()).abs().max(BigInteger.valueOf(number.max()).abs());
        }
        return BigInteger.ONE;
    }

    /** The noise tail under the smallest ε per window that an option offers: one person's window × 45 / ε. */
    private static BigInteger noise(Schema schema, Statistic statistic, BigInteger event) {
        BigInteger person = event.multiply(BigInteger.valueOf(schema.capacity().events()));
        return noisyOptions(schema, statistic)
                .flatMap(option -> option.budget().stream())
                .mapToLong(Budget::windowMicroEpsilon)
                .min()
                .stream()
                .mapToObj(BigInteger::valueOf)
                .map(epsilon -> person.multiply(TAIL).add(epsilon).subtract(BigInteger.ONE).divide(epsilon))
                .findFirst()
                .orElse(BigInteger.ZERO);
    }

    /** Options under which the statistic may be released with noise. */
    static Stream<PolicyOption> noisyOptions(Schema schema, Statistic statistic) {
        return schema.options().stream().filter(option -> option.kind() == Kind.DP_AGGREGATE
                && statistic.attributes().stream().anyMatch(option.attributes()::contains));
    }
}
