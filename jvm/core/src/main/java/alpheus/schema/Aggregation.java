// The encodings that an attribute may offer.
package alpheus.schema;

/** An encoding that an attribute offers. Attributes are positions in the schema; edges are scaled. */
public sealed interface Aggregation {
    /** Aggregations without parameters. */
    enum Simple implements Aggregation {
        /** {@code [1]}. */
        COUNT,
        /** {@code [x]}. */
        SUM,
        /** {@code [x, 1]}. */
        MEAN,
        /** {@code [x, x², 1]}. */
        VARIANCE,
        /** Whether any value was true: a random word if so, else zero. */
        ANY,
        /** Whether all values were true. */
        ALL
    }

    /**
     * One-hot over edges.
     *
     * @param edges the bins
     */
    record Histogram(Edges edges) implements Aggregation {}

    /**
     * {@code [1, x, y, x², xy]} with this attribute as y, and y² for R².
     *
     * @param x the explaining attribute
     * @param rSquared whether y² is encoded
     */
    record Regression(int x, boolean rSquared) implements Aggregation {}

    /**
     * Moments of this attribute for each bucket of another.
     *
     * @param attribute the attribute whose buckets these are
     * @param edges its buckets
     * @param order 0: count only; 1: sum and count; 2: also squares
     */
    record By(int attribute, Edges edges, int order) implements Aggregation {}

    /**
     * {@code [x if x ≥ at, x if x < at]} and a count of each.
     *
     * @param at the smallest value that counts as above
     */
    record Threshold(long at) implements Aggregation {}

    /**
     * A count-min sketch.
     *
     * @param depth rows
     * @param width cells in a row
     */
    record Sketch(int depth, int width) implements Aggregation {}
}
