// A stream with one frame a tick: what counts, what is refused and why, and which claims a window has.
package alpheus.flink;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import alpheus.stream.EventTime;
import alpheus.stream.TickSum;
import alpheus.tick.Claim;
import alpheus.tick.ClaimKind;
import alpheus.tick.Previous;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import org.junit.jupiter.api.Test;

class TickStateTest {
    private static final Map<String, PlanView> PLANS = Map.of(Feed.PLAN.plan(), Feed.PLAN);
    private static final long TICK = Feed.TICK;
    private static final long NOON = Feed.NOON;

    private static StreamState member() {
        StreamState state = new StreamState();
        state.join(Feed.PLAN, 0);
        return state;
    }

    private static Optional<PlanView> plan(String id) {
        return Optional.ofNullable(PLANS.get(id));
    }

    private static void add(StreamState state, byte[] frame) throws Exception {
        state.add(TickFeed.SHAPE, TickStateTest::plan, TickFeed.parse(frame), frame);
    }

    private static StreamState after(List<byte[]> frames) throws Exception {
        StreamState state = member();
        for (byte[] frame : frames) {
            add(state, frame);
        }
        return state;
    }

    private static void assertRefused(Refusal refusal, StreamState state, byte[] frame) {
        assertEquals(refusal, assertThrows(RefusedException.class, () -> add(state, frame)).refusal());
    }

    private static Judgement judge(StreamState state, int window) {
        return state.judge(TickFeed.SHAPE, Feed.PLAN, Feed.start(window));
    }

    private static void settle(StreamState state, int window) {
        state.settle(TickFeed.SHAPE, TickStateTest::plan, Feed.PLAN.plan(), Feed.start(window), Feed.PLAN.window());
    }

    /** The window's rows, opened by the claims alone. */
    private static long[] opened(StreamState state, int window) {
        Judgement judgement = judge(state, window);
        assertTrue(judgement.isComplete(), () -> "window " + window + ": " + judgement.why());
        long[] rows = state.windowOrNew(Feed.PLAN, Feed.start(window)).rows().clone();
        judgement.claims().forEach(claims -> TickSum.add(rows, TickFeed.keyPart(1, claims, Feed.start(window))));
        return rows;
    }

    private static long events(StreamState state, int window) {
        return judge(state, window).claims().stream().mapToLong(claims -> TickFeed.events(1, claims)).sum();
    }

    @Test
    void aWindowOpensByTheClaimsAtItsEnds() throws Exception {
        StreamState state = after(new TickFeed(1, NOON).ticks(9, 2, 7).frames);
        for (int window = 0; window < 3; window++) {
            assertArrayEquals(new long[] {42, 48, 0}, opened(state, window));
            assertEquals(6, events(state, window));
            assertEquals(1, judge(state, window).claims().size());
        }
        // An opening and the window's end; both ends; two anchors a minute apart need no more here.
        assertEquals(2, judge(state, 0).claims().get(0).size());
        assertEquals(2, judge(state, 1).claims().get(0).size());
    }

    @Test
    void gapsCostOneClaimEachAndWindowsMayBeAsleep() throws Exception {
        StreamState state = after(
                new TickFeed(1, NOON).ticks(2, 1, 5).sleep(8).ticks(1, 1, 5).sleep(1).ticks(3, 0, 0).frames);
        assertArrayEquals(new long[] {10, 12, 0}, opened(state, 0));
        assertEquals(List.of(ClaimKind.OPENING, ClaimKind.GAP), kinds(state, 0));
        assertArrayEquals(new long[3], opened(state, 1));
        assertEquals(List.of(ClaimKind.GAP), kinds(state, 1));
        assertArrayEquals(new long[] {5, 6, 0}, opened(state, 3));
        assertEquals(List.of(ClaimKind.GAP, ClaimKind.GAP), kinds(state, 3), "the tick between needs none");
        assertEquals(1, events(state, 3));
    }

    private static List<ClaimKind> kinds(StreamState state, int window) {
        return judge(state, window).claims().get(0).stream().map(Claim::kind).toList();
    }

    @Test
    void orderDoesNotMatterExceptForTheOpening() throws Exception {
        List<byte[]> frames = new TickFeed(1, NOON).ticks(4, 3, 2).sleep(3).ticks(5, 1, 9).frames;
        List<long[]> expected = new ArrayList<>();
        for (int window = 0; window < 4; window++) {
            expected.add(opened(after(frames), window));
        }
        for (int seed = 0; seed < 20; seed++) {
            List<byte[]> shuffled = new ArrayList<>(frames.subList(1, frames.size()));
            Collections.shuffle(shuffled, new Random(seed));
            shuffled.add(0, frames.get(0));
            StreamState state = after(shuffled);
            for (int window = 0; window < 4; window++) {
                assertArrayEquals(expected.get(window), opened(state, window));
            }
        }
    }

