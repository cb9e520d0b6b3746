// A producer that encrypts: what reaches the broker, when it fails, and in transactions.
package alpheus.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import alpheus.kafka.StreamCounters.Count;
import alpheus.stream.Frame;
import alpheus.stream.TickSum;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class EncryptingProducerTest {
    private static final long NOON = 19_675 * 86_400_000_000L + 43_200_000_000L;

    @TempDir
    private Path folder;

    private TestDevice device;
    private MockProducer<byte[], byte[]> kafka;
    private final TestClock clock = new TestClock(NOON + 300_000);

    @BeforeEach
    void device() throws Exception {
        device = new TestDevice(folder, 1000);
        kafka = mock(true);
    }

    private static MockProducer<byte[], byte[]> mock(boolean completes) {
        return new MockProducer<>(completes, null, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private EncryptingProducer<String, Object> producer() {
        return new EncryptingProducer<>(device.settings, kafka, clock);
    }

    private static ProducerRecord<String, Object> record(Object value) {
        return new ProducerRecord<>(TestDevice.TOPIC, "alice", value);
    }

    private List<byte[]> frames() {
        return kafka.history().stream().map(ProducerRecord::value).toList();
    }

    /** Moves a clock that the border timer cannot move. */
    private void at(EncryptingProducer<?, ?> producer, long micros) {
        clock.set(micros);
        producer.keeper().borders();
    }

    @Test
    void sumsOpenToWhatWasSent() throws Exception {
        try (EncryptingProducer<String, Object> producer = producer()) {
            producer.send(record(Map.of("power", 12.5, "on", true)));
            producer.send(record("{\"power\": \"7.25\", \"room\": \"attic\", \"other\": 1}"));
            producer.send(record("{\"power\": 1e1}".getBytes(StandardCharsets.UTF_8)));
            at(producer, NOON + 3_500_000);
            Map<String, Object> last = new HashMap<>();
            last.put("power", 3);
            last.put("room", null);
            producer.send(record(last));
        }
        TickSum sum = device.opened(frames());
        assertEquals(4, sum.count());
        // Σx, Σx², events that say `on`, that say `room`, events, check word: 12.5, 7.3, 10 and 3 in tenths.
        assertArrayEquals(
                new long[] {125 + 73 + 100 + 30, 125 * 125 + 73 * 73 + 100 * 100 + 30 * 30, 1, 1, 4, 0},
                sum.words());
    }

    @Test
    void recordsIdentifyOnlyTheStream() {
        device.settings.put("alpheus.headers", "trace");
        try (EncryptingProducer<String, Object> producer = producer()) {
            ProducerRecord<String, Object> given = record(Map.of("power", 1));
            given.headers().add(new RecordHeader("trace", new byte[] {1})).add(new RecordHeader("name", new byte[] {2}));
            producer.send(given);
        }
        for (ProducerRecord<byte[], byte[]> sent : kafka.history()) {
            assertArrayEquals(device.stream.bytes(), sent.key());
            assertEquals(TestDevice.TOPIC, sent.topic());
            assertNull(sent.partition());
            assertNull(sent.headers().lastHeader("name"), "only named headers are sent on");
        }
        assertEquals(1, kafka.history().stream().filter(it -> it.headers().lastHeader("trace") != null).count());
    }

    @Test
    void aSessionOpensAtTheNextTickAndSendingWaitsForIt() throws Exception {
        try (EncryptingProducer<String, Object> producer = producer()) {
            producer.send(record(Map.of("power", 1)));
            Frame opening = Frame.parse(frames().get(0));
            assertEquals(Frame.Kind.OPENING, opening.kind());
            assertEquals(NOON + TestDevice.TICK, opening.time());
            assertTrue(Frame.parse(frames().get(1)).time() > opening.time());
        }
        Frame last = Frame.parse(frames().get(frames().size() - 1));
        assertEquals(Frame.Kind.CLOSING, last.kind(), "closing ends the session in order");
        assertTrue(kafka.closed());
    }

    /** Callbacks often resend failed records. Kafka's own thread must not wait for a tick or a lock. */
    @Test
    void sendingFromACallbackDoesNotWait() throws Exception {
        kafka = mock(false);
        List<Exception> refused = new ArrayList<>();
        try (EncryptingProducer<String, Object> producer = producer()) {
            producer.send(record(Map.of("power", 1)));
            Callback again = (metadata, failure) -> refused.add(assertThrows(
                    TimeoutException.class, () -> producer.send(record(Map.of("power", 2)))));
            producer.send(record(Map.of("power", 2)), again);
            kafka.completeNext();
            kafka.completeNext();
            long before = clock.now();
            kafka.errorNext(new TimeoutException("gone"));
            assertEquals(before, clock.now());
        }
        assertEquals(1, refused.size());
        assertTrue(refused.get(0).getMessage().contains("callback"), refused.get(0).getMessage());
    }

    /** Kafka Connect sets the maximum. */
    @Test
    void waitingForeverIsAllowed() throws Exception {
        device.settings.put("max.block.ms", Long.MAX_VALUE);
        device.settings.put("alpheus.close.timeout.ms", Long.MAX_VALUE);
        try (EncryptingProducer<String, Object> producer = producer()) {
            producer.send(record(Map.of("power", 1)));
        }
        assertEquals(1, device.opened(frames()).count());
    }

    /** The job rejects frames ahead of its clock. If it rejects an opening border, it rejects the whole session. */
    @Test
    void noFrameIsSentBeforeItsTime() {
        List<Long> early = new ArrayList<>();
        kafka = new MockProducer<>(true, null, new ByteArraySerializer(), new ByteArraySerializer()) {
            @Override
            public Future<RecordMetadata> send(ProducerRecord<byte[], byte[]> record, Callback callback) {
                long ahead = 1_000 * FrameTimes.millis(record.value()) - clock.now();
                early.addAll(ahead > 0 ? List.of(ahead) : List.of());
                return super.send(record, callback);
            }
        };
        try (EncryptingProducer<String, Object> producer = producer()) {
            producer.send(record(Map.of("power", 1)));
            at(producer, NOON + 3_500_000);
            kafka.sendException = new TimeoutException("full");
            assertThrows(TimeoutException.class, () -> producer.send(record(Map.of("power", 2))));
            kafka.sendException = null;
            producer.keeper().borders();
            producer.send(record(Map.of("power", 3)));
            assertEquals(2, producer.counters().get(Count.SESSIONS));
        }
        assertEquals(List.of(), early, "microseconds ahead of the clock");
    }

    @Test
    void sendingWaitsNoLongerThanAllowed() {
        device.settings.put("max.block.ms", "100");
        try (EncryptingProducer<String, Object> producer = producer()) {
            assertThrows(TimeoutException.class, () -> producer.send(record(Map.of("power", 1))));
        }
    }

    @Test
    void bordersAreSentWithoutEvents() throws Exception {
        try (EncryptingProducer<String, Object> producer = producer()) {
            producer.keeper().borders();
            assertEquals(0, kafka.history().size(), "nothing is known of a topic yet");
            producer.send(record(Map.of("power", 1)));
            at(producer, NOON + 5_100_000);
            assertEquals(2 + 4, kafka.history().size());
            assertEquals(NOON + 5_000_000, Frame.parse(frames().get(5)).time());
        }
    }

    @Test
    void aRejectedEventChangesNothingAndItsErrorOmitsTheValue() throws Exception {
        try (EncryptingProducer<String, Object> producer = producer()) {
            producer.send(record(Map.of("power", 1)));
            int before = kafka.history().size();
            for (Object bad : new Object[] {
                Map.of("power", 31337), Map.of(), Map.of("power", "watt"), Map.of("power", List.of(31337)),
                Map.of("power", 1, "on", 31337), Map.of("power", 1, "room", "31337 is long"), "[31337]", "{\"power\":",
                31337, new byte[] {3, 1, 3, 3, 7}
            }) {
                SerializationException refused =
                        assertThrows(SerializationException.class, () -> producer.send(record(bad)));
                assertInstanceOf(alpheus.AlpheusException.class, refused.getCause());
                assertFalse(refused.getMessage().contains("31337"), refused.getMessage());
            }
            assertThrows(SerializationException.class, () -> producer.send(record(null)));
            assertThrows(SerializationException.class, () -> producer.send(new ProducerRecord<>("other", Map.of())));
            assertThrows(SerializationException.class,
                    () -> producer.send(new ProducerRecord<>(TestDevice.TOPIC, 0, "k", Map.of("power", 1))));
            assertEquals(before, kafka.history().size());
            assertEquals(11, producer.counters().get(Count.REFUSED));
        }
        assertEquals(1, device.opened(frames()).count());
    }

    @Test
    void anUndeliveredFrameEndsItsSession() throws Exception {
        kafka = mock(false);
        try (EncryptingProducer<String, Object> producer = producer()) {
            producer.send(record(Map.of("power", 1)));
            producer.send(record(Map.of("power", 2)));
            kafka.completeNext();
            kafka.completeNext();
            kafka.errorNext(new TimeoutException("gone"));
            producer.send(record(Map.of("power", 4)));
            assertEquals(1, producer.counters().get(Count.FAILED));
            assertEquals(2, producer.counters().get(Count.LOST));
            assertEquals(2, producer.counters().get(Count.SESSIONS));
        }
        List<byte[]> sent = frames();
        Frame second = Frame.parse(sent.get(3));
        assertEquals(Frame.Kind.OPENING, second.kind());
        assertFalse(second.session() == Frame.parse(sent.get(0)).session());
        assertEquals(1, device.opened(sent).count(), "only what was after it counts");
    }

    @Test
    void anExceptionWhileSendingEndsTheSessionToo() {
        try (EncryptingProducer<String, Object> producer = producer()) {
            producer.send(record(Map.of("power", 1)));
            kafka.sendException = new TimeoutException("full");
            assertThrows(TimeoutException.class, () -> producer.send(record(Map.of("power", 2))));
            kafka.sendException = null;
            producer.send(record(Map.of("power", 4)));
            assertEquals(2, producer.counters().get(Count.SESSIONS));
        }
    }

    @Test
    void anAbortedTransactionEndsTheSession() throws Exception {
        device.settings.put("transactional.id", "t");
        try (EncryptingProducer<String, Object> producer = producer()) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(record(Map.of("power", 1)));
            producer.abortTransaction();
            producer.beginTransaction();
            producer.send(record(Map.of("power", 2)));
            producer.commitTransaction();
            at(producer, clock.now() + 2 * TestDevice.TICK);
            assertEquals(2, kafka.commitCount(), "borders between transactions have one of their own");
        }
        TickSum sum = device.opened(frames());
        assertEquals(1, sum.count());
        assertEquals(20, sum.words()[0]);
    }

    @Test
    void eventsAreTimedByTheirRecordsInOrder() throws Exception {
        device.settings.put("alpheus.time", "record");
        device.settings.put("alpheus.lateness.ms", "2000");
        long first = NOON / 1000 + 1000;
        try (EncryptingProducer<String, Object> producer = producer()) {
            producer.send(timed(first + 5));
            producer.send(timed(first + 5));
            producer.send(timed(first + 1700));
            assertThrows(SerializationException.class, () -> producer.send(timed(first + 1699)));
            at(producer, NOON + 4_900_000);
            assertEquals(NOON + 2_000_000, Frame.parse(frames().get(3)).time());
            assertEquals(5, kafka.history().size(), "no border before its lateness is over");
        }
        assertEquals(3, device.opened(frames()).count());
        assertEquals(first + 5, kafka.history().get(1).timestamp());
    }

    /** One wrong timestamp must not create borders up to it, nor delay the events behind it. */
    @Test
    void aTimeAheadOfTheClockIsRejected() throws Exception {
        device.settings.put("alpheus.time", "record");
        device.settings.put("alpheus.skew.ms", "1000");
        try (EncryptingProducer<String, Object> producer = producer()) {
            long first = NOON / 1000 + 1000;
            producer.send(timed(first + 5));
            int before = kafka.history().size();
            for (long ahead : new long[] {first + 90_000_000_000L, first + 1_100, Long.MAX_VALUE}) {
                SerializationException refused =
                        assertThrows(SerializationException.class, () -> producer.send(timed(ahead)));
                assertTrue(refused.getMessage().contains("alpheus.skew.ms"), refused.getMessage());
            }
            assertEquals(before, kafka.history().size());
            assertEquals(3, producer.counters().get(Count.REFUSED));
            producer.send(timed(first + 6));
        }
        assertEquals(2, device.opened(frames()).count());
    }

    /** After a machine slept, borders are sent in batches, and not all from memory at once. */
    @Test
    void bordersOfALongSleepAreSentInBatches() throws Exception {
        long evening = NOON + 43_000 * TestDevice.TICK;
        clock.set(evening + 1);
        try (EncryptingProducer<String, Object> producer = producer()) {
            producer.send(record(Map.of("power", 1)));
            at(producer, evening + 2_000 * TestDevice.TICK + 1);
            int piece = kafka.history().size();
            assertTrue(piece < 1000, piece + " at once");
            producer.send(record(Map.of("power", 2)));
            assertEquals(2 + 1_999 + 1 + 1, kafka.history().size(), "and one more for midnight");
        }
        assertEquals(2, device.opened(frames()).count());
    }

    private static ProducerRecord<String, Object> timed(long millis) {
        return new ProducerRecord<>(TestDevice.TOPIC, null, millis, "k", Map.of("power", 1));
    }

    @Test
    void threadsShareOneProducer() throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(4);
        try (EncryptingProducer<String, Object> producer = producer()) {
            producer.send(record(Map.of("power", 1)));
            for (int i = 0; i < 400; i++) {
                threads.execute(() -> producer.send(record(Map.of("power", 1))));
            }
            threads.shutdown();
            assertTrue(threads.awaitTermination(30, TimeUnit.SECONDS));
        }
        assertEquals(401, device.opened(frames()).count());
    }

    @Test
    void invalidSettingsAreRejectedWithASpecificError() {
        Map<String, Object> good = Map.copyOf(device.settings);
        for (Map.Entry<String, String> bad : Map.of(
                "alpheus.schema", folder.resolve("none.yaml").toString(),
                "alpheus.device.file", folder.resolve("schema.yaml").toString(),
                "alpheus.time", "later",
                "alpheus.lateness.ms", "-1",
                "partitioner.class", "x.Y",
                "partitioner.ignore.keys", "true",
                "acks", "1",
                "enable.idempotence", "false",
                "max.in.flight.requests.per.connection", "6",
                "alpheus.row.reader", "no.such.Reader").entrySet()) {
            device.settings.clear();
            device.settings.putAll(good);
            device.settings.put(bad.getKey(), bad.getValue());
            ConfigException refused = assertThrows(ConfigException.class, this::producer, bad.getKey());
            assertTrue(refused.getMessage().contains(bad.getKey()), refused.getMessage());
            assertFalse(refused.getMessage().contains("0123456789abcdef"), "the secret");
        }
    }

    @Test
    void countersAreMetrics() {
        try (EncryptingProducer<String, Object> producer = producer()) {
            producer.send(record(Map.of("power", 1)));
            Object events = producer.metrics().entrySet().stream()
                    .filter(it -> it.getKey().group().equals(StreamCounters.GROUP))
                    .filter(it -> it.getKey().name().equals("events-total"))
                    .findFirst().orElseThrow().getValue().metricValue();
            assertEquals(1.0, events);
        }
    }
}
