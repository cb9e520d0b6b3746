// One session of a stream with one frame a tick.
package alpheus.flink;

import alpheus.crypto.TagKey;
import alpheus.flink.SessionState.End;
import alpheus.stream.EventTime;
import alpheus.tick.Claim;
import alpheus.tick.ClaimKind;
import alpheus.tick.Opening;
import alpheus.tick.Previous;
import alpheus.tick.TickFrame;
import alpheus.tick.TickFrameException;
import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;

/**
 * One session of a stream with one frame a tick: which times have come, and the claims that segments need.
 * Words go into windows at once, and are not here.
 */
final class TickRun {
    /** Gaps that are kept of a session. */
    private static final int MAX_GAPS = 1024;
    /** Separate times that have come. */
    private static final int MAX_SPANS = 256;
    /** Latest frames that are kept to tell a repeated one from another. */
    private static final int RECENT = 4;

    private final Claim opening;
    private final byte[] frame;
    private End end = End.RUNNING;
    private long endAt;
    /** Whether anything but its opening has come. Until then the session before stays open. */
    private boolean started;
    /** The end of its latest frame. */
    private long latest;
    /** Nothing up to here is taken any more. */
    private long settled;
    /** Times after that which have come, ascending and apart. */
    private final List<Tile> come = new ArrayList<>();
    /** What segments need, ascending. */
    private final List<Claim> claims = new ArrayList<>();
    private final Deque<Recent> recent = new ArrayDeque<>();
    /** Two claims for one border, if there were any. */
    private List<Claim> conflict = List.of();

    /** A frame's claim, and the MAC that no other frame of its session has. */
    private record Recent(Claim claim, byte[] mac) {}

    /** What plans need of a frame. */
    record Needs(boolean late, boolean starts, boolean cuts, boolean planned) {}

    TickRun(Claim opening, byte[] frame) {
        this.opening = opening;
        this.frame = frame;
        this.latest = opening.to();
        this.settled = opening.to();
    }

    long id() {
        return opening.session();
    }

    Claim opening() {
        return opening;
    }

    /** The opening as it came. The session's key in it is sealed. */
    byte[] frame() {
        return frame;
    }

    /** The session that its device had before, if the opening names one. */
    Optional<Previous> previous(long tick) {
        try {
            return TickFrame.parse(frame, tick).opening().flatMap(Opening::previous);
        } catch (TickFrameException broken) {
            return Optional.empty();
        }
    }

    boolean isStarted() {
        return started;
    }

    long latest() {
        return latest;
    }

    List<Claim> claims() {
        return claims;
    }

    List<Claim> conflict() {
        return conflict;
    }

    boolean runs() {
        return end == End.RUNNING;
    }

    boolean isReplaced() {
        return end == End.REPLACED;
    }

    boolean reachesBeyond(long t) {
        return end == End.RUNNING || endAt > t;
    }

    /** Whether it runs, or ran, in the tick that ends at this time. */
    boolean covers(long tickEnd) {
        return opening.to() < tickEnd && (end == End.RUNNING || tickEnd <= endAt);
    }

    /** The stretch that has come and holds the tick that ends at this time. */
    Optional<Tile> come(long tickEnd) {
        return come.stream().filter(span -> span.start() < tickEnd && tickEnd <= span.end()).findFirst();
    }

    /** The claim that ends at a border, as far as it is kept. */
    Optional<Claim> claimAt(long to) {
        return claims.stream().filter(claim -> claim.to() == to).findFirst()
                .or(() -> recent.stream().map(Recent::claim).filter(claim -> claim.to() == to).findFirst());
    }

    /** Another session has started where this one died. */
    void replace(long at) {
        if (end == End.RUNNING) {
            end = End.REPLACED;
            endAt = at;
        }
    }

    /** Takes a tick or a gap. Returns whether its words count; otherwise only a window starts with it. */
    boolean take(Claim claim, byte[] mac, Needs needs) throws RefusedException {
        if (claim.from() < opening.to()) {
            throw new RefusedException(Refusal.BEFORE_OPENING);
        }
        Optional<Tile> met =
                come.stream().filter(span -> span.start() < claim.to() && claim.from() < span.end()).findFirst();
        if (met.isPresent()) {
            boolean inside = met.get().start() <= claim.from() && claim.to() <= met.get().end();
            throw new RefusedException(repeated(claim, mac, inside));
        }
        admit(claim, mac, needs);
        boolean counts = !needs.late();
        if (!needs.planned()) {
            // A plan that starts now needs what its first window starts with.
            claims.clear();
        }
        add(new Tile(id(), claim.from(), claim.to()));
        if (needs.cuts() || claim.kind().isGap() || claim.kind().isClosing() || !needs.planned()) {
            int place = 0;
            while (place < claims.size() && claims.get(place).to() < claim.to()) {
                place++;
            }
            claims.add(place, claim);
        }
        remember(claim, mac);
        latest = Math.max(latest, claim.to());
        started = true;
        if (claim.kind().isClosing()) {
            end = End.CLOSED;
            endAt = claim.to();
        }
        return counts;
    }