    @Test
    void aRepeatedFrameChangesNothingAndAnotherIsEvidence() throws Exception {
        List<byte[]> frames = new TickFeed(1, NOON).ticks(3, 1, 5).frames;
        // A copy of the device at the opening: the same session, other events.
        List<byte[]> copy = new TickFeed(1, NOON).ticks(3, 2, 5).frames;
        StreamState state = after(frames);
        long[] rows = opened(state, 0);
        for (int i = 1; i < 4; i++) {
            assertRefused(Refusal.DUPLICATE, state, frames.get(i));
        }
        assertTrue(judge(state, 0).conflict().isEmpty());
        assertRefused(Refusal.CONFLICTING_FRAME, state, copy.get(3));
        assertArrayEquals(rows, opened(state, 0));
        List<Claim> conflict = judge(state, 0).conflict();
        assertEquals(2, conflict.size());
        assertEquals(conflict.get(0).to(), conflict.get(1).to());
        assertNotEquals(conflict.get(0), conflict.get(1));
        assertEquals(3, TickFeed.events(1, List.of(TickFeed.parse(frames.get(0)).claim(), conflict.get(0))));
        assertEquals(6, TickFeed.events(1, List.of(TickFeed.parse(frames.get(0)).claim(), conflict.get(1))));
    }

    /** An opening that nothing follows ends nothing. */
    @Test
    void theOldSessionStaysUntilTheFirstTickOfTheNext() throws Exception {
        TickFeed old = new TickFeed(1, NOON).ticks(1, 1, 5);
        TickFeed next = new TickFeed(1, NOON + TICK, 99);
        StreamState state = after(old.frames);
        add(state, next.frames.get(0));
        old.ticks(2, 1, 5);
        add(state, old.frames.get(2));
        add(state, old.frames.get(3));
        assertArrayEquals(new long[] {15, 18, 0}, opened(state, 0));
        assertRefused(Refusal.SESSION_KNOWN, state, next.frames.get(0));
        assertRefused(Refusal.BACKDATED, state, new TickFeed(1, NOON, 98).frames.get(0));
    }

    @Test
    void aSessionThatDiedEndsWhereTheNextStarts() throws Exception {
        TickFeed old = new TickFeed(1, NOON).ticks(1, 1, 5);
        TickFeed next = new TickFeed(1, NOON + 2 * TICK, 99).ticks(4, 1, 5);
        List<byte[]> frames = new ArrayList<>(old.frames);
        frames.addAll(next.frames);
        StreamState state = after(frames);
        assertEquals(Incomplete.SESSION_DIED, judge(state, 0).why());
        assertTrue(judge(state, 1).isComplete());
        old.ticks(2, 1, 5);
        assertRefused(Refusal.SESSION_ENDED, state, old.frames.get(3));
    }

    /** The device says how far its last session came. What did not come of it is lost, not unsent. */
    @Test
    void aSessionThatADeviceRemembersShowsWhatWasLost() throws Exception {
        assertEquals(Incomplete.MISSING_BORDER, reason(Optional.of(NOON + 2 * TICK)));
        assertEquals(Incomplete.SESSION_DIED, reason(Optional.of(NOON + TICK)));
        assertEquals(Incomplete.SESSION_DIED, reason(Optional.empty()));
    }

    /** Why a window is incomplete: the second of its ticks did not come, and the next session states this end. */
    private static Incomplete reason(Optional<Long> stated) throws Exception {
        TickFeed old = new TickFeed(1, NOON).ticks(1, 1, 5);
        StreamState state = after(old.frames);
        Optional<Previous> previous = stated.map(last -> new Previous(old.session.number(), last));
        TickFeed next = new TickFeed(1, NOON + 2 * TICK, 99, previous).ticks(1, 1, 5);
        for (byte[] frame : next.frames) {
            add(state, frame);
        }
        return judge(state, 0).why();
    }

    @Test
    void sessionsMeetAtMidnight() throws Exception {
        long midnight = EventTime.floor(NOON, EventTime.DAY) + EventTime.DAY;
        // No multiple of seven ticks is at that midnight.
        long start = EventTime.floor(midnight, 7 * TICK);
        PlanView plan = new PlanView(Feed.PLAN.plan(), 7 * TICK, 0, start, 0, Feed.PLAN.rows());
        StreamState state = new StreamState();
        state.join(plan, 0);
        for (byte[] frame : new TickFeed(1, start).ticks(7, 1, 5).frames) {
            state.add(TickFeed.SHAPE, id -> Optional.of(plan), TickFeed.parse(frame), frame);
        }
        List<List<Claim>> claims = state.judge(TickFeed.SHAPE, plan, start).claims();
        long[] rows = state.windowOrNew(plan, start).rows().clone();
        claims.forEach(each -> TickSum.add(rows, TickFeed.keyPart(1, each, start)));
        assertEquals(2, claims.size());
        assertArrayEquals(new long[] {35, 42, 0}, rows);
    }

