// The part of a plan that the sums need, without streams and policy.
package alpheus.flink;

/**
 * What of a plan the sums need.
 *
 * @param plan the plan's id, in hexadecimal
 * @param window length of its windows in microseconds, a multiple of the tick
 * @param grace time from a window's end to its evaluation, in microseconds
 * @param from start of its first window
 * @param gaps ticks that may be missing between the end of one session and the opening of the next
 * @param rows the release: the words that each output sums; the last is the check word alone
 */
public record PlanView(String plan, long window, long grace, long from, int gaps, int[][] rows) {
    /** Whether one of its windows starts at this time. */
    boolean hasWindow(long start) {
        return start >= from && start % window == 0;
    }

    /** The start of the window that holds a tick. */
    long startOf(long tickEnd) {
        return (tickEnd - 1) / window * window;
    }

    /** Adds a tick's words as in the release. */
    void release(long[] words, long[] out) {
        for (int row = 0; row < rows.length; row++) {
            for (int word : rows[row]) {
                out[row] += words[word];
            }
        }
    }
}
