// Producers of tick frames against a real broker: order, kills of either side, refusals.
package alpheus.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import alpheus.broker.Broker;
import alpheus.broker.Topics;
import alpheus.kafka.StreamCounters.Count;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(900)
class TickBrokerTest {
    private static final int TICK_MILLIS = 300;
    private static final int WORDS = 6;

    @TempDir
    private Path folder;

    private final Broker broker = Broker.shared();
    private TestDevice device;
    private String topic;

    @BeforeEach
    void topic(TestInfo test) throws Exception {
        topic = "ticks-" + test.getTestMethod().orElseThrow().getName();
        broker.createTopics(3, topic);
        device = new TestDevice(folder, TICK_MILLIS, "ticks");
        device.settings.put("bootstrap.servers", broker.bootstrap());
    }

    private ProducerRecord<String, Object> record(int power) {
        return new ProducerRecord<>(topic, "alice", Map.of("power", power));
    }

    private List<ConsumerRecord<byte[], byte[]>> records() throws Exception {
        return Topics.committed(broker, topic);
    }

    private TickReader read() throws Exception {
        return new TickReader(device, WORDS).read(records().stream().map(ConsumerRecord::value).toList());
    }

    @Test
    void sentEventsOpenToTheExpectedSum() throws Exception {
        List<Future<RecordMetadata>> events = new ArrayList<>();
        try (Producer<String, Object> producer = new EncryptingProducer<>(device.settings)) {
            for (int i = 1; i <= 40; i++) {
                events.add(producer.send(record(i)));
                Thread.sleep(20);
            }
            producer.flush();
            assertTrue(events.stream().allMatch(Future::isDone));
        }
        TickReader read = read();
        assertArrayEquals(new long[] {8200, 2_214_000, 0, 0, 40, 0}, read.sum());
        assertEquals(40, read.events());
        List<ConsumerRecord<byte[], byte[]>> records = records();
        assertEquals(1, records.stream().map(ConsumerRecord::partition).distinct().count(), "a stream is in one");
        for (Future<RecordMetadata> event : events) {
            ConsumerRecord<byte[], byte[]> frame = records.get((int) event.get().offset());
            assertTrue(frame.value().length > 8 * WORDS, "its event is in a frame with words");
            assertEquals(0, frame.timestamp() % TICK_MILLIS);
        }
    }

    /** The process to kill: it sends events forever. */
    public static final class Victim {
        private Victim() {}

        /** Runs until killed, and prints when it has sent enough. */
        public static void main(String[] arguments) throws Exception {
            TestDevice device = new TestDevice(Path.of(arguments[0]), TICK_MILLIS, "ticks");
            device.settings.put("alpheus.identity.folder", arguments[3]);
            device.settings.put("bootstrap.servers", arguments[1]);
            EncryptingProducer<String, Object> producer = new EncryptingProducer<>(device.settings);
            for (int i = 0; true; i++) {
                Future<RecordMetadata> event = producer.send(new ProducerRecord<>(arguments[2], Map.of("power", 1)));
                Thread.sleep(5);
                if (i == 2 * TICK_MILLIS / 5) {
                    // What was sent before it has arrived too.
                    event.get();
                    System.out.println("enough");
                }
            }
        }
    }

    /** The reader fails if two frames stand at one border of a session. */
    @Test
    void noBorderHasTwoFramesOverKillsOfTheProducer() throws Exception {
        for (int start = 0; start < 2; start++) {
            killOne();
        }
        TickReader read = read();
        assertEquals(2, read.sessions().size(), "a session of its own each start");
        assertTrue(read.events() > 0, "ticks that ended before a kill count");
        assertEquals(10 * read.events(), read.sum()[0]);
    }

    private void killOne() throws Exception {
        Path java = Path.of(System.getProperty("java.home"), "bin", "java");
        Process process = new ProcessBuilder(
                        java.toString(), "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                        "-cp", System.getProperty("java.class.path"), Victim.class.getName(),
                        Files.createDirectories(folder.resolve("victim")).toString(), broker.bootstrap(), topic,
                        folder.toString())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        try (var in = process.inputReader()) {
            assertEquals("enough", in.readLine());
        } finally {
            process.destroyForcibly();
            assertTrue(process.waitFor(60, TimeUnit.SECONDS));
        }
    }

    /** The events fail with the broker's reason, and the log names the setting. */
    @Test
    void aRefusalOfTheBrokerReachesTheEvents() throws Exception {
        device.settings.put("max.request.size", 150);
        try (EncryptingProducer<String, Object> producer = new EncryptingProducer<>(device.settings)) {
            ExecutionException refused = assertThrows(ExecutionException.class, () -> producer.send(record(2)).get());
            assertTrue(refused.getCause() instanceof TickLostException
                    || refused.getCause() instanceof RecordTooLargeException, refused.toString());
            assertTrue(producer.counters().lastFailure().contains("max.request.size"), producer.counters().lastFailure());
            assertEquals(1, producer.counters().get(Count.LOST));
        }
        assertEquals(0, read().events());
    }
}
