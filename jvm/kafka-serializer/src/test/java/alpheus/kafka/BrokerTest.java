// Producers against a real broker: order, transactions, kills of either side.
package alpheus.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import alpheus.broker.Broker;
import alpheus.broker.Topics;
import alpheus.kafka.StreamCounters.Count;
import alpheus.stream.Frame;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.errors.ApiException;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(900)
class BrokerTest {
    private static final int TICK_MILLIS = 300;
    private static final int EVENTS = 40;

    @TempDir
    private Path folder;

    private final Broker broker = Broker.shared();
    private TestDevice device;
    private String topic;

    @BeforeEach
    void topic(TestInfo test) throws Exception {
        topic = test.getTestMethod().orElseThrow().getName();
        broker.createTopics(3, topic);
        device = new TestDevice(folder, TICK_MILLIS);
        device.settings.put("bootstrap.servers", broker.bootstrap());
    }

    private ProducerRecord<String, Object> record(int power) {
        return new ProducerRecord<>(topic, "alice", Map.of("power", power));
    }

    private static List<byte[]> frames(List<ConsumerRecord<byte[], byte[]>> records) {
        return records.stream().map(ConsumerRecord::value).toList();
    }

    private long committedEvents() throws Exception {
        return device.opened(frames(Topics.committed(broker, topic))).count();
    }

    /** Every record in the topic, including aborted ones: no two share session and time. */
    private Set<Long> sessionsOfUniqueKeys() throws Exception {
        Set<String> used = new HashSet<>();
        Set<Long> sessions = new HashSet<>();
        for (byte[] bytes : frames(Topics.everything(broker, topic))) {
            Frame frame = Frame.parse(bytes);
            assertTrue(used.add(frame.session() + " " + frame.time()), "a key is used twice");
            sessions.add(frame.session());
        }
        return sessions;
    }

    @Test
    void sentEventsOpenToTheExpectedSum() throws Exception {
        try (Producer<String, Object> producer = new EncryptingProducer<>(device.settings)) {
            for (int i = 1; i <= EVENTS; i++) {
                producer.send(record(i));
                Thread.sleep(20);
            }
        }
        List<ConsumerRecord<byte[], byte[]>> records = Topics.committed(broker, topic);
        assertEquals(1, records.stream().map(ConsumerRecord::partition).distinct().count(), "a stream is in one");
        long[] words = device.opened(frames(records)).words();
        assertEquals(10L * EVENTS * (EVENTS + 1) / 2, words[0]);
        assertEquals(EVENTS, words[4]);
        assertEquals(0, words[5], "the check word");
        long last = 0;
        for (ConsumerRecord<byte[], byte[]> record : records) {
            Frame frame = Frame.parse(record.value());
            assertTrue(frame.time() > last, "in order");
            last = frame.time();
            assertEquals(last / 1000, record.timestamp(), "a record's time is its frame's");
        }
    }

    @Test
    void configurationAloneIsEnoughToEncrypt() throws Exception {
        device.settings.put("key.serializer", StreamKeySerializer.class.getName());
        device.settings.put("value.serializer", EncryptingSerializer.class.getName());
        try (Producer<String, Object> producer = new KafkaProducer<>(device.settings)) {
            for (int i = 1; i <= EVENTS; i++) {
                producer.send(record(i));
                Thread.sleep(20);
            }
        }
        List<ConsumerRecord<byte[], byte[]>> records = Topics.committed(broker, topic);
        assertEquals(1, records.stream().map(ConsumerRecord::partition).distinct().count(), "borders are there too");
        assertEquals(10L * EVENTS * (EVENTS + 1) / 2, device.opened(frames(records)).words()[0]);
        assertEquals(1, sessionsOfUniqueKeys().size());
    }

