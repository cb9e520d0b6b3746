// The status of a stream in a window.
package alpheus.flink;

import java.util.List;

/**
 * The status of a stream that was online in a window.
 *
 * @param why why it is incomplete; null if it is complete
 * @param events number of data events, from its borders
 * @param segments parts of sessions that tile the window, in order of time
 */
record Judgement(Incomplete why, long events, List<Segment> segments) {
    static Judgement incomplete(Incomplete why) {
        return new Judgement(why, 0, List.of());
    }

    boolean isComplete() {
        return why == null;
    }

    /**
     * A part of one session from tick to tick.
     *
     * @param session the session
     * @param from its first border
     * @param opens whether that border opened the session
     * @param tagHigh first half of the opening border's MAC, if it did
     * @param tagLow second half
     * @param marks the border of every later tick
     */
    record Segment(long session, long from, boolean opens, long tagHigh, long tagLow, List<TickMark> marks) {
        /** The size of a segment in a message, without its marks. */
        static final int HEAD = 4 * Long.BYTES + 1 + Integer.BYTES;

        long to() {
            return marks.get(marks.size() - 1).end();
        }
    }
}
