// One stream's sums: what counts, what is rejected and why, in any order.
package alpheus.flink;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import alpheus.stream.Frame;
import alpheus.stream.Session;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import org.junit.jupiter.api.Test;

class StreamStateTest {
    private static final Map<String, PlanView> PLANS = Map.of(Feed.PLAN.plan(), Feed.PLAN);
    private static final long TICK = Feed.TICK;
    private static final long NOON = Feed.NOON;
    /** After every frame of these tests. */
    private static final long LATER = NOON + 86_400_000_000L;

    private static StreamState member() {
        StreamState state = new StreamState();
        state.join(Feed.PLAN, 0);
        return state;
    }

    private static void add(StreamState state, byte[] frame) throws Exception {
        add(state, frame, LATER);
    }

    /** Adds a frame that arrives at a time. */
    private static void add(StreamState state, byte[] frame, long now) throws Exception {
        state.add(Feed.SHAPE, id -> Optional.ofNullable(PLANS.get(id)), Frame.parse(frame), now);
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
        return state.judge(Feed.SHAPE, Feed.PLAN, NOON + window * Feed.PLAN.window());
    }

    @Test
    void aCompleteWindowOpensToTheExpectedSum() throws Exception {
        List<byte[]> frames = Feed.frames(1, 3, 2, 7);
        StreamState state = after(frames);
        Judgement judgement = judge(state, 0);
        assertTrue(judgement.isComplete());
        assertEquals(6, judgement.events());
        long[] rows = state.window(Feed.PLAN.plan(), NOON).rows().clone();
        Feed.decrypt(rows, 1, Frame.parse(frames.get(0)).session(), NOON);
        assertArrayEquals(new long[] {42, 48, 0}, rows);
    }

    @Test
    void orderDoesNotMatterExceptForTheOpening() throws Exception {
        List<byte[]> frames = Feed.frames(1, 6, 5, 3);
        long[] expected = after(frames).window(Feed.PLAN.plan(), NOON).rows();
        for (int seed = 0; seed < 20; seed++) {
            List<byte[]> shuffled = new ArrayList<>(frames.subList(1, frames.size()));
            Collections.shuffle(shuffled, new Random(seed));
            shuffled.add(0, frames.get(0));
            StreamState state = after(shuffled);
            assertArrayEquals(expected, state.window(Feed.PLAN.plan(), NOON).rows());
            assertTrue(judge(state, 0).isComplete() && judge(state, 1).isComplete());
        }
    }

    /** With any fault of one frame, the window opens to the expected sum or is incomplete. */
    @Test
    void everySingleFaultIsDetected() throws Exception {
        List<byte[]> frames = Feed.frames(1, 3, 3, 5);
        for (int i = 1; i < frames.size(); i++) {
            List<byte[]> gap = new ArrayList<>(frames);
            gap.remove(i);
            assertFalse(judge(after(gap), 0).isComplete(), "missing " + i);
        }
    }

    @Test
    void duplicatesNeverChangeASum() throws Exception {
        List<byte[]> frames = Feed.frames(1, 3, 2, 5);
        StreamState state = after(frames);
        long[] before = state.window(Feed.PLAN.plan(), NOON).rows().clone();
        for (byte[] frame : frames.subList(1, frames.size())) {
            assertRefused(Refusal.DUPLICATE, state, frame);
        }
        assertRefused(Refusal.BACKDATED, member(frames), Feed.frames(2, 0, 0, 0).get(0));
        assertArrayEquals(before, state.window(Feed.PLAN.plan(), NOON).rows());
    }

    private static StreamState member(List<byte[]> frames) throws Exception {
        return after(frames);
    }

    @Test
    void anEventTwiceInAnOpenTickIsADuplicate() throws Exception {
        List<byte[]> frames = Feed.frames(1, 1, 2, 5);
        StreamState state = after(frames.subList(0, 3));
        add(state, frames.get(2));
        add(state, frames.get(3));
        assertEquals(Incomplete.DUPLICATE, judge(state, 0).why());
    }

    @Test
    void reasonsAreThoseOfTheEmbeddedDeployment() throws Exception {
        List<byte[]> frames = Feed.frames(1, 3, 2, 5);
        List<byte[]> gap = new ArrayList<>(frames);
        gap.remove(5);
        assertEquals(Incomplete.GAP, judge(after(gap), 0).why());
        assertEquals(Incomplete.MISSING_BORDER, judge(after(frames.subList(0, 8)), 0).why());
        StreamState late = member();
        List<byte[]> second = new ArrayList<>();
        Session session = Feed.open(1, NOON + TICK, second);
        session.advance(NOON + 3 * TICK);
        for (byte[] frame : second) {
            add(late, frame);
        }
        assertEquals(Incomplete.OFFLINE, judge(late, 0).why());
    }