    private void admit(Claim claim, byte[] mac, Needs needs) throws RefusedException {
        // A session ends on the first border of the next day.
        boolean beyondDay = claim.to() > EventTime.floor(opening.to(), EventTime.DAY) + 2 * EventTime.DAY;
        boolean over = end != End.RUNNING && claim.to() > endAt;
        if (beyondDay || over || claim.kind().isClosing() && claim.to() < latest) {
            throw new RefusedException(Refusal.SESSION_ENDED);
        }
        if (needs.late() && !needs.starts()) {
            throw new RefusedException(Refusal.LATE);
        }
        if (needs.late() && claimAt(claim.to()).isPresent()) {
            throw new RefusedException(repeated(claim, mac, true));
        }
        if (!needs.late() && claim.to() <= settled) {
            throw new RefusedException(Refusal.DUPLICATE);
        }
        if (claim.kind() == ClaimKind.GAP && claims.stream().filter(each -> each.kind().isGap()).count() >= MAX_GAPS) {
            throw new RefusedException(Refusal.TOO_MANY_GAPS);
        }
    }

    /** A frame for a time that has come: the same again, or another one. */
    private Refusal repeated(Claim claim, byte[] mac, boolean inside) {
        if (recent.stream().anyMatch(known -> known.claim().to() == claim.to() && Arrays.equals(known.mac(), mac))) {
            return Refusal.DUPLICATE;
        }
        boolean isRecent = recent.stream().anyMatch(known -> known.claim().to() == claim.to());
        Optional<Claim> known = claimAt(claim.to());
        if (known.isPresent() && !Arrays.equals(known.get().tag(), claim.tag())) {
            conflict = conflict.isEmpty() ? List.of(known.get(), claim) : conflict;
            return Refusal.CONFLICTING_FRAME;
        }
        // The same claim over other words is a conflict, too.
        boolean same = known.isPresent() ? !isRecent : inside;
        return same ? Refusal.DUPLICATE : Refusal.CONFLICTING_FRAME;
    }

    private void remember(Claim claim, byte[] mac) {
        if (recent.size() >= RECENT) {
            recent.removeFirst();
        }
        recent.addLast(new Recent(claim, mac));
    }

    private void add(Tile span) {
        long start = span.start();
        long last = span.end();
        int place = 0;
        for (Iterator<Tile> known = come.iterator(); known.hasNext();) {
            Tile each = known.next();
            if (each.end() < start) {
                place++;
            } else if (each.start() <= last) {
                start = Math.min(start, each.start());
                last = Math.max(last, each.end());
                known.remove();
            }
        }
        come.add(place, new Tile(id(), start, last));
        if (come.size() > MAX_SPANS) {
            // Give up what is missing before the oldest.
            settled = Math.max(settled, come.remove(0).end());
        }
    }

    /** Drops everything before a time, and claims that are not needed. */
    void settle(long horizon, Predicate<Claim> needed) {
        come.removeIf(span -> span.end() <= horizon);
        claims.removeIf(claim -> claim.to() < horizon || !needed.test(claim));
        settled = Math.max(settled, horizon);
    }

    void write(DataOutput out) throws IOException {
        ClaimBytes.write(out, opening);
        Wire.writeBytes(out, frame);
        out.writeByte(end.ordinal());
        out.writeLong(endAt);
        out.writeBoolean(started);
        out.writeLong(latest);
        out.writeLong(settled);
        out.writeInt(come.size());
        for (Tile span : come) {
            span.write(out);
        }
        ClaimBytes.write(out, claims);
        out.writeInt(recent.size());
        for (Recent each : recent) {
            ClaimBytes.write(out, each.claim());
            out.write(each.mac());
        }
        ClaimBytes.write(out, conflict);
    }

    static TickRun read(DataInput in) throws IOException {
        TickRun run = new TickRun(ClaimBytes.read(in), Wire.readBytes(in));
        run.end = End.values()[in.readByte()];
        run.endAt = in.readLong();
        run.started = in.readBoolean();
        run.latest = in.readLong();
        run.settled = in.readLong();
        for (int left = Wire.length(in); left > 0; left--) {
            run.come.add(Tile.read(in));
        }
        run.claims.addAll(ClaimBytes.readAll(in));
        for (int left = Wire.length(in); left > 0; left--) {
            Claim claim = ClaimBytes.read(in);
            byte[] mac = new byte[TagKey.TAG];
            in.readFully(mac);
            run.recent.addLast(new Recent(claim, mac));
        }
        run.conflict = ClaimBytes.readAll(in);
        return run;
    }
}
