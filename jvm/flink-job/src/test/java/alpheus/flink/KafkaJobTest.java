// The whole job over a real broker: every fault, and the expected sums of the input topic.
package alpheus.flink;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import alpheus.broker.Broker;
import alpheus.flink.Messages.FrameIn;
import alpheus.flink.Messages.WindowSum;
import alpheus.stream.Session;
import alpheus.stream.TickSum;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(3000)
class KafkaJobTest {
    private static final int STREAMS = 9;
    private static final int EVENTS = 4;
    private static final int FRAMES_A_TICK = EVENTS + 1;
    private static final int TICKS = 14;
    private static final int[] ALL = IntStream.range(0, STREAMS).toArray();

    @TempDir
    private Path folder;

    private final Broker broker = Broker.shared();
    private final List<List<byte[]>> frames = new ArrayList<>();
    private Cluster flink;
    private Desk desk;
    private JobConfig config;

    @BeforeEach
    void start(TestInfo test) throws Exception {
        config = config(test.getTestMethod().orElseThrow().getName());
        Shape shape = config.shape();
        assertEquals(Feed.SHAPE, new Shape(
                shape.words(), shape.tick(), shape.events(), shape.skew(), Feed.SHAPE.schema()));
        desk = new Desk(broker, config);
        flink = new Cluster();
        for (int stream : ALL) {
            frames.add(Feed.frames(stream, TICKS, EVENTS, stream + 1));
        }
    }

    @AfterEach
    void stop() throws Exception {
        flink.close();
        desk.close();
    }

    private JobConfig config(String name) throws Exception {
        Path schema = Files.writeString(folder.resolve("schema.yaml"), """
                name: Feed
                frames: events
                tick: 10s
                capacity: { population: 10, events: 1000 }
                streamAttributes:
                  - {name: x, type: decimal, scale: 0, min: 0, max: 1000000000000, aggregations: [mean]}
                """);
        // A partition that is idle on a slow machine would close windows, and so give reasons of its own.
        String idle = name.equals("anIdlePartitionAndADeadProducerDelayNothing") ? "1000" : "60000";
        Map<String, String> settings = new HashMap<>(Map.of(
                "bootstrap.servers", broker.bootstrap(),
                "alpheus.schema", schema.toString(),
                "alpheus.job", name,
                "alpheus.checkpoint.ms", "300",
                "alpheus.idle.ms", idle,
                "alpheus.skew.ms", "10000"));
        // Windows end with the last frame.
        settings.put("alpheus.disorder.ms", "0");
        for (String topic : List.of("events", "instructions", "tokens", "sums", "summaries", "dead-letters")) {
            settings.put("alpheus.topic." + topic, name + "-" + topic);
        }
        return new JobConfig(settings);
    }