    @Test
    void aDeadSessionCostsOnlyItsOwnTick() throws Exception {
        StreamState state = after(Feed.frames(1, 3, 2, 5));
        List<byte[]> second = new ArrayList<>();
        Session session = Feed.open(1, NOON + 4 * TICK, second);
        session.advance(NOON + 9 * TICK);
        for (byte[] frame : second) {
            add(state, frame);
        }
        assertTrue(judge(state, 0).isComplete());
        assertEquals(Incomplete.SESSION_DIED, judge(state, 1).why());
        assertTrue(judge(state, 2).isComplete());
        byte[] tail = Feed.frames(1, 5, 2, 5).get(14);
        assertRefused(Refusal.SESSION_ENDED, state, tail);
    }

    @Test
    void sessionsOfOneWindowTileIt() throws Exception {
        List<byte[]> frames = new ArrayList<>();
        Feed.open(1, NOON, frames).close(NOON + TICK);
        Feed.open(1, NOON + TICK, frames).advance(NOON + 3 * TICK);
        Judgement judgement = judge(after(frames), 0);
        assertTrue(judgement.isComplete());
        assertEquals(2, judgement.segments().size());
        assertTrue(judgement.segments().get(1).opens());
    }

    @Test
    void misplacedFramesAreRejectedWithASpecificReason() throws Exception {
        List<byte[]> frames = Feed.frames(1, 3, 2, 5);
        assertRefused(Refusal.UNKNOWN_SESSION, member(), frames.get(1));
        assertRefused(Refusal.SESSION_KNOWN, after(frames.subList(0, 1)), frames.get(0));
        assertRefused(Refusal.MALFORMED, after(frames.subList(0, 1)), java.util.Arrays.copyOf(frames.get(1), 33));
        StreamState opened = after(frames.subList(0, 1));
        assertRefused(Refusal.BORDER_OFF_TICK, opened, moved(frames.get(3), 5));
        assertRefused(Refusal.DATA_ON_TICK, opened, moved(frames.get(1), TICK - 1000));
        assertRefused(Refusal.CROSSES_TICK, opened, moved(frames.get(1), TICK));
    }

    /** The same frame at a later time. */
    private static byte[] moved(byte[] frame, long micros) throws Exception {
        byte[] moved = frame.clone();
        java.nio.ByteBuffer.wrap(moved).order(java.nio.ByteOrder.LITTLE_ENDIAN)
                .putLong(9, Frame.parse(frame).time() + micros);
        return moved;
    }

    @Test
    void framesOfSettledWindowsAreLate() throws Exception {
        List<byte[]> frames = Feed.frames(1, 6, 2, 5);
        StreamState state = after(frames.subList(0, 2));
        state.settle(Feed.SHAPE, id -> Optional.ofNullable(PLANS.get(id)), Feed.PLAN.plan(), NOON, Feed.PLAN.window());
        assertRefused(Refusal.LATE, state, frames.get(2));
        for (byte[] frame : frames.subList(10, frames.size())) {
            add(state, frame);
        }
        assertTrue(judge(state, 1).isComplete());
        assertNull(state.window(Feed.PLAN.plan(), NOON));
    }

    @Test
    void aPlanThatArrivesLateLosesNothing() throws Exception {
        StreamState state = member();
        for (byte[] frame : Feed.frames(1, 3, 2, 5)) {
            state.add(Feed.SHAPE, id -> Optional.empty(), Frame.parse(frame), LATER);
        }
        assertFalse(judge(state, 0).isComplete());
        state.start(Feed.PLAN);
        assertTrue(judge(state, 0).isComplete());
    }

    /** A device with a fast clock, or one that sends ahead. */
    @Test
    void earlyTicksCountForALaterPlan() throws Exception {
        List<byte[]> frames = Feed.frames(1, 6, 2, 5);
        for (boolean early : new boolean[] {true, false}) {
            StreamState state = new StreamState();
            for (byte[] frame : frames) {
                add(state, frame, early ? NOON : LATER);
            }
            state.join(Feed.PLAN, 0);
            assertEquals(early, judge(state, 0).isComplete());
            assertEquals(early, judge(state, 1).isComplete());
            assertEquals(NOON, state.members().get(Feed.PLAN.plan()).nextReport(), "it was online, even if too early");
        }
    }

    @Test
    void dueTicksAreDroppedAndTheOthersAreLimited() throws Exception {
        StreamState state = new StreamState();
        for (byte[] frame : Feed.frames(1, 2000, 1, 5)) {
            add(state, frame, NOON);
        }
        assertTrue(size(state) < 10_000, size(state) + " bytes");
        Frame border = Frame.parse(Feed.frames(1, 2001, 1, 5).get(4002));
        assertEquals(NOON + 2001 * TICK, border.time());
        int before = size(state);
        add(state, Feed.frames(1, 2001, 1, 5).get(4001), LATER);
        add(state, Feed.frames(1, 2001, 1, 5).get(4002), LATER);
        assertTrue(10 * size(state) < before, size(state) + " bytes");
    }

    /** A service repeats a join if it is not sure that it was sent. */
    @Test
    void aRepeatedJoinSkipsNoWindow() throws Exception {
        StreamState state = after(Feed.frames(1, 7, 1, 5));
        state.join(Feed.PLAN, 0);
        assertEquals(NOON, state.members().get(Feed.PLAN.plan()).nextReport());
    }

