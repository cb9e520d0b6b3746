// The job over a real broker and cluster, with one frame a tick: keys from files, a lost task manager, forgeries.
package alpheus.flink;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import alpheus.broker.Broker;
import alpheus.flink.Messages.WindowSum;
import alpheus.stream.Start;
import alpheus.stream.TickSum;
import alpheus.tick.Claim;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.config.ConfigException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(900)
class TickJobTest {
    private static final int STREAMS = 3;

    @TempDir
    private Path folder;

    private Map<String, String> settings(String name, String bootstrap) throws Exception {
        Path schema = Files.writeString(folder.resolve("schema.yaml"), TickFeed.YAML);
        Map<String, String> settings = new HashMap<>(Map.of(
                "bootstrap.servers", bootstrap,
                "alpheus.schema", schema.toString(),
                "alpheus.identity.folder", TickFeed.identity(folder).toString(),
                "alpheus.job", name,
                "alpheus.checkpoint.ms", "300",
                "alpheus.idle.ms", "1000",
                "alpheus.skew.ms", "10000"));
        for (String topic : List.of("events", "instructions", "tokens", "sums", "summaries", "dead-letters")) {
            settings.put("alpheus.topic." + topic, name + "-" + topic);
        }
        return settings;
    }

    private static void await(String what, Cluster flink, Callable<Boolean> happens) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(400);
        while (!happens.call()) {
            String state = flink.state();
            assertTrue(System.nanoTime() < deadline, () -> "waited for " + what + "; the job is " + state);
            Thread.sleep(300);
        }
    }

    private static void send(Desk desk, int stream, List<byte[]> frames) {
        frames.forEach(frame -> desk.event(stream % 3, Feed.stream(stream).bytes(), frame));
    }

    /** Three devices: one awake, one that sleeps, and one that a stranger tries to silence. */
    @Test
    void windowsOpenToTheTruthOverALostTaskManager() throws Exception {
        Broker broker = Broker.shared();
        JobConfig config = new JobConfig(settings("ticks", broker.bootstrap()));
        assertEquals(TickFeed.SHAPE.ticks().anchor(), config.shape().ticks().anchor());
        assertEquals(TickFeed.SHAPE.words(), config.shape().words());
        Cluster flink = new Cluster();
        try (Desk desk = new Desk(broker, config)) {
            flink.submit(config, 2, null);
            List<TickFeed> feeds = new ArrayList<>();
            for (int stream = 0; stream < STREAMS; stream++) {
                desk.instruct(TickFeed.deviceOf(stream));
                feeds.add(new TickFeed(stream, Feed.NOON));
            }
            desk.begin(STREAMS);
            await("the plan", flink, desk::isInstructed);
            feeds.get(0).ticks(3, 2, 5);
            feeds.get(1).ticks(1, 1, 7).sleep(4);
            feeds.get(2).ticks(3, 1, 9);
            List<byte[]> forged = new ArrayList<>();
            TickFeed.producer(2, "ingest_seed").open(
                    new Start.First(), Feed.NOON + TickFeed.TICK, Optional.empty(), new Random(5), forged::add);
            send(desk, 2, forged);
            for (int stream = 0; stream < STREAMS; stream++) {
                send(desk, stream, feeds.get(stream).frames);
            }
            desk.flush();
            flink.loseTaskManager();
            feeds.get(0).ticks(6, 2, 5);
            feeds.get(1).ticks(4, 1, 7);
            feeds.get(2).ticks(6, 1, 9);
            send(desk, 0, feeds.get(0).frames.subList(4, 10));
            send(desk, 1, feeds.get(1).frames.subList(3, 7));
            send(desk, 2, feeds.get(2).frames.subList(4, 10));
            desk.flush();
            for (int window = 0; window < 2; window++) {
                int of = window;
                await("window " + window, flink, () -> desk.complete(of).equals(Set.of(0, 1, 2)));
                desk.instruct(Feed.opening(window, 0, 1, 2).bytes());
                desk.answer(Feed.token(window, 0, token(desk, window)));
            }
            desk.flush();
            await("two windows", flink, () -> desk.sums().size() == 2);
            Map<Long, long[]> opened = new HashMap<>();
            for (WindowSum sum : desk.sums()) {
                long[] rows = sum.ciphertexts().clone();
                TickSum.add(rows, sum.tokens());
                opened.put(sum.start(), rows);
            }
            // Row 1 adds the number of events to the sum of values.
            assertArrayEquals(new long[] {30 + 7 + 27, 36 + 8 + 30, 0}, opened.get(Feed.start(0)));
            assertArrayEquals(new long[] {30 + 7 + 27, 36 + 8 + 30, 0}, opened.get(Feed.start(1)));
            assertEquals(Map.of("bad-signature", 1), desk.deadLetters());
        } finally {
            flink.close();
        }
    }

    /** What the only controller answers: the key parts of all streams, from the claims of the summaries. */
    private static long[] token(Desk desk, int window) throws Exception {
        Map<Integer, Summary> last = new HashMap<>();
        for (Summary summary : desk.summaries()) {
            if (summary.start() == Feed.start(window)) {
                last.put(summary.position(), summary);
            }
        }
        long[] token = new long[Feed.PLAN.rows().length];
        last.forEach((stream, summary) -> {
            for (List<Claim> claims : summary.judgement().claims()) {
                TickSum.add(token, TickFeed.keyPart(stream, claims, summary.start()));
            }
        });
        return token;
    }

    @Test
    void ingestKeysAreNeededAndMustBeTheDeployments() throws Exception {
        Map<String, String> settings = settings("none", "localhost:1");
        Shape shape = new JobConfig(settings).shape();
        IngestFiles.read(shape);
        Files.writeString(folder.resolve("ingest.seed"), "00".repeat(32));
        assertTrue(assertThrows(IllegalArgumentException.class, () -> IngestFiles.read(shape))
                .getMessage().contains("ingest.seed: the key is not that of the certificate"));
        Files.delete(folder.resolve("ingest.seed"));
        assertTrue(assertThrows(IllegalArgumentException.class, () -> IngestFiles.read(shape))
                .getMessage().contains("cannot be read"));
        settings.put("alpheus.format", "registry");
        assertThrows(ConfigException.class, () -> new JobConfig(settings).shape());
        settings.remove("alpheus.format");
        settings.remove("alpheus.identity.folder");
        assertTrue(assertThrows(ConfigException.class, () -> new JobConfig(settings).shape())
                .getMessage().contains("alpheus.identity.folder"));
    }
}
