// The statistic that the cells of a field sum.
package alpheus.layout;

import java.util.List;

/**
 * The statistic that the cells of a field sum. Numbers are positions of attributes, or of aggregations of
 * an attribute.
 */
public sealed interface Statistic {
    /** Events; shared by all mandatory attributes. */
    record EventCount() implements Statistic {}

    /**
     * Values of an attribute that were present.
     *
     * @param of the attribute
     */
    record Count(int of) implements Statistic {}

    /**
     * The value.
     *
     * @param of the attribute
     */
    record Sum(int of) implements Statistic {}

    /**
     * Its square.
     *
     * @param of the attribute
     */
    record SumOfSquares(int of) implements Statistic {}

    /**
     * One-hot bins.
     *
     * @param of the attribute
     * @param aggregation position among its aggregations
     */
    record Histogram(int of, int aggregation) implements Statistic {}

    /**
     * A moment of y and x over events that have both.
     *
     * @param y the explained attribute
     * @param x the explaining attribute
     * @param moment which
     */
    record Pair(int y, int x, Moment moment) implements Statistic {}

    /**
     * Moments of one attribute for each bucket of another.
     *
     * @param of the attribute that is summed
     * @param by the attribute whose buckets these are
     * @param aggregation position among the aggregations of {@code of}
     * @param order 0: count, 1: sum, 2: sum of squares
     */
    record By(int of, int by, int aggregation, int order) implements Statistic {}

    /**
     * Two cells, at or above the threshold and below.
     *
     * @param of the attribute
     * @param aggregation position among its aggregations
     * @param order 0: count, 1: sum
     */
    record Threshold(int of, int aggregation, int order) implements Statistic {}

    /**
     * A random word where the value is true.
     *
     * @param of the attribute
     */
    record Any(int of) implements Statistic {}

    /**
     * A random word where the value is false.
     *
     * @param of the attribute
     */
    record All(int of) implements Statistic {}

    /**
     * A count-min sketch, row by row.
     *
     * @param of the attribute
     * @param aggregation position among its aggregations
     */
    record Sketch(int of, int aggregation) implements Statistic {}

    /** A product of at most two values. */
    enum Moment {
        /** 1. */
        ONE,
        /** x. */
        X,
        /** y. */
        Y,
        /** x². */
        XX,
        /** xy. */
        XY,
        /** y². */
        YY
    }

    /**
     * The attributes that it derives from. None for the event count, which borders reveal anyway.
     *
     * @return their positions, that of the sum first
     */
    default List<Integer> attributes() {
        if (this instanceof Count count) {
            return List.of(count.of());
        } else if (this instanceof Sum sum) {
            return List.of(sum.of());
        } else if (this instanceof SumOfSquares squares) {
            return List.of(squares.of());
        } else if (this instanceof Histogram histogram) {
            return List.of(histogram.of());
        } else if (this instanceof Pair pair) {
            return List.of(pair.y(), pair.x());
        } else if (this instanceof By by) {
            return List.of(by.of(), by.by());
        } else if (this instanceof Threshold threshold) {
            return List.of(threshold.of());
        } else if (this instanceof Any any) {
            return List.of(any.of());
        } else if (this instanceof All all) {
            return List.of(all.of());
        } else if (this instanceof Sketch sketch) {
            return List.of(sketch.of());
        }
        return List.of();
    }
}