    private void await(String what, Callable<Boolean> happens) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(400);
        while (!happens.call()) {
            assertTrue(System.nanoTime() < deadline, () -> "waited for " + what + "; the job is " + state());
            Thread.sleep(300);
        }
    }

    private String state() {
        try {
            return flink.state();
        } catch (Exception unknown) {
            return unknown.toString();
        }
    }

    /** The frames of some ticks, of all streams in turn, except those left out. */
    private void send(int fromTick, int toTick, Set<byte[]> leftOut) throws Exception {
        for (int i = fromTick == 0 ? 0 : 1 + fromTick * FRAMES_A_TICK; i <= toTick * FRAMES_A_TICK; i++) {
            for (int stream : ALL) {
                byte[] frame = frames.get(stream).get(i);
                if (!leftOut.contains(frame)) {
                    desk.frame(stream, frame);
                }
            }
        }
        desk.flush();
    }

    private byte[] event(int stream, int tick, int event) {
        return frames.get(stream).get(1 + tick * FRAMES_A_TICK + event);
    }

    /** Records that our producers never send, each with one reason. */
    private Map<String, Integer> poison() throws Exception {
        byte[] known = Feed.stream(0).bytes();
        byte[] good = event(0, 0, 0);
        desk.event(0, null, good);
        desk.event(0, new byte[40_000], good);
        desk.event(1, known, null);
        desk.event(1, known, new byte[0]);
        desk.event(1, known, Arrays.copyOf(good, good.length - 1));
        desk.event(2, known, new byte[900_000]);
        desk.event(0, Feed.stream(99).bytes(), good);
        List<byte[]> ahead = new ArrayList<>();
        Feed.open(98, 4_000_000_000_000_000L, ahead);
        desk.event(3, Feed.stream(98).bytes(), ahead.get(0));
        desk.instruct(new byte[] {1, 77});
        desk.instruct(new PlanViews().withoutWindow());
        desk.answer(new FrameIn("00", good).bytes());
        desk.flush();
        return new HashMap<>(Map.of(
                "malformed", 6, "unknown-session", 1, "future", 1, "no-instruction", 2, "no-token", 1));
    }

    /** A plan that would stop a job without checks. */
    private static final class PlanViews {
        byte[] withoutWindow() {
            PlanView plan = new PlanView(Feed.PLAN.plan(), 0, 0, Feed.NOON, 0, Feed.PLAN.rows());
            return new Messages.PlanStart(plan).bytes();
        }
    }

    @Test
    void sumsAreCorrectAndUniqueOverEveryFault() throws Exception {
        flink.submit(config, 2, null);
        desk.begin(STREAMS);
        await("the plan", desk::isInstructed);

        // Stream 1 never sends one event of window 1; stream 2 sends one of window 0 late.
        byte[] lost = event(1, 4, 2);
        byte[] late = event(2, 1, 3);
        Set<byte[]> leftOut = Set.of(lost, late);
        send(0, 3, leftOut);
        flink.loseTaskManager();
        send(3, 7, leftOut);
        Map<String, Integer> refused = poison();
        Set<Integer> allBut2 = streamsBut(2);
        Set<Integer> allBut1 = streamsBut(1);
        await("window 0 but for the late event", () -> desk.complete(0).equals(allBut2));
        await("window 1", () -> desk.complete(1).equals(allBut1));
        awaitReason(Incomplete.GAP, 1, 1);
        awaitReason(Incomplete.GAP, 2, 0);
        desk.frame(2, late);
        await("the late event", () -> desk.complete(0).size() == STREAMS);
        desk.open(0, ALL);
        desk.answer(0, ALL);
        desk.answer(1, ints(allBut1));
        desk.open(1, ints(allBut1));
        desk.flush();
        await("two windows", () -> desk.sums().size() == 2);

        broker.kill();
        broker.startAgain();
        String savepoint = stopped();
        flink.submit(config, 3, savepoint);
        desk.event(0, Feed.stream(0).bytes(), event(0, 7, 0));
        send(7, TICKS, Set.of());
        desk.event(0, Feed.stream(0).bytes(), event(0, 7, 0));
        desk.event(0, Feed.stream(0).bytes(), event(0, 3, 1));
        desk.flush();
        await("window 2", () -> desk.complete(2).size() == STREAMS - 1);
        await("window 3", () -> desk.complete(3).size() == STREAMS);
        Set<Integer> allBut0 = streamsBut(0);
        desk.open(2, ints(allBut0));
        desk.open(3, ALL);
        flink.loseTaskManager();
        desk.answer(3, ALL);
        desk.answer(2, ints(allBut0));
        await("four windows", () -> desk.sums().size() >= 4);
        refused.merge("late", 1, Integer::sum);
        await("dead letters " + refused, () -> desk.deadLetters().equals(refused));
        int letters = refused.values().stream().mapToInt(Integer::intValue).sum();
        assertEquals(letters, desk.originals().size(), desk.originals().toString());
        assertTruth(Map.of(0, streamsBut(), 1, allBut1, 2, allBut0, 3, streamsBut()));
        long over = Feed.start(4) + Feed.PLAN.grace();
        await("all tasks to be beyond window 3", () -> desk.progress() >= over);
    }

    /** The broker's death may break a running checkpoint. Then the job restores, and the test tries again. */
    private String stopped() throws Exception {
        for (int tries = 0; true; tries++) {
            try {
                return flink.stop(folder);
            } catch (ExecutionException restoring) {
                assertTrue(tries < 60, () -> "no savepoint: " + restoring);
                Thread.sleep(500);
            }
        }
    }

    private static Set<Integer> streamsBut(int... out) {
        Set<Integer> streams = new TreeSet<>(IntStream.of(ALL).boxed().toList());
        IntStream.of(out).forEach(streams::remove);
        return streams;
    }

    private static int[] ints(Set<Integer> streams) {
        return streams.stream().mapToInt(Integer::intValue).toArray();
    }

    private void awaitReason(Incomplete why, int stream, int window) throws Exception {
        await(why + " of stream " + stream, () -> desk.summaries().stream()
                .filter(it -> it.position() == stream && it.start() == Feed.start(window))
                .map(Summary::judgement).map(Judgement::why).toList().equals(List.of(why)));
    }

    private void assertTruth(Map<Integer, Set<Integer>> opened) throws Exception {
        Map<Long, WindowSum> sums = new HashMap<>();
        for (WindowSum sum : desk.sums()) {
            assertEquals(null, sums.put(sum.start(), sum), "each window once");
        }
        assertEquals(opened.size(), sums.size());
        for (Map.Entry<Integer, Set<Integer>> window : opened.entrySet()) {
            WindowSum sum = sums.get(Feed.start(window.getKey()));
            assertEquals(window.getValue().size(), sum.streams());
            assertEquals(Desk.CONTROLLERS, sum.controllers());
            long[] rows = sum.ciphertexts().clone();
            TickSum.add(rows, sum.tokens());
            assertArrayEquals(desk.truth(window.getKey(), window.getValue()), rows, "window " + window.getKey());
            long events = 3L * EVENTS * window.getValue().size();
            assertEquals(events, rows[1] - rows[0], "the expected sums have every event");
        }
    }

    /** A session dies and another opens: the partition continues, and so does the job. */
    @Test
    void anIdlePartitionAndADeadProducerDelayNothing() throws Exception {
        flink.submit(config, 2, null);
        desk.begin(STREAMS);
        await("the plan", desk::isInstructed);
        // Stream 0 sends nothing after tick 1; partitions 1 and 2 fall silent, partition 3 never spoke.
        for (int i = 0; i <= 7 * FRAMES_A_TICK; i++) {
            if (i <= FRAMES_A_TICK) {
                desk.frame(0, frames.get(0).get(i));
            }
            desk.frame(3, frames.get(3).get(i));
        }
        desk.flush();
        await("window 0", () -> desk.complete(0).equals(Set.of(3)));
        await("window 1", () -> desk.complete(1).equals(Set.of(3)));
        awaitReason(Incomplete.MISSING_BORDER, 0, 0);
        List<byte[]> again = new ArrayList<>();
        Session session = Feed.open(0, Feed.NOON + 6 * Feed.TICK, again);
        session.advance(Feed.NOON + 10 * Feed.TICK);
        for (byte[] frame : again) {
            desk.frame(0, frame);
        }
        desk.flush();
        await("window 2", () -> desk.complete(2).equals(Set.of(0)));
        desk.open(0, 3);
        desk.answer(0, 3);
        await("a window", () -> desk.sums().size() == 1);
        long[] rows = desk.sums().get(0).ciphertexts().clone();
        TickSum.add(rows, desk.sums().get(0).tokens());
        assertArrayEquals(desk.truth(0, Set.of(3)), rows);
    }
}