    @Test
    void abortedEventsAreNotCounted() throws Exception {
        device.settings.put("transactional.id", topic);
        long lost;
        try (EncryptingProducer<String, Object> producer = new EncryptingProducer<>(device.settings)) {
            producer.initTransactions();
            for (int transaction = 0; transaction < 4; transaction++) {
                producer.beginTransaction();
                for (int i = 0; i < 5; i++) {
                    producer.send(record(1));
                }
                if (transaction == 1) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
            lost = producer.counters().get(Count.LOST);
        }
        // Committed events of the tick of the abort may be lost too. All of them are counted.
        assertTrue(lost >= 5, "the aborted ones at least");
        assertEquals(20 - lost, committedEvents());
        assertEquals(2, sessionsOfUniqueKeys().size(), "none is made twice");
    }

    @Test
    void aSecondProducerFencesTheFirst() throws Exception {
        device.settings.put("transactional.id", topic);
        EncryptingProducer<String, Object> first = new EncryptingProducer<>(device.settings);
        first.initTransactions();
        try (EncryptingProducer<String, Object> second = new EncryptingProducer<>(device.settings)) {
            second.initTransactions();
            assertThrows(ApiException.class, () -> {
                first.beginTransaction();
                first.send(record(1));
                first.commitTransaction();
            });
            assertTrue(first.counters().lastFailure().contains("transactional.id"), first.counters().lastFailure());
            second.beginTransaction();
            second.send(record(2));
            second.commitTransaction();
        }
        // Kafka's own close waits half a minute for a broker that has fenced it.
        first.close(Duration.ZERO);
        assertEquals(1, committedEvents());
        sessionsOfUniqueKeys();
    }

    /** The process to kill: it sends events forever. */
    public static final class Victim {
        private Victim() {}

        /** Runs until killed, and prints when it has sent enough. */
        public static void main(String[] arguments) throws Exception {
            TestDevice device = new TestDevice(Path.of(arguments[0]), TICK_MILLIS);
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

    @Test
    void noKeyIsUsedTwiceOverKillsOfTheProducer() throws Exception {
        int starts = 3;
        for (int start = 0; start < starts; start++) {
            killOne();
        }
        assertEquals(starts, sessionsOfUniqueKeys().size(), "a session of its own each start");
        long[] words = device.opened(frames(Topics.committed(broker, topic))).words();
        assertTrue(words[4] > 0, "ticks that were closed before a kill count");
        assertEquals(10 * words[4], words[0]);
    }

    private void killOne() throws IOException, InterruptedException {
        Path java = Path.of(System.getProperty("java.home"), "bin", "java");
        Process process = new ProcessBuilder(
                        java.toString(), "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                        "-cp", System.getProperty("java.class.path"), Victim.class.getName(),
                        Files.createDirectories(folder.resolve("victim")).toString(), broker.bootstrap(), topic)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        try (var in = process.inputReader()) {
            assertEquals("enough", in.readLine());
        } finally {
            process.destroyForcibly();
            assertTrue(process.waitFor(60, TimeUnit.SECONDS));
        }
    }

    /** Sending waits for the broker up to {@code max.block.ms}. The broker returns in that time. */
    @Test
    void nothingIsLostOverAKillOfTheBroker() throws Exception {
        device.settings.put("max.block.ms", 900_000);
        device.settings.put("delivery.timeout.ms", 900_000);
        TestDevice ticking = new TestDevice(Files.createDirectories(folder.resolve("ticks")), TICK_MILLIS, "ticks");
        broker.createTopics(3, topic + "-ticks");
        for (String setting : List.of("bootstrap.servers", "max.block.ms", "delivery.timeout.ms")) {
            ticking.settings.put(setting, device.settings.get(setting));
        }
        int sent = 0;
        long lost;
        try (EncryptingProducer<String, Object> producer = new EncryptingProducer<>(device.settings);
                EncryptingProducer<String, Object> ticks = new EncryptingProducer<>(ticking.settings)) {
            producer.send(record(1)).get();
            ticks.send(new ProducerRecord<>(topic + "-ticks", Map.of("power", 1))).get();
            sent++;
            broker.kill();
            CompletableFuture<Void> again = CompletableFuture.runAsync(() -> {
                try {
                    broker.startAgain();
                } catch (IOException failure) {
                    throw new UncheckedIOException(failure);
                }
            });
            for (; sent < 20; sent++) {
                producer.send(record(1));
                ticks.send(new ProducerRecord<>(topic + "-ticks", Map.of("power", 1)));
            }
            again.join();
            producer.flush();
            ticks.flush();
            lost = producer.counters().get(Count.LOST) + ticks.counters().get(Count.LOST);
        }
        assertEquals(0, lost);
        assertEquals(sent, committedEvents());
        sessionsOfUniqueKeys();
        List<byte[]> sums = frames(Topics.committed(broker, topic + "-ticks"));
        assertEquals(sent, new TickReader(ticking, 6).read(sums).events());
    }
}
