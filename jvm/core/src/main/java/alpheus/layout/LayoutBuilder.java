// Lays out the statistics of a schema in words.
package alpheus.layout;

import alpheus.layout.Statistic.Moment;
import alpheus.schema.Aggregation;
import alpheus.schema.Attribute;
import alpheus.schema.Edges;
import alpheus.schema.Schema;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Lays out one schema. */
final class LayoutBuilder {
    /** The largest sum that one word holds, in two's complement. */
    private static final BigInteger WORD = BigInteger.ONE.shiftLeft(63);

    private static final int WORD_BITS = 64;
    private static final int MAX_POSITION = 0xffff;

    private final Schema schema;
    /** All statistics, each once, with their numbers of cells. */
    private final Map<Statistic, Integer> statistics = new LinkedHashMap<>();

    LayoutBuilder(Schema schema) {
        this.schema = schema;
    }

    Layout build() throws LayoutException {
        collect();
        List<Field> fields = new ArrayList<>();
        int next = 0;
        for (Map.Entry<Statistic, Integer> entry : statistics.entrySet()) {
            int cells = entry.getValue();
            Packing packing = packing(entry.getKey(), cells);
            if (next > MAX_POSITION || cells > MAX_POSITION) {
                throw tooMany(next > MAX_POSITION ? next : next + cells);
            }
            Field field = new Field(entry.getKey(), next, cells, packing);
            next += field.words();
            fields.add(field);
        }
        if (next + 1 > Layout.MAX_WORDS) {
            throw tooMany(next + 1);
        }
        return new Layout(List.copyOf(fields), next + 1);
    }

    private static LayoutException tooMany(int words) {
        return new LayoutException(LayoutException.Fault.TOO_MANY_WORDS, words);
    }

    private void collect() {
        for (int a = 0; a < schema.attributes().size(); a++) {
            Attribute attribute = schema.attributes().get(a);
            for (int k = 0; k < attribute.aggregations().size(); k++) {
                offer(a, k, attribute.aggregations().get(k));
            }
        }
        // The shared count belongs to no attribute, so it comes last.
        Integer shared = statistics.remove(new Statistic.EventCount());
        if (shared != null) {
            statistics.put(new Statistic.EventCount(), shared);
        }
    }

    private void one(Statistic statistic) {
        statistics.putIfAbsent(statistic, 1);
    }

    private void many(Statistic statistic, int cells) {
        statistics.putIfAbsent(statistic, cells);
    }

    private void offer(int a, int k, Aggregation offered) {
        if (offered instanceof Aggregation.Simple simple) {
            simple(a, simple);
        } else if (offered instanceof Aggregation.Histogram histogram) {
            many(new Statistic.Histogram(a, k), histogram.edges().bins());
        } else if (offered instanceof Aggregation.Regression regression) {
            pair(a, regression.x(), regression.rSquared());
        } else if (offered instanceof Aggregation.By by) {
            for (int order = 0; order <= by.order(); order++) {
                many(new Statistic.By(a, by.attribute(), k, order), by.edges().bins());
            }
        } else if (offered instanceof Aggregation.Threshold) {
            many(new Statistic.Threshold(a, k, 0), 2);
            many(new Statistic.Threshold(a, k, 1), 2);
        } else if (offered instanceof Aggregation.Sketch sketch) {
            many(new Statistic.Sketch(a, k), sketch.depth() * sketch.width());
        }
    }

    private void simple(int a, Aggregation.Simple offered) {
        boolean optional = schema.attributes().get(a).optional();
        Statistic count =
                schema.sharedCount() && !optional ? new Statistic.EventCount() : new Statistic.Count(a);
        switch (offered) {
            case COUNT -> one(count);
            case SUM -> {
                one(new Statistic.Sum(a));
                // Without its count an empty sum would look like a sum of zero.
                if (optional) {
                    one(count);
                }
            }
            case MEAN -> {
                one(new Statistic.Sum(a));
                one(count);
            }
            case VARIANCE -> {
                one(new Statistic.Sum(a));
                one(new Statistic.SumOfSquares(a));
                one(count);
            }
            case ANY -> one(new Statistic.Any(a));
            case ALL -> one(new Statistic.All(a));
            default -> { }
        }
    }

