// Tick frames under Flink's harness: checks, summaries, opening sets, restores, dead letters.
package alpheus.flink;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import alpheus.flink.Messages.DeadLetter;
import alpheus.flink.Parts.Sum;
import alpheus.stream.Start;
import alpheus.stream.TickSum;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Queue;
import java.util.Random;
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

class TickSumsTest {
    private static final long TICK = Feed.TICK;
    private static final long NOON = Feed.NOON;

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
        var harness = new KeyedBroadcastOperatorTestHarness<String, byte[], byte[], byte[]>(
                new CoBroadcastWithKeyedOperator<>(
                        new StreamSums(TickFeed.SHAPE, TickFeed::ingest), List.of(StreamSums.INSTRUCTIONS)),
                WindowSums::streamOf, Types.STRING, 128, 1, 0);
        harness.setup();
        if (from != null) {
            harness.initializeState(from);
        }
        harness.open();
        harness.setProcessingTime(NOON / 1000 + 3_600_000);
        return harness;
    }

    private void send(byte[] element) throws Exception {
        flink.processElement(new StreamRecord<>(element));
    }

    private void send(int stream, List<byte[]> frames) throws Exception {
        for (byte[] input : TickFeed.inputs(stream, frames)) {
            send(input);
        }
    }

    /** A plan with this stream in it, whose device is known. */
    private void begin(int stream) throws Exception {
        send(TickFeed.deviceOf(stream));
        flink.processBroadcastElement(new StreamRecord<>(Feed.planStart()));
        send(Feed.join(stream));
    }

    private int states() {
        var operator = (AbstractStreamOperator<?>) flink.getOperator();
        return ((HeapKeyedStateBackend<?>) operator.getKeyedStateBackend()).numKeyValueStateEntries();
    }

    private List<byte[]> side(OutputTag<byte[]> tag) {
        Queue<StreamRecord<byte[]>> out = flink.getSideOutput(tag);
        List<byte[]> all = new ArrayList<>();
        if (out != null) {
            out.forEach(record -> all.add(record.getValue()));
            out.clear();
        }
        return all;
    }

    private List<Summary> summaries() throws Exception {
        List<Summary> all = new ArrayList<>();
        for (byte[] each : side(StreamSums.SUMMARIES)) {
            if (Messages.kind(each) == Summary.OF_TICKS) {
                all.add(Summary.read(each));
            }
        }
        return all;
    }

    private List<String> reasons() throws Exception {
        List<String> all = new ArrayList<>();
        for (byte[] each : side(StreamSums.DEAD_LETTERS)) {
            all.add(DeadLetter.read(each).reason());
        }
        return all;
    }

    private List<Sum> sums() throws Exception {
        List<Sum> all = new ArrayList<>();
        for (byte[] each : flink.extractOutputValues()) {
            all.add(Sum.read(each));
        }
        return all;
    }

    private void timeTo(int window) throws Exception {
        flink.watermark((Feed.start(window) + Feed.PLAN.window() + Feed.PLAN.grace()) / 1000);
    }

    private void open(int window, int... streams) throws Exception {
        flink.processBroadcastElement(new StreamRecord<>(Feed.opening(window, streams).bytes()));
    }

    private static long[] opened(Sum sum, Summary summary, int stream) {
        long[] rows = sum.rows().clone();
        summary.judgement().claims().forEach(claims ->
                TickSum.add(rows, TickFeed.keyPart(stream, claims, summary.start())));
        return rows;
    }

    @Test
    void aWindowIsReportedWithItsClaimsAndOpensToTheSum() throws Exception {
        begin(1);
        send(1, new TickFeed(1, NOON).ticks(2, 2, 7).sleep(4).frames);
        timeTo(1);
        List<Summary> summaries = summaries();
        assertEquals(2, summaries.size());
        open(0, 1);
        open(1, 1);
        List<Sum> sums = sums();
        assertArrayEquals(new long[] {28, 32, 0}, opened(sums.get(0), summaries.get(0), 1));
        assertArrayEquals(new long[3], sums.get(1).rows(), "asleep all the time");
        assertEquals(summaries.get(0).checkSum(), sums.get(0).rows()[2]);
        assertTrue(reasons().isEmpty());
    }

    @Test
    void nothingCountsThatIsNotItsDevices() throws Exception {
        begin(1);
        TickFeed good = new TickFeed(1, NOON).ticks(3, 1, 5);
        List<byte[]> strangers = new ArrayList<>();
        TickFeed.producer(1, "ingest_seed").open(
                new Start.First(), NOON, Optional.empty(), new Random(9), strangers::add).advance(NOON + TICK);
        send(1, strangers);
        assertEquals(List.of("bad-signature", "unknown-session"), reasons());
        byte[] unkeyed = good.frames.get(0).clone();
        unkeyed[unkeyed.length - 1] ^= 1;
        send(1, List.of(unkeyed));
        assertEquals(List.of("bad-mac"), reasons());
        send(1, new TickFeed(2, NOON).ticks(1, 1, 5).frames);
        assertEquals(List.of("bad-signature", "unknown-session"), reasons(), "another stream's");
        byte[] changed = good.frames.get(2).clone();
        changed[70] ^= 1;
        send(1, List.of(good.frames.get(0), good.frames.get(1), changed, good.frames.get(3)));
        assertEquals(List.of("bad-mac"), reasons());
        timeTo(0);
        assertEquals(Incomplete.MISSING_BORDER, summaries().get(0).judgement().why());
        // What the device itself sent still counts.
        send(1, List.of(good.frames.get(2)));
        assertTrue(summaries().get(0).judgement().isComplete());
    }

    @Test
    void framesWaitForTheirDeviceToBeKnown() throws Exception {
        flink.processBroadcastElement(new StreamRecord<>(Feed.planStart()));
        send(Feed.join(1));
        send(1, new TickFeed(1, NOON).ticks(3, 1, 5).frames);
        assertTrue(reasons().isEmpty());
        send(TickFeed.deviceOf(1));
        timeTo(0);
        assertTrue(summaries().get(0).judgement().isComplete());
    }

    /** Anyone who may write to the topic can make up streams. They leave little. */
    @Test
    void aStreamThatNobodyHasNamedKeepsFewFrames() throws Exception {
        List<byte[]> frames = new TickFeed(1, NOON).ticks(9, 1, 5).frames;
        send(1, frames);
        assertEquals(List.of("unknown-device", "unknown-device"), reasons());
        byte[] longer = Arrays.copyOf(frames.get(1), frames.get(1).length + 8);
        send(2, List.of(longer));
        assertEquals(List.of("malformed"), reasons());
        assertEquals(1, states());
        // After two days nothing is left of it.
        flink.setProcessingTime(NOON / 1000 + 4 * 86_400_000L);
        assertEquals(0, states());
    }

    @Test
    void onlyTheDeviceThatIsNamedMayOpen() throws Exception {
        byte[] other = new byte[32];
        other[0] = 1;
        send(new Messages.DeviceIs(Feed.stream(1).toString(), new Device(other, TickFeed.device().key())).bytes());
        send(1, new TickFeed(1, NOON).frames);
        assertEquals(List.of("unknown-device"), reasons());
        send(TickFeed.deviceOf(1));
        send(1, new TickFeed(1, NOON).frames);
        assertTrue(reasons().isEmpty());
    }

    @Test
    void aRestoredTaskGoesOnAndContributesOnce() throws Exception {
        begin(1);
        TickFeed feed = new TickFeed(1, NOON).ticks(2, 1, 5);
        send(1, feed.frames);
        open(0, 1);
        OperatorSubtaskState state = flink.snapshot(1, 1);
        flink.close();
        flink = harness(state);
        feed.ticks(2, 1, 5);
        // The session's key is unsealed again from its opening.
        send(1, feed.frames.subList(3, 5));
        assertEquals(1, sums().size());
        send(1, feed.frames);
        assertEquals(1, sums().size());
        assertEquals(List.of("session-known", "late", "late", "duplicate", "duplicate"), reasons());
        flink.processBroadcastElement(new StreamRecord<>(Feed.planStart()));
        assertEquals(1, sums().size(), "the service repeats what it may not have sent");
    }

    /** A gap that comes after its windows have ended completes all of them. */
    @Test
    void aLateGapCompletesEveryWindowInIt() throws Exception {
        begin(1);
        TickFeed feed = new TickFeed(1, NOON).ticks(1, 1, 5);
        send(1, feed.frames);
        timeTo(2);
        assertTrue(summaries().stream().noneMatch(summary -> summary.judgement().isComplete()));
        open(1, 1);
        feed.sleep(8);
        send(1, feed.frames.subList(2, 3));
        List<Summary> complete = summaries();
        assertEquals(2, complete.size(), "windows 0 and 2; 1 has opened");
        assertTrue(complete.stream().allMatch(summary -> summary.judgement().isComplete()));
        assertEquals(1, sums().size());
        assertArrayEquals(new long[3], sums().get(0).rows());
        flink.processBroadcastElement(new StreamRecord<>(Feed.planStart()));
        assertEquals(1, sums().size(), "once, though its gap is still known");
    }

    @Test
    void aConflictReachesTheController() throws Exception {
        begin(1);
        send(1, new TickFeed(1, NOON).ticks(3, 1, 5).frames);
        byte[] other = new TickFeed(1, NOON).ticks(3, 2, 5).frames.get(3);
        send(1, List.of(other));
        assertEquals(List.of("conflicting-frame"), reasons());
        timeTo(0);
        assertEquals(2, summaries().get(0).judgement().conflict().size());
    }
}
