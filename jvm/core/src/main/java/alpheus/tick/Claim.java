// What a frame states, apart from its words, as the service sees it.
package alpheus.tick;

import java.util.Arrays;
import java.util.HexFormat;

/**
 * What a frame states, as the service sees it. Public: the service sees when the device was awake. The
 * number of events is hidden from it.
 *
 * @param kind the kind of frame
 * @param session the session
 * @param from where the frame's time starts
 * @param to where it ends
 * @param maskedCount number of events since the last anchor, under a pad that the controller knows
 * @param root the root of the sum since the last anchor
 * @param tag the MAC under the stream's border key, 16 bytes
 */
public record Claim(ClaimKind kind, long session, long from, long to, long maskedCount, Root root, byte[] tag) {
    /**
     * Whether sum and count start again at the frame's end: an anchor lies in its time, or it opens the
     * session.
     *
     * @param anchor the schema's anchor period
     * @return true if so
     */
    public boolean endsPeriod(long anchor) {
        return kind == ClaimKind.OPENING || endsPeriod(from, to, anchor);
    }

    /** Whether an anchor lies in {@code (from, to]}. */
    static boolean endsPeriod(long from, long to, long anchor) {
        return from / anchor != to / anchor;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Claim that && that.kind == kind && that.session == session && that.from == from
                && that.to == to && that.maskedCount == maskedCount && that.root.equals(root)
                && Arrays.equals(that.tag, tag);
    }

    @Override
    public int hashCode() {
        return 31 * Long.hashCode(session) + Long.hashCode(to);
    }

    @Override
    public String toString() {
        return kind + " " + session + " (" + from + ", " + to + "] " + HexFormat.of().formatHex(tag);
    }
}