    /** The moments are over events that have both values, so they are not shared with the attributes' own. */
    private void pair(int y, int x, boolean rSquared) {
        for (Moment moment : List.of(Moment.ONE, Moment.X, Moment.Y, Moment.XX, Moment.XY)) {
            one(new Statistic.Pair(y, x, moment));
        }
        if (rSquared) {
            one(new Statistic.Pair(y, x, Moment.YY));
        }
    }

    /** How the cells of one statistic are packed into words. */
    private Packing packing(Statistic statistic, int cells) throws LayoutException {
        if (statistic instanceof Statistic.Any || statistic instanceof Statistic.All) {
            return new Packing.Whole();
        }
        Bounds bound = Bounds.of(schema, statistic);
        BigInteger events = BigInteger.valueOf(schema.capacity().population())
                .multiply(BigInteger.valueOf(schema.capacity().events()));
        BigInteger sum = bound.window(events);
        if (sum.compareTo(WORD) < 0) {
            return mayShare(statistic) ? digits(sum, cells) : new Packing.Whole();
        }
        if (fitsLimbs(bound, events)) {
            return new Packing.Limbs();
        }
        int attribute = statistic.attributes().isEmpty() ? 0 : statistic.attributes().get(0);
        throw new LayoutException(LayoutException.Fault.SUM_TOO_LARGE, attribute);
    }

    /**
     * Whether the cells of a field may share words. They may if they are the bins of a grid, and no offered
     * option sums them or adds noise to them. (Thresholds and sketches are bins too, but queries ask for
     * single cells.)
     */
    private boolean mayShare(Statistic statistic) {
        int bucketed;
        Edges grid;
        if (statistic instanceof Statistic.Histogram histogram) {
            bucketed = histogram.of();
            grid = ((Aggregation.Histogram) aggregation(histogram.of(), histogram.aggregation())).edges();
        } else if (statistic instanceof Statistic.By by) {
            bucketed = by.by();
            grid = ((Aggregation.By) aggregation(by.of(), by.aggregation())).edges();
        } else {
            return false;
        }
        boolean addedUp = schema.options().stream()
                .flatMap(option -> option.generalise().stream())
                .anyMatch(coarse -> coarse.attribute() == bucketed && !coarse.isAsFineAs(grid));
        return !addedUp && Bounds.noisyOptions(schema, statistic).findAny().isEmpty();
    }

    private Aggregation aggregation(int attribute, int position) {
        return schema.attributes().get(attribute).aggregations().get(position);
    }

    /** Uses as few words as the digits allow, and then the widest digits that fit into these words. */
    private static Packing digits(BigInteger sum, int cells) {
        int narrowest = sum.bitLength() + 1;
        int fit = Math.max(WORD_BITS / narrowest, 1);
        int words = Math.max((cells + fit - 1) / fit, 1);
        int perWord = (cells + words - 1) / words;
        return perWord > 1 ? new Packing.Digits(WORD_BITS / perWord, perWord) : new Packing.Whole();
    }

    /**
     * Whether both halves' sums fit a word: the low ones are below 2^32 each, the high ones at most
     * event / 2^32 + 1 in magnitude, and noise adds to either.
     */
    private static boolean fitsLimbs(Bounds bound, BigInteger events) {
        BigInteger low = events.shiftLeft(32);
        BigInteger high = bound.event().shiftRight(32).add(BigInteger.ONE).multiply(events);
        BigInteger noise = bound.noise().shiftRight(32).add(BigInteger.ONE);
        return low.compareTo(WORD) < 0 && high.add(noise).compareTo(WORD) < 0;
    }
}
