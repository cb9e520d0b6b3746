// The keyed part under Flink's harness: summaries, opening sets, restores, dead letters.
package alpheus.flink;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import alpheus.flink.Messages.DeadLetter;
import alpheus.flink.Messages.Joined;
import alpheus.flink.Messages.PlanEnd;
import alpheus.flink.Parts.Sum;
import alpheus.stream.Frame;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.state.heap.HeapKeyedStateBackend;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.co.CoBroadcastWithKeyedOperator;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.util.KeyedBroadcastOperatorTestHarness;
import org.apache.flink.util.OutputTag;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class StreamSumsTest {
    private KeyedBroadcastOperatorTestHarness<String, byte[], byte[], byte[]> flink;

    @BeforeEach
    void start() throws Exception {
        flink = harness(null);
    }

    @AfterEach
    void stop() throws Exception {
        flink.close();
    }

    private static KeyedBroadcastOperatorTestHarness<String, byte[], byte[], byte[]> harness(
            OperatorSubtaskState from) throws Exception {
        return harness(from, Feed.SHAPE);
    }

    private static KeyedBroadcastOperatorTestHarness<String, byte[], byte[], byte[]> harness(
            OperatorSubtaskState from, Shape shape) throws Exception {
        var harness = new KeyedBroadcastOperatorTestHarness<String, byte[], byte[], byte[]>(
                new CoBroadcastWithKeyedOperator<>(
                        new StreamSums(shape), List.of(StreamSums.INSTRUCTIONS)),
                WindowSums::streamOf, Types.STRING, 128, 1, 0);
        harness.setup();
        if (from != null) {
            harness.initializeState(from);
        }
        harness.open();
        harness.setProcessingTime(Feed.NOON / 1000 + 3_600_000);
        return harness;
    }

    /** Continues from a checkpoint, in a task that has reported nothing yet. */
    private void restore() throws Exception {
        OperatorSubtaskState checkpoint = flink.snapshot(1, 1);
        flink.close();
        flink = harness(checkpoint);
    }

    private void instruct(byte[] instruction) throws Exception {
        flink.processBroadcastElement(new StreamRecord<>(instruction));
    }

    private void send(int stream, List<byte[]> frames) throws Exception {
        for (byte[] frame : frames) {
            flink.processElement(new StreamRecord<>(Feed.input(stream, frame), Frame.parse(frame).time() / 1000));
        }
    }

    private void watermark(long micros) throws Exception {
        flink.watermark(micros / 1000);
    }

    private List<Sum> sums() throws Exception {
        List<Sum> sums = new ArrayList<>();
        for (Object record : flink.getOutput()) {
            if (record instanceof StreamRecord<?> found) {
                sums.add(Sum.read((byte[]) found.getValue()));
            }
        }
        return sums;
    }

    private List<byte[]> side(OutputTag<byte[]> tag) {
        Queue<StreamRecord<byte[]>> records = flink.getSideOutput(tag);
        return records == null ? List.of() : records.stream().map(StreamRecord::getValue).toList();
    }

    private List<Summary> summaries() throws Exception {
        List<Summary> summaries = new ArrayList<>();
        for (byte[] bytes : side(StreamSums.SUMMARIES)) {
            if (Messages.kind(bytes) == Summary.KIND) {
                summaries.add(Summary.read(bytes));
            }
        }
        return summaries;
    }

    /** Kinds of the reports, in order. */
    private List<Integer> said() {
        return side(StreamSums.SUMMARIES).stream().map(Messages::kind).toList();
    }

    private void joined(int streams) throws Exception {
        instruct(Feed.planStart());
        for (int stream = 0; stream < streams; stream++) {
            flink.processElement(new StreamRecord<>(Feed.join(stream)));
        }
    }

    @Test
    void aWindowIsReportedAfterItsGraceAndSummedForItsOpeningSet() throws Exception {
        joined(3);
        List<List<byte[]>> all = new ArrayList<>();
        for (int stream = 0; stream < 3; stream++) {
            all.add(Feed.frames(stream, 3, 2, stream + 1));
            send(stream, all.get(stream));
        }
        watermark(Feed.NOON + 3 * Feed.TICK + 4_999_000);
        assertEquals(0, summaries().size(), "its grace is not over");
        watermark(Feed.NOON + 3 * Feed.TICK + 5_000_000);
        assertEquals(3, summaries().stream().filter(it -> it.judgement().isComplete()).count());
        assertEquals(6, summaries().get(0).judgement().events());

        instruct(Feed.opening(0, 0, 2).bytes());
        assertEquals(1, sums().size(), "one part for all of a task's streams");
        Sum sum = sums().get(0);
        assertEquals(2, sum.count());
        assertArrayEquals(sum.wantedDigest(), sum.digest());
        long[] rows = sum.rows().clone();
        for (int stream : new int[] {0, 2}) {
            Feed.decrypt(rows, stream, Frame.parse(all.get(stream).get(0)).session(), Feed.NOON);
        }
        assertArrayEquals(new long[] {6 * 1 + 6 * 3, 24 + 12, 0}, rows);
        instruct(Feed.opening(0, 0, 1, 2).bytes());
        assertEquals(1, sums().size(), "a window opens once");
    }

    /** After a restore the opening set may come before its events. */
    @Test
    void aSetBeforeTheEventsGivesTheSameSum() throws Exception {
        joined(1);
        List<byte[]> frames = Feed.frames(0, 3, 2, 9);
        send(0, frames.subList(0, 4));
        OperatorSubtaskState checkpoint = flink.snapshot(1, 1);
        send(0, frames.subList(4, frames.size()));
        instruct(Feed.opening(0, 0).bytes());
        Sum before = sums().get(0);
        flink.close();

        flink = harness(checkpoint);
        instruct(Feed.opening(0, 0).bytes());
        assertEquals(0, sums().size());
        send(0, frames.subList(4, frames.size()));
        assertEquals(1, sums().size());
        assertArrayEquals(before.bytes(), sums().get(0).bytes());
        send(0, frames.subList(4, frames.size()));
        assertEquals(1, sums().size(), "once");
    }

    /** Sets of later windows settle only their own windows. */
    @Test
    void setsMayComeInAnyOrderAndBeforeThePlan() throws Exception {
        instruct(Feed.opening(1, 0).bytes());
        instruct(Feed.opening(0, 0).bytes());
        joined(1);
        send(0, Feed.frames(0, 6, 2, 9));
        assertEquals(List.of(Feed.NOON, Feed.NOON + Feed.PLAN.window()), sums().stream().map(Sum::start).toList());
    }

    @Test
    void noEventIsLateForAWindowWhoseSetIsNotKnown() throws Exception {
        joined(1);
        List<byte[]> frames = Feed.frames(0, 4, 2, 9);
        send(0, frames.subList(0, 8));
        watermark(Feed.NOON + 20 * Feed.TICK);
        assertEquals(Incomplete.MISSING_BORDER, summaries().get(0).judgement().why());
        send(0, frames.subList(8, 10));
        List<Summary> said = summaries();
        assertTrue(said.get(said.size() - 1).judgement().isComplete(), "reported again once it is complete");
        assertEquals(Feed.NOON, said.get(said.size() - 1).start());
    }

    @Test
    void streamsOutsideTheSetAreSettledToo() throws Exception {
        joined(2);
        send(0, Feed.frames(0, 3, 1, 1));
        List<byte[]> late = Feed.frames(1, 3, 1, 1);
        send(1, late.subList(0, 3));
        instruct(Feed.opening(0, 0).bytes());
        assertEquals(1, sums().size());
        send(1, late.subList(3, 4));
        assertEquals(List.of("late"), reasons());
    }

    @Test
    void rejectedRecordsGoToTheDeadLettersWithTheReason() throws Exception {
        joined(1);
        List<byte[]> frames = Feed.frames(0, 3, 2, 9);
        send(0, frames);
        send(0, frames.subList(2, 3));
        flink.processElement(new StreamRecord<>(Feed.input(0, new byte[] {1, 2, 3})));
        flink.setProcessingTime(Feed.NOON / 1000 - 60_000);
        flink.processElement(new StreamRecord<>(Feed.input(0, frames.get(3))));
        assertEquals(List.of("duplicate", "malformed", "future"), reasons());
        assertArrayEquals(frames.get(2), DeadLetter.read(side(StreamSums.DEAD_LETTERS).get(0)).frame());
    }

    private List<String> reasons() throws Exception {
        List<String> reasons = new ArrayList<>();
        for (byte[] letter : side(StreamSums.DEAD_LETTERS)) {
            reasons.add(DeadLetter.read(letter).reason());
        }
        return reasons;
    }

    @Test
    void unknownStreamsLeaveNoState() throws Exception {
        joined(1);
        int before = states();
        flink.processElement(new StreamRecord<>(Feed.input(7, new byte[] {1})));
        flink.processElement(new StreamRecord<>(Feed.input(8, Feed.frames(8, 1, 1, 1).get(1))));
        assertEquals(before, states());
    }

    /** Without state, events and joins are read after instructions. */
    @Test
    void aJoinAfterThePlansEndLeavesNoState() throws Exception {
        instruct(Feed.planStart());
        instruct(new PlanEnd(Feed.PLAN.plan()).bytes());
        flink.processElement(new StreamRecord<>(Feed.join(0)));
        assertEquals(0, states());
        instruct(Feed.planStart());
        flink.processElement(new StreamRecord<>(Feed.join(0)));
        assertEquals(0, states(), "a plan does not begin again");
        instruct(Feed.opening(0, 0).bytes());
        send(0, Feed.frames(0, 3, 1, 1));
        assertEquals(0, sums().size());
    }

    @Test
    void windowsOpenedBeforeAStreamJoinedAreSettled() throws Exception {
        instruct(Feed.planStart());
        instruct(Feed.opening(0, 1).bytes());
        flink.processElement(new StreamRecord<>(Feed.join(0)));
        send(0, Feed.frames(0, 4, 1, 1));
        assertEquals(List.of("late", "late", "late", "late", "late", "late"), reasons());
    }

    @Test
    void aPlanThatArrivesAfterItsFirstWindowIsReported() throws Exception {
        flink.processElement(new StreamRecord<>(Feed.join(0)));
        send(0, Feed.frames(0, 6, 1, 1));
        watermark(Feed.NOON + 6 * Feed.TICK + 1_000_000);
        instruct(Feed.planStart());
        watermark(Feed.NOON + 6 * Feed.TICK + 10_000_000);
        assertEquals(List.of(Feed.start(0), Feed.start(1)), summaries().stream().map(Summary::start).toList());
    }

    @Test
    void aStreamWithoutPlanIsRemovedAfterTwoDays() throws Exception {
        joined(1);
        send(0, Feed.frames(0, 1, 1, 1));
        int before = states();
        send(7, Feed.frames(7, 1, 1, 1));
        assertEquals(before + 1, states());
        flink.setProcessingTime(Feed.NOON / 1000 + 4 * 86_400_000L);
        assertEquals(before, states());
        instruct(Feed.opening(0, 0).bytes());
        send(0, Feed.frames(0, 3, 1, 1).subList(3, 7));
        assertEquals(1, sums().size(), "a stream in a plan is not removed");
    }

    /** As after a restart: the next session's frames arrive before time has passed the end of the last session. */
    @Test
    void aSessionThatOpensBeforeTimeHasPassedTheLastOneIsReported() throws Exception {
        joined(1);
        List<byte[]> frames = new ArrayList<>();
        Feed.open(0, Feed.NOON, frames).close(Feed.NOON + 3 * Feed.TICK);
        Feed.open(0, Feed.NOON + 9 * Feed.TICK, frames).advance(Feed.NOON + 12 * Feed.TICK);
        send(0, frames);
        watermark(Feed.NOON + 12 * Feed.TICK + 5_000_000);
        assertEquals(List.of(Feed.start(0), Feed.start(3)), summaries().stream().map(Summary::start).toList());
    }

    /** The policy manager must know that the job knows a stream. Otherwise silence could mean that it does not. */
    @Test
    void aJoinIsReportedOnceAndAfterEarlierWindows() throws Exception {
        joined(1);
        send(0, Feed.frames(0, 9, 1, 1));
        assertEquals(List.of(), said());
        watermark(Feed.NOON + 3 * Feed.TICK + 5_000_000);
        assertEquals(List.of(Summary.KIND, Joined.KIND), said());
        watermark(Feed.NOON + 6 * Feed.TICK + 5_000_000);
        assertEquals(List.of(Summary.KIND, Joined.KIND, Summary.KIND), said());
        restore();
        watermark(Feed.NOON + 9 * Feed.TICK + 5_000_000);
        assertEquals(List.of(Summary.KIND), said(), "not again after a restore");
        flink.processElement(new StreamRecord<>(Feed.join(0)));
        watermark(Feed.NOON + 12 * Feed.TICK + 5_000_000);
        assertEquals(List.of(Summary.KIND, Summary.KIND, Joined.KIND), said(), "again if the join is repeated");
    }

    @Test
    void offlineStreamsJoinToo() throws Exception {
        joined(1);
        watermark(Feed.NOON + 3 * Feed.TICK + 5_000_000);
        assertEquals(List.of(Joined.KIND), said());
        Joined joined = Joined.read(side(StreamSums.SUMMARIES).get(0));
        assertEquals(new Joined(Feed.stream(0).toString(), Feed.PLAN.plan(), 0), joined);
    }

    /** As when the job was down while the plan started, and reads events faster than instructions. */
    @Test
    void windowsBeforeALateJoinAreReportedWithTheReason() throws Exception {
        instruct(Feed.planStart());
        send(0, Feed.frames(0, 7, 1, 1));
        watermark(Feed.NOON + 6 * Feed.TICK + 5_000_000);
        flink.processElement(new StreamRecord<>(Feed.join(0)));
        watermark(Feed.NOON + 7 * Feed.TICK);
        assertEquals(List.of(Feed.start(0), Feed.start(1)), summaries().stream().map(Summary::start).toList());
        List<Incomplete> reasons = summaries().stream().map(Summary::judgement).map(Judgement::why).toList();
        assertEquals(List.of(Incomplete.BEFORE_PLAN, Incomplete.BEFORE_PLAN), reasons);
        assertEquals(Joined.KIND, said().get(1), "and once it was");
    }

    /** Replayed frames arrive before the first watermark. */
    @Test
    void aWindowThatBecomesCompleteAfterARestoreIsReported() throws Exception {
        joined(1);
        List<byte[]> frames = Feed.frames(0, 3, 1, 1);
        send(0, frames.subList(0, frames.size() - 1));
        watermark(Feed.NOON + 3 * Feed.TICK + 5_000_000);
        assertEquals(Incomplete.MISSING_BORDER, summaries().get(0).judgement().why());
        restore();
        send(0, frames.subList(frames.size() - 1, frames.size()));
        assertTrue(summaries().get(0).judgement().isComplete());
    }

    @Test
    void earlyEventsBeforeTheJoinAreSummed() throws Exception {
        flink.setProcessingTime(Feed.NOON / 1000);
        send(0, Feed.frames(0, 1, 1, 1));
        joined(1);
        flink.setProcessingTime(Feed.NOON / 1000 + 3_600_000);
        send(0, Feed.frames(0, 3, 1, 1).subList(3, 7));
        watermark(Feed.NOON + 3 * Feed.TICK + 5_000_000);
        assertTrue(summaries().get(0).judgement().isComplete());
    }

    /** Sums of another schema look the same but mean something else. */
    @Test
    void stateOfAnotherSchemaIsRejected() throws Exception {
        joined(1);
        OperatorSubtaskState checkpoint = flink.snapshot(1, 1);
        flink.close();
        Shape shape = Feed.SHAPE;
        Shape other = new Shape(shape.words(), shape.tick(), shape.events(), shape.skew(), "5d");
        assertThrows(Exception.class, () -> harness(checkpoint, other));
        flink = harness(checkpoint);
    }

    private int states() {
        var operator = (AbstractStreamOperator<?>) flink.getOperator();
        return ((HeapKeyedStateBackend<?>) operator.getKeyedStateBackend()).numKeyValueStateEntries();
    }
}
