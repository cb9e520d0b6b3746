// One session of a stream: its open ticks and how far it has settled.
package alpheus.flink;

import alpheus.stream.Frame;
import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;

/** One session of a stream. Times are microseconds. */
final class SessionState {
    /** The maximum number of frozen ticks tracked beyond the first missing one. */
    private static final int MAX_AHEAD = 1024;

    /** How a session ended. */
    enum End {
        /** It still runs, or died without notice. */
        RUNNING,
        /** By its closing border. */
        CLOSED,
        /** It died: the opening border of the next session replaced it. */
        REPLACED
    }

    private final long id;
    private final long opened;
    private final long tagHigh;
    private final long tagLow;
    private End end = End.RUNNING;
    private long endAt;
    /** Time of its latest accepted event. */
    private long latest;
    /** Ticks that end at or before this time are frozen or given up. */
    private long settled;
    /** Frozen ticks after that. */
    private final TreeSet<Long> ahead = new TreeSet<>();
    /** Ticks that are not complete. */
    private final TreeMap<Long, OpenTick> ticks = new TreeMap<>();

    private SessionState(long id, long opened, long tagHigh, long tagLow) {
        this.id = id;
        this.opened = opened;
        this.tagHigh = tagHigh;
        this.tagLow = tagLow;
        this.latest = opened;
        this.settled = opened;
    }

    static SessionState of(Frame opening) {
        ByteBuffer tag = ByteBuffer.wrap(opening.tag());
        return new SessionState(opening.session(), opening.time(), tag.getLong(), tag.getLong());
    }

    long id() {
        return id;
    }

    long opened() {
        return opened;
    }

    long tagHigh() {
        return tagHigh;
    }

    long tagLow() {
        return tagLow;
    }

    long latest() {
        return latest;
    }

    boolean runs() {
        return end == End.RUNNING;
    }

    /** Whether it is empty: it was replaced where it opened. */
    boolean isEmpty() {
        return end == End.REPLACED && endAt == opened;
    }

    /** Whether it reaches beyond a time. */
    boolean reachesBeyond(long t) {
        return end == End.RUNNING || endAt > t;
    }

    /** Whether it runs, or ran, in the tick that ends at this time. */
    boolean covers(long tickEnd) {
        return opened < tickEnd && (end == End.RUNNING || tickEnd <= endAt);
    }

    /** Adds an event to its tick, within the limit of open ticks. Returns the tick if it is now complete. */
    Optional<OpenTick> add(Shape shape, Frame frame, int mostTicks) throws RefusedException {
        long tickEnd = shape.tickEnd(frame.time());
        admit(tickEnd, frame);
        OpenTick tick = ticks.computeIfAbsent(tickEnd, OpenTick::new);
        keep(mostTicks);
        tick.add(shape, frame);
        latest = Math.max(latest, frame.time());
        if (frame.kind() == Frame.Kind.CLOSING) {
            end = End.CLOSED;
            endAt = tickEnd;
        }
        if (!tick.completes(shape)) {
            return Optional.empty();
        }
        ticks.remove(tickEnd);
        settleTick(tickEnd, shape);
        return Optional.of(tick);
    }

    private void admit(long tickEnd, Frame frame) throws RefusedException {
        if (frame.time() <= opened) {
            throw new RefusedException(Refusal.BEFORE_OPENING);
        }
        boolean closesEarly = frame.kind() == Frame.Kind.CLOSING && frame.time() < latest;
        if (end != End.RUNNING && tickEnd > endAt || closesEarly) {
            throw new RefusedException(Refusal.SESSION_ENDED);
        }
        if (isFrozen(tickEnd)) {
            // Its tick was settled without it. The session is over anyway, and no window waits for more of it.
            if (frame.kind() == Frame.Kind.CLOSING && end == End.RUNNING) {
                end = End.CLOSED;
                endAt = tickEnd;
            }
            throw new RefusedException(Refusal.DUPLICATE);
        }
    }

    /** Whether a tick is complete or given up. */
    private boolean isFrozen(long tickEnd) {
        return tickEnd <= settled || ahead.contains(tickEnd);
    }

    /** Records that a tick is complete. */
    private void settleTick(long tickEnd, Shape shape) {
        ahead.add(tickEnd);
        if (ahead.size() > MAX_AHEAD) {
            // Give up the gap before the oldest of them.
            settled = ahead.pollFirst();
            ticks.headMap(settled, true).clear();
        }
        while (!ahead.isEmpty() && ahead.first() == settled + shape.tick()) {
            settled = ahead.pollFirst();
        }
    }

    /** Gives up the oldest incomplete ticks beyond a limit. */
    void keep(int mostTicks) {
        while (ticks.size() > mostTicks) {
            settle(ticks.firstKey());
        }
    }

    /** Gives up all incomplete ticks up to a time. */
    void settle(long horizon) {
        ticks.headMap(horizon, true).clear();
        ahead.headSet(horizon, true).clear();
        settled = Math.max(settled, horizon);
    }

    /** Ends the session where another opens. Its later ticks never become complete. */
    void replace(long at) {
        if (end == End.RUNNING) {
            end = End.REPLACED;
            endAt = at;
            ticks.tailMap(at, false).clear();
        }
    }

    /** Why its tick that ends at this time is incomplete. */
    Incomplete trouble(long tickEnd) {
        OpenTick tick = ticks.get(tickEnd);
        if (tick == null && isFrozen(tickEnd)) {
            return Incomplete.BEFORE_PLAN;
        }
        Incomplete why = tick == null ? Incomplete.MISSING_BORDER : tick.why();
        return why == Incomplete.MISSING_BORDER && end == End.REPLACED ? Incomplete.SESSION_DIED : why;
    }

    void write(DataOutput out) throws IOException {
        for (long each : new long[] {id, opened, tagHigh, tagLow, endAt, latest, settled}) {
            out.writeLong(each);
        }
        out.writeByte(end.ordinal());
        Wire.writeLongs(out, ahead.stream().mapToLong(Long::longValue).toArray());
        out.writeInt(ticks.size());
        for (OpenTick tick : ticks.values()) {
            tick.write(out);
        }
    }

    static SessionState read(DataInput in) throws IOException {
        SessionState session = new SessionState(in.readLong(), in.readLong(), in.readLong(), in.readLong());
        session.endAt = in.readLong();
        session.latest = in.readLong();
        session.settled = in.readLong();
        session.end = End.values()[in.readByte()];
        for (long tick : Wire.readLongs(in)) {
            session.ahead.add(tick);
        }
        for (int left = Wire.length(in); left > 0; left--) {
            OpenTick tick = OpenTick.read(in);
            session.ticks.put(tick.end(), tick);
        }
        return session;
    }
}
