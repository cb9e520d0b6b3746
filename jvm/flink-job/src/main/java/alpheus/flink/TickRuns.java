// The sessions of a stream with one frame a tick.
package alpheus.flink;

import alpheus.stream.EventTime;
import alpheus.tick.Claim;
import alpheus.tick.Previous;
import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Predicate;

/** The sessions of a stream with one frame a tick, in the order in which they opened. */
final class TickRuns {
    /** Sessions of which nothing but the opening has come. */
    private static final int MAX_IDLE = 4;

    private final List<TickRun> runs = new ArrayList<>();

    boolean isEmpty() {
        return runs.isEmpty();
    }

    /** Whether none has opened since a time. */
    boolean isOlderThan(long since) {
        return runs.stream().allMatch(run -> run.opening().to() < since);
    }

    void clear() {
        runs.clear();
    }

    List<TickRun> all() {
        return runs;
    }

    Optional<TickRun> run(long session) {
        return runs.stream().filter(run -> run.id() == session).findFirst();
    }

    /** The first session that reaches beyond a time. One that died keeps its stream online until the next starts. */
    Optional<TickRun> reachingBeyond(long t) {
        return runs.stream().filter(run -> run.reachesBeyond(t)).findFirst();
    }

    /**
     * The last border of a session, if the opening of a later one names it. The device states what it remembers;
     * that proves nothing.
     */
    OptionalLong statedEnd(long session, long tick) {
        return runs.stream().flatMap(run -> run.previous(tick).stream())
                .filter(previous -> previous.session() == session)
                .mapToLong(Previous::last)
                .findFirst();
    }

    /** Opens a session, which changes nothing for the others. */
    void open(Claim opening, byte[] frame, boolean planned) throws RefusedException {
        if (run(opening.session()).isPresent()) {
            throw new RefusedException(Refusal.SESSION_KNOWN);
        }
        if (runs.stream().anyMatch(run -> run.isStarted() && opening.to() < run.latest())) {
            throw new RefusedException(Refusal.BACKDATED);
        }
        if (!planned) {
            runs.removeIf(run -> !run.runs());
        }
        // At midnight the next session opens before the last frame of the one that ends.
        if (runs.stream().filter(run -> !run.isStarted()).count() >= MAX_IDLE) {
            runs.remove(runs.stream().filter(run -> !run.isStarted()).findFirst().orElseThrow());
        }
        long days = runs.isEmpty() ? 0 : (opening.to() - runs.get(0).opening().to()) / EventTime.DAY;
        if (runs.size() >= StreamState.MAX_SESSIONS + Math.max(days, 0)) {
            throw new RefusedException(Refusal.TOO_MANY_SESSIONS);
        }
        runs.add(new TickRun(opening, frame));
    }

    /** Takes a tick or a gap. Returns whether its words count. */
    boolean take(Claim claim, byte[] mac, TickRun.Needs needs) throws RefusedException {
        TickRun own = run(claim.session()).orElse(null);
        if (own == null) {
            throw new RefusedException(needs.late() ? Refusal.LATE : Refusal.UNKNOWN_SESSION);
        }
        boolean isFirst = !own.isStarted();
        boolean counts = own.take(claim, mac, needs);
        if (isFirst) {
            // Earlier sessions have died where this one opened. Those of which nothing came are given up.
            List<TickRun> earlier = runs.subList(0, runs.indexOf(own));
            earlier.forEach(run -> run.replace(own.opening().to()));
            earlier.removeIf(run -> !run.isStarted());
        }
        return counts;
    }

    /** Drops what no open window needs. The last session stays: a new one must not open in its past. */
    void settle(long horizon, Predicate<Claim> needed) {
        runs.forEach(run -> run.settle(horizon, needed));
        TickRun last = runs.isEmpty() ? null : runs.get(runs.size() - 1);
        runs.removeIf(run -> run != last && !run.reachesBeyond(horizon));
    }

    void write(DataOutput out) throws IOException {
        out.writeInt(runs.size());
        for (TickRun run : runs) {
            run.write(out);
        }
    }

    static TickRuns read(DataInput in) throws IOException {
        TickRuns read = new TickRuns();
        for (int left = Wire.length(in); left > 0; left--) {
            read.runs.add(TickRun.read(in));
        }
        return read;
    }
}
