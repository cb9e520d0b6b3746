// A stream's place in a plan.
package alpheus.flink;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.TreeSet;

/** A stream's place in a plan, and how far the plan's windows are settled for it. */
final class Member {
    private final int position;
    private final long from;
    /** Windows that end at or before this are settled. */
    private long settled;
    /** Starts of settled windows after that. */
    private final TreeSet<Long> done = new TreeSet<>();
    /** Start of the next window to report. */
    private long nextReport;

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

    /** The stream comes online: windows before have nothing to report. */
    void resume(long start) {
        nextReport = Math.max(nextReport, start);
    }

    boolean wants(long start, long tickEnd) {
        return tickEnd > settled && !done.contains(start);
    }

    /** Whether a tick is over for this plan, as one before its first window is not. */
    boolean isLate(long tickEnd) {
        return tickEnd > from;
    }

    /** A window is settled; windows are settled in any order, each by its own opening set. */
    void settle(long start, long window) {
        if (start >= settled) {
            done.add(start);
        }
        while (done.remove(settled)) {
            settled += window;
        }
    }

    void write(DataOutput out) throws IOException {
        out.writeInt(position);
        out.writeLong(from);
        out.writeLong(settled);
        out.writeLong(nextReport);
        Wire.writeLongs(out, done.stream().mapToLong(Long::longValue).toArray());
    }

    static Member read(DataInput in) throws IOException {
        Member member = new Member(in.readInt(), in.readLong());
        member.settled = in.readLong();
        member.nextReport = in.readLong();
        for (long start : Wire.readLongs(in)) {
            member.done.add(start);
        }
        return member;
    }
}