    private static int size(StreamState state) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        state.write(new DataOutputStream(bytes));
        return bytes.size();
    }

    @Test
    void ticksThatWaitForAPlanAreLimited() throws Exception {
        StreamState state = member();
        for (byte[] frame : Feed.frames(1, 2000, 1, 5)) {
            state.add(Feed.SHAPE, id -> Optional.empty(), Frame.parse(frame), LATER);
        }
        assertTrue(size(state) < 10_000, size(state) + " bytes");
    }

    /** A frame of one word costs its sender 33 bytes; it must not cost us a vector. */
    @Test
    void rejectedFramesUseNoState() throws Exception {
        Shape wide = new Shape(8192, TICK, 1000, TICK, "");
        StreamState state = member();
        List<byte[]> frames = Feed.frames(1, 2000, 1, 5);
        state.add(wide, id -> Optional.of(Feed.PLAN), Frame.parse(frames.get(0)), LATER);
        for (byte[] frame : frames.subList(1, frames.size())) {
            assertThrows(RefusedException.class,
                    () -> state.add(wide, id -> Optional.of(Feed.PLAN), Frame.parse(frame), LATER));
        }
        assertTrue(size(state) < 20_000, size(state) + " bytes");
    }

    /** Frames of an unknown stream, each alone in its tick. */
    @Test
    void aStreamWithoutPlanKeepsFewTicks() throws Exception {
        StreamState state = new StreamState();
        for (byte[] frame : Feed.frames(1, 2000, 1, 5)) {
            if (Frame.parse(frame).kind() != Frame.Kind.BORDER) {
                add(state, frame);
            }
        }
        assertTrue(size(state) < 1_000, size(state) + " bytes");
        List<byte[]> rest = Feed.frames(1, 2001, 2, 5);
        state.join(Feed.PLAN, 0);
        assertRefused(Refusal.DUPLICATE, state, rest.get(3));
    }

    /** A plan is announced hours before it starts. Its streams continue as before. */
    @Test
    void framesBeforeAPlanStartsAreAccepted() throws Exception {
        PlanView later = new PlanView(
                Feed.PLAN.plan(), 3 * TICK, 5_000_000, NOON + 6 * TICK, 0, Feed.PLAN.rows());
        StreamState state = new StreamState();
        state.join(later, 0);
        List<byte[]> frames = new ArrayList<>();
        Session first = Feed.open(1, NOON, frames);
        first.event(NOON + 1, vector -> vector[0] = 1);
        first.close(NOON + 2 * TICK);
        for (byte[] frame : frames) {
            state.add(Feed.SHAPE, id -> Optional.of(later), Frame.parse(frame), LATER);
        }
        assertFalse(state.resume(later, new Member(0, later.from())), "it has closed its session");
        frames.clear();
        Feed.open(1, NOON + 3 * TICK, frames).advance(NOON + 9 * TICK);
        for (byte[] frame : frames) {
            state.add(Feed.SHAPE, id -> Optional.of(later), Frame.parse(frame), LATER);
        }
        assertTrue(state.judge(Feed.SHAPE, later, later.from()).isComplete());
    }

    /** The end of a session counts although its window is settled, as when sets are read before events. */
    @Test
    void aSessionClosesInASettledWindow() throws Exception {
        StreamState state = member();
        state.settle(Feed.SHAPE, id -> Optional.ofNullable(PLANS.get(id)), Feed.PLAN.plan(), NOON, Feed.PLAN.window());
        List<byte[]> frames = new ArrayList<>();
        Feed.open(1, NOON, frames).close(NOON + 2 * TICK);
        add(state, frames.get(0));
        assertRefused(Refusal.LATE, state, frames.get(1));
        assertRefused(Refusal.LATE, state, frames.get(2));
        assertFalse(state.resume(Feed.PLAN, new Member(0, NOON + Feed.PLAN.window())));
    }

    /** One opening set that never arrives must not keep everything after it. */
    @Test
    void anUnsettledWindowIsGivenUpAfterAWeek() throws Exception {
        long day = 86_400_000_000L;
        Member member = new Member(0, 0);
        for (int days = 1; days < 8; days++) {
            member.settle(days * day, day);
        }
        assertEquals(0, member.settled());
        member.settle(8 * day, day);
        assertEquals(9 * day, member.settled());
        Member fast = new Member(0, 0);
        for (long window = 1; window <= 70_000; window++) {
            fast.settle(window * TICK / 10, TICK / 10);
        }
        assertEquals(70_001 * TICK / 10, fast.settled());
    }

    @Test
    void stateIsRestoredAsWritten() throws Exception {
        StreamStateSerializer serializer = new StreamStateSerializer("5c");
        List<byte[]> frames = Feed.frames(1, 9, 4, 5);
        for (int cut = 1; cut < frames.size(); cut++) {
            StreamState state = serializer.copy(after(frames.subList(0, cut)));
            for (byte[] frame : frames.subList(cut, frames.size())) {
                add(state, frame);
            }
            assertTrue(judge(state, 0).isComplete() && judge(state, 2).isComplete(), "cut at " + cut);
        }
    }
}
