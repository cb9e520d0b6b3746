// The status of a stream in a window.
package alpheus.flink;

import alpheus.tick.Claim;
import java.util.List;

/**
 * The status of a stream that was online in a window.
 *
 * @param why why it is incomplete; null if it is complete
 * @param events number of data events, from its borders
 * @param segments parts of sessions that tile the window, in order of time
 * @param ofTicks whether each tick has a frame; then there are claims in place of segments, and no number of events
 * @param claims by session, what its controller needs, in order of time
 * @param conflict two different claims for one border, if there were any
 */
record Judgement(
        Incomplete why, long events, List<Segment> segments, boolean ofTicks, List<List<Claim>> claims,
        List<Claim> conflict) {
    Judgement(Incomplete why, long events, List<Segment> segments) {
        this(why, events, segments, false, List.of(), List.of());
    }

    /** A complete stream with a frame for each tick. */
    static Judgement ofTicks(List<List<Claim>> claims, List<Claim> conflict) {
        return new Judgement(null, 0, List.of(), true, claims, conflict);
    }

    static Judgement incomplete(Incomplete why) {
        return new Judgement(why, 0, List.of());
    }

    /** The same, of a stream with a frame for each tick. */
    static Judgement incompleteTicks(Incomplete why) {
        return new Judgement(why, 0, List.of(), true, List.of(), List.of());
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
