// What there is of a stream in a window.
package alpheus.flink;

import java.util.List;

/**
 * What there is of a stream that was online in a window.
 *
 * @param why why it is not complete; null of one that is
 * @param events data events, as its borders say
 * @param segments stretches of sessions that tile the window, in order of time
 */
record Judgement(Incomplete why, long events, List<Segment> segments) {
    static Judgement incomplete(Incomplete why) {
        return new Judgement(why, 0, List.of());
    }

    boolean isComplete() {
        return why == null;
    }

    /**
     * A stretch of one session from tick to tick.
     *
     * @param session the session
     * @param from its first border
     * @param opens whether that border opened the session
     * @param tagHigh first half of the opening border's MAC, if it did
     * @param tagLow second half
     * @param marks a border on every later tick
     */
    record Segment(long session, long from, boolean opens, long tagHigh, long tagLow, List<TickMark> marks) {
        /** Bytes of one in a message, without its marks. */
        static final int HEAD = 4 * Long.BYTES + 1 + Integer.BYTES;

        long to() {
            return marks.get(marks.size() - 1).end();
        }
    }
}