    @Test
    void aMissingTickIsNamed() throws Exception {
        List<byte[]> frames = new TickFeed(1, NOON).ticks(6, 1, 5).frames;
        StreamState state = member();
        for (int i = 0; i < frames.size(); i++) {
            if (i != 2) {
                add(state, frames.get(i));
            }
        }
        assertEquals(Incomplete.MISSING_BORDER, judge(state, 0).why());
        assertTrue(judge(state, 1).isComplete());
        assertEquals(Incomplete.MISSING_BORDER, judge(state, 2).why(), "it runs, and nothing has come");
        assertEquals(Incomplete.OFFLINE, judge(after(List.of()), 0).why());
        add(state, frames.get(2));
        assertTrue(judge(state, 0).isComplete());
    }

    @Test
    void settledWindowsLeaveWhatTheNextOneStartsWith() throws Exception {
        TickFeed feed = new TickFeed(1, NOON).ticks(3, 1, 5);
        StreamState state = after(feed.frames);
        settle(state, 0);
        assertRefused(Refusal.LATE, state, feed.frames.get(2));
        feed.ticks(3, 1, 5);
        feed.frames.subList(4, 7).forEach(frame -> {
            try {
                add(state, frame);
            } catch (Exception refused) {
                throw new AssertionError(refused);
            }
        });
        assertArrayEquals(new long[] {15, 18, 0}, opened(state, 1));
    }

    /** A window was settled without a stream whose last tick was late. The next window starts with it. */
    @Test
    void aLateTickIsTakenAsTheNextWindowsStart() throws Exception {
        List<byte[]> frames = new TickFeed(1, NOON).ticks(6, 1, 5).frames;
        StreamState state = after(frames.subList(0, 3));
        settle(state, 0);
        add(state, frames.get(3));
        assertRefused(Refusal.DUPLICATE, state, frames.get(3));
        for (byte[] frame : frames.subList(4, 7)) {
            add(state, frame);
        }
        assertArrayEquals(new long[] {15, 18, 0}, opened(state, 1));
    }

    @Test
    void stateIsTheSameAfterARestore() throws Exception {
        TickFeed feed = new TickFeed(1, NOON).ticks(2, 1, 5).sleep(2).ticks(1, 1, 5);
        StreamState state = after(feed.frames);
        state.ticks().setDevice(TickFeed.device());
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        state.write(new DataOutputStream(bytes));
        StreamState restored = StreamState.read(new DataInputStream(new ByteArrayInputStream(bytes.toByteArray())));
        ByteArrayOutputStream again = new ByteArrayOutputStream();
        restored.write(new DataOutputStream(again));
        assertArrayEquals(bytes.toByteArray(), again.toByteArray());
        assertArrayEquals(opened(state, 0), opened(restored, 0));
        feed.ticks(1, 1, 5);
        add(restored, feed.frames.get(5));
        assertArrayEquals(new long[] {10, 12, 0}, opened(restored, 1));
        assertRefused(Refusal.DUPLICATE, restored, feed.frames.get(5));
    }

    @Test
    void whatASendersFramesMayFillIsBounded() throws Exception {
        StreamState state = member();
        for (int i = 0; i < 50; i++) {
            add(state, new TickFeed(1, NOON, i).frames.get(0));
        }
        assertEquals(4, state.ticks().runs().all().size(), "openings that nothing followed");
        TickFeed feed = new TickFeed(1, NOON + TICK, 1000);
        for (int i = 0; i < 1100; i++) {
            feed.sleep(1);
        }
        int taken = 0;
        for (byte[] frame : feed.frames) {
            try {
                add(state, frame);
                taken++;
            } catch (RefusedException refused) {
                assertEquals(Refusal.TOO_MANY_GAPS, refused.refusal());
            }
        }
        assertEquals(1 + 1024, taken);
    }

    @Test
    void aStreamWithoutAPlanKeepsItsLatestClaimAlone() throws Exception {
        StreamState state = new StreamState();
        for (byte[] frame : new TickFeed(1, NOON - 20 * TICK).ticks(20, 1, 5).frames) {
            add(state, frame);
        }
        assertEquals(1, state.ticks().runs().all().get(0).claims().size());
        assertFalse(state.isUnused());
        // A plan whose first window starts there can use it.
        state.join(Feed.PLAN, 0);
        TickFeed again = new TickFeed(1, NOON - 20 * TICK).ticks(23, 1, 5);
        for (byte[] frame : again.frames.subList(21, 24)) {
            add(state, frame);
        }
        assertArrayEquals(new long[] {15, 18, 0}, opened(state, 0));
    }

    @Test
    void framesOffTheTickAreRefused() throws Exception {
        StreamState state = after(new TickFeed(1, NOON).frames);
        byte[] frame = new TickFeed(1, NOON).ticks(1, 1, 5).frames.get(1);
        frame[9] ^= 1;
        assertRefused(Refusal.BORDER_OFF_TICK, state, frame);
        byte[] other = new TickFeed(1, NOON, 5).ticks(1, 1, 5).frames.get(1);
        assertRefused(Refusal.UNKNOWN_SESSION, state, other);
    }
}
