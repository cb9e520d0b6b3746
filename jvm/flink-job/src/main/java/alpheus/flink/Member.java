// A stream's membership in a plan.
package alpheus.flink;

import alpheus.stream.EventTime;
import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.TreeSet;

/**
 * A stream's membership in a plan, and how far the plan's windows are settled for it. A window that is not
 * settled within a week, or 65,536 windows, is given up: one opening set that never arrives must not keep
 * all later ones.
 */
final class Member {
    private static final long KEPT = 7 * EventTime.DAY;
    private static final int MAX_DONE = 1 << 16;

    private final int position;
    private final long from;
    /** Windows that end at or before this are settled. */
    private long settled;
    /** Starts of settled windows after that. */
    private final TreeSet<Long> done = new TreeSet<>();
    /** Start of the next window to report. */
    private long nextReport;
    /** Whether it was reported that the stream has joined. */
    private boolean announced;

    Member(int position, long from) {
        this.position = position;
        this.from = from;
        this.settled = from;
        this.nextReport = from;
    }

    int position() {
        return position;
    }

    long settled() {
        return settled;
    }

    long nextReport() {
        return nextReport;
    }

    /** The stream comes online. Earlier windows have nothing to report. */
    void resume(long start) {
        nextReport = Math.max(nextReport, start);
    }

    /** Records that the stream has joined. Returns whether this is new. */
    boolean announce() {
        boolean isNew = !announced;
        announced = true;
        return isNew;
    }

    void announceAgain() {
        announced = false;
    }

    /** Whether a window is not settled. */
    boolean isOpen(long start) {
        return start >= settled && !done.contains(start);
    }

    boolean wants(long start, long tickEnd) {
        return tickEnd > settled && !done.contains(start);
    }

    /** Whether a tick is settled for this plan; a tick before its first window is not. */
    boolean isLate(long tickEnd) {
        return tickEnd > from;
    }

    /** Whether any window is settled with all windows before it. */
    boolean hasSettled() {
        return settled > from;
    }

    /** Settles a window. Windows are settled in any order, each by its own opening set. */
    void settle(long start, long window) {
        if (start >= settled) {
            done.add(start);
        }
        if (done.size() > MAX_DONE) {
            settled = done.first();
        }
        settleDone(window);
        giveUp(start, window);
    }

    /** Gives up windows that ended a week before a time. */
    void giveUp(long now, long window) {
        long before = (now - KEPT) / window * window;
        if (before > settled) {
            settled = before;
            done.headSet(settled).clear();
            settleDone(window);
        }
    }

    private void settleDone(long window) {
        while (done.remove(settled)) {
            settled += window;
        }
    }

    void write(DataOutput out) throws IOException {
        out.writeInt(position);
        out.writeLong(from);
        out.writeLong(settled);
        out.writeLong(nextReport);
        out.writeBoolean(announced);
        Wire.writeLongs(out, done.stream().mapToLong(Long::longValue).toArray());
    }

    static Member read(DataInput in) throws IOException {
        Member member = new Member(in.readInt(), in.readLong());
        member.settled = in.readLong();
        member.nextReport = in.readLong();
        member.announced = in.readBoolean();
        for (long start : Wire.readLongs(in)) {
            member.done.add(start);
        }
        return member;
    }
}
