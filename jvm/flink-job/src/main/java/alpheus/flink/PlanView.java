// What of a plan the sums need: no streams, no policy.
package alpheus.flink;

/**
 * What of a plan the sums need.
 *
 * @param plan the plan's id, in hexadecimal
 * @param window length of its windows in microseconds, a multiple of the tick
 * @param grace how long after a window's end it is judged, in microseconds
 * @param from where its first window starts
 * @param gaps ticks that may be missing between the end of one session and the opening of the next
 * @param rows the release: for each output the words that it adds up; the last is the check word alone
 */
public record PlanView(String plan, long window, long grace, long from, int gaps, int[][] rows) {
    /** Whether one of its windows starts then. */
    boolean hasWindow(long start) {
        return start >= from && start % window == 0;
    }

    /** The start of the window that holds a tick. */
    long startOf(long tickEnd) {
        return (tickEnd - 1) / window * window;
    }

    /** Adds a tick's words as released. */
    void release(long[] words, long[] out) {
        for (int row = 0; row < rows.length; row++) {
            for (int word : rows[row]) {
                out[row] += words[word];
            }
        }
    }
}
