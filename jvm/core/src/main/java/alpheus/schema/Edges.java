// Lower edges of bins: the grid of histograms and buckets.
package alpheus.schema;

import java.util.List;

/** Lower edges of bins, in scaled values. The end bins are open. */
public sealed interface Edges {
    /**
     * Bins of one width.
     *
     * @param lo lower edge of the first bin
     * @param width width of each, above 0
     * @param count how many
     */
    record Uniform(long lo, long width, int count) implements Edges {
        @Override
        public int bins() {
            return count;
        }

        @Override
        public int bin(long value) {
            if (value < lo) {
                return 0;
            }
            // The difference of two ordered numbers fits in 64 bits, unsigned.
            long bin = Long.divideUnsigned(value - lo, width);
            return Long.compareUnsigned(bin, count) < 0 ? (int) bin : count - 1;
        }

        @Override
        public long lower(int bin) {
            return lo + width * bin;
        }
    }

    /**
     * Strictly ascending lower edges.
     *
     * @param edges the edges
     */
    record Explicit(List<Long> edges) implements Edges {
        @Override
        public int bins() {
            return edges.size();
        }

        @Override
        public int bin(long value) {
            int low = 0;
            int high = edges.size();
            while (low < high) {
                int middle = (low + high) >>> 1;
                if (edges.get(middle) <= value) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            return Math.max(low - 1, 0);
        }

        @Override
        public long lower(int bin) {
            return edges.get(bin);
        }
    }

    /**
     * The number of bins.
     *
     * @return the number
     */
    int bins();

    /**
     * The bin of a value. Values beyond the edges belong to the end bins.
     *
     * @param value the scaled value
     * @return the bin
     */
    int bin(long value);

    /**
     * The lower edge of a bin.
     *
     * @param bin the bin, below {@link #bins()}
     * @return the edge
     */
    long lower(int bin);

    /**
     * The bin whose lower edge is exactly this.
     *
     * @param edge the edge
     * @return the bin, or −1
     */
    default int cellAt(long edge) {
        int bin = bin(edge);
        return lower(bin) == edge ? bin : -1;
    }
}
