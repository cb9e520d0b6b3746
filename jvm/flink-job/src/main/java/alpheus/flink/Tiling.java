// The segments of a window, of a stream with one frame a tick.
package alpheus.flink;

import alpheus.tick.Claim;
import alpheus.tick.ClaimKind;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * The segments of a window: of each session the claims that its controller needs.
 *
 * @param start the window's start
 * @param end its end
 * @param runs the stream's sessions
 * @param anchor the schema's anchor period
 * @param tick its tick
 * @param gaps ticks that may be missing between sessions
 */
record Tiling(long start, long end, TickRuns runs, long anchor, long tick, long gaps) {
    /** So many claims that no summary is larger than a record may be. */
    private static final int MAX_CLAIMS = 14_000;

    /** Whether a segment needs a claim that is neither its first nor its last. */
    static boolean between(Claim claim, long anchor) {
        return claim.kind().isGap() || claim.kind() == ClaimKind.CLOSING_TICK || claim.endsPeriod(anchor);
    }

    /** The status of the stream, whose ticks in these stretches are in the rows. */
    Judgement judge(List<Tile> inRows) {
        List<Tile> tiles = withGaps(inRows);
        List<List<Claim>> segments = new ArrayList<>();
        List<Claim> conflict = List.of();
        long reached = start;
        long missing = 0;
        for (Tile tile : tiles) {
            if (tile.start() < reached) {
                return Judgement.incompleteTicks(Incomplete.DUPLICATE);
            }
            Optional<TickRun> run = runs.run(tile.session());
            boolean opens = run.filter(it -> it.opening().to() == tile.start()).isPresent();
            Optional<List<Claim>> claims = run.flatMap(it -> claims(it, tile));
            if (claims.isEmpty() || tile.start() > reached && !opens) {
                return Judgement.incompleteTicks(trouble(reached));
            }
            missing += (tile.start() - reached) / tick;
            segments.add(claims.get());
            conflict = conflict.isEmpty() ? run.get().conflict() : conflict;
            reached = tile.end();
        }
        if (missing > gaps || reached != end) {
            return Judgement.incompleteTicks(trouble(missing > 0 ? start : reached));
        }
        boolean fits = segments.stream().mapToLong(List::size).sum() <= MAX_CLAIMS;
        return fits ? Judgement.ofTicks(segments, conflict) : Judgement.incompleteTicks(Incomplete.OVER_CAPACITY);
    }

    /** What is known about the window: the ticks in the rows, and gaps, in order and merged. */
    private List<Tile> withGaps(List<Tile> inRows) {
        List<Tile> all = new ArrayList<>(inRows);
        for (TickRun run : runs.all()) {
            for (Claim claim : run.claims()) {
                long from = Math.max(claim.from(), start);
                long to = Math.min(claim.to(), end);
                if (claim.kind().isGap() && from < to) {
                    all.add(new Tile(run.id(), from, to));
                }
            }
        }
        all.sort(Comparator.comparingLong(Tile::start));
        List<Tile> merged = new ArrayList<>();
        for (Tile tile : all) {
            Tile last = merged.isEmpty() ? null : merged.get(merged.size() - 1);
            if (last != null && last.session() == tile.session() && last.end() == tile.start()) {
                merged.set(merged.size() - 1, new Tile(last.session(), last.start(), tile.end()));
            } else {
                merged.add(tile);
            }
        }
        return merged;
    }

    /** A session's claims of a stretch without a missing tick, if those at its ends are kept. */
    private Optional<List<Claim>> claims(TickRun run, Tile tile) {
        Optional<Claim> first = first(run, tile.start());
        if (first.isEmpty()) {
            return Optional.empty();
        }
        List<Claim> claims = new ArrayList<>(List.of(first.get()));
        long after = first.get().to();
        run.claims().stream()
                .filter(claim -> claim.from() >= after && claim.from() < tile.end() && between(claim, anchor))
                .forEach(claims::add);
        if (claims.get(claims.size() - 1).to() < tile.end()) {
            Optional<Claim> last = run.claimAt(tile.end());
            if (last.isEmpty()) {
                return Optional.empty();
            }
            claims.add(last.get());
        }
        // The opening alone covers nothing.
        boolean covers = claims.size() > 1 || first.get().kind() != ClaimKind.OPENING;
        return covers ? Optional.of(claims) : Optional.empty();
    }

    private Optional<Claim> first(TickRun run, long at) {
        if (run.opening().to() == at) {
            return Optional.of(run.opening());
        }
        if (at != start) {
            return Optional.empty();
        }
        return run.claims().stream()
                .filter(claim -> claim.kind().isGap() && claim.from() <= at && at < claim.to())
                .findFirst()
                .or(() -> run.claimAt(at));
    }

    /** Why the first tick after a time that has not come is missing. If all have come, a claim is not kept. */
    private Incomplete trouble(long reached) {
        long missing = reached + tick;
        while (missing <= end) {
            long wanted = missing;
            Optional<TickRun> run = runs.all().stream().filter(it -> it.covers(wanted)).findFirst();
            if (run.isEmpty()) {
                return Incomplete.OFFLINE;
            }
            Optional<Tile> come = run.get().come(wanted);
            if (come.isEmpty()) {
                return hasDiedBefore(run.get(), wanted) ? Incomplete.SESSION_DIED : Incomplete.MISSING_BORDER;
            }
            missing = come.get().end() + tick;
        }
        return Incomplete.BEFORE_PLAN;
    }

    /** Whether a session ended without a tick. If its device states a later border, the tick was sent and is lost. */
    private boolean hasDiedBefore(TickRun run, long tickEnd) {
        OptionalLong stated = runs.statedEnd(run.id(), tick);
        return run.isReplaced() && (stated.isEmpty() || stated.getAsLong() < tickEnd);
    }
}
