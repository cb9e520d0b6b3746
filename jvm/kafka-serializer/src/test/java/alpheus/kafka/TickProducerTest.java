// A producer of a schema with one frame a tick: what reaches the broker, and what becomes of events.
package alpheus.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import alpheus.kafka.StreamCounters.Count;
import alpheus.tick.ClaimKind;
import alpheus.tick.Opening;
import alpheus.tick.Previous;
import alpheus.tick.Statement;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TickProducerTest {
    private static final long DAY = 86_400_000_000L;
    private static final long NOON = 19_675 * DAY + DAY / 2;
    private static final int WORDS = 6;

    @TempDir
    private Path folder;

    private TestDevice device;
    private MockProducer<byte[], byte[]> kafka;
    private final TestClock clock = new TestClock(NOON + 300_000);

    @BeforeEach
    void device() throws Exception {
        device = new TestDevice(folder, 1000, "ticks");
        kafka = mock(true);
    }

    private static MockProducer<byte[], byte[]> mock(boolean completes) {
        return new MockProducer<>(completes, null, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private EncryptingProducer<String, Object> producer() {
        return new EncryptingProducer<>(device.settings, kafka, clock);
    }

    private static ProducerRecord<String, Object> record(Object power) {
        return new ProducerRecord<>(TestDevice.TOPIC, "alice", Map.of("power", power));
    }

    private TickReader sent() throws Exception {
        return new TickReader(device, WORDS).read(kafka.history().stream().map(ProducerRecord::value).toList());
    }

    private void at(EncryptingProducer<?, ?> producer, long micros) {
        clock.set(micros);
        producer.keeper().borders();
    }

    @Test
    void aTickHasOneFrameAndSumsOpenToWhatWasSent() throws Exception {
        try (EncryptingProducer<String, Object> producer = producer()) {
            producer.send(record(12.5));
            producer.send(record("7.25"));
            producer.send(new ProducerRecord<>(TestDevice.TOPIC, Map.of("power", 10, "on", true, "room", "attic")));
            assertEquals(1, kafka.history().size(), "no event has a frame");
            at(producer, NOON + 2_000_000);
            assertEquals(2, kafka.history().size());
            at(producer, NOON + 3_500_000);
            producer.send(record(3));
        }
        TickReader sent = sent();
        assertEquals(4, sent.events());
        assertArrayEquals(
                new long[] {125 + 73 + 100 + 30, 125 * 125 + 73 * 73 + 100 * 100 + 30 * 30, 1, 1, 4, 0}, sent.sum());
        assertEquals(
                List.of(ClaimKind.OPENING, ClaimKind.TICK, ClaimKind.TICK, ClaimKind.CLOSING_TICK), sent.kinds());
        assertEquals(Optional.empty(), sent.openings.get(0).previous());
        for (ProducerRecord<byte[], byte[]> record : kafka.history()) {
            assertArrayEquals(device.stream.bytes(), record.key());
            assertEquals(0, record.timestamp() % 1000, "at a tick's end, whenever its events were");
        }
        assertTrue(kafka.closed());
    }

    @Test
    void anEventIsDoneWhenItsTickIs() throws Exception {
        kafka = mock(false);
        List<RecordMetadata> called = new ArrayList<>();
        try (EncryptingProducer<String, Object> producer = producer()) {
            Future<RecordMetadata> first = producer.send(record(1), (metadata, failure) -> called.add(metadata));
            Future<RecordMetadata> second = producer.send(record(2));
            at(producer, NOON + 2_000_000);
            Future<RecordMetadata> next = producer.send(record(3));
            assertTrue(kafka.completeNext(), "the opening");
            assertFalse(first.isDone());
            assertTrue(kafka.completeNext(), "the tick");
            assertEquals(first.get(), second.get());
            assertEquals(List.of(first.get()), called);
            assertFalse(next.isDone());
            // The closing tick is not acknowledged.
        }
    }

    @Test
    void eventsOfAFrameThatTheBrokerRejectsFailAndAreCounted() throws Exception {
        kafka = mock(false);
        List<Exception> failures = new ArrayList<>();
        try (EncryptingProducer<String, Object> producer = producer()) {
            Future<RecordMetadata> lost = producer.send(record(1), (metadata, failure) -> failures.add(failure));
            producer.send(record(2));
            at(producer, NOON + 2_000_000);
            Future<RecordMetadata> open = producer.send(record(4));
            kafka.completeNext();
            TimeoutException gone = new TimeoutException("gone");
            kafka.errorNext(gone);
            assertEquals(List.of(gone), failures);
            assertEquals(gone, assertThrows(ExecutionException.class, () -> lost.get(60, TimeUnit.SECONDS)).getCause());
            // The session has ended, with what was in its open tick. The next event finds that out, or the producer's own thread
            // before it.
            assertTrue(List.of(2L, 3L).contains(producer.counters().get(Count.LOST)));
            producer.send(record(8));
            assertInstanceOf(TickLostException.class, assertThrows(ExecutionException.class, () -> open.get(60, TimeUnit.SECONDS)).getCause());
            assertEquals(3, producer.counters().get(Count.LOST));
            assertEquals(1, producer.counters().get(Count.FAILED));
            assertEquals(2, producer.counters().get(Count.SESSIONS));
        }
        TickReader sent = sent();
        Opening second = sent.openings.get(1);
        Statement first = sent.statements.get(0);
        assertEquals(Optional.of(new Previous(first.session(), NOON + 2_000_000)), second.previous());
        assertEquals(10 + 20 + 80, sent.sum()[0], "the mock has the lost one too; 4 is nowhere");
    }

    @Test
    void anExceptionWhileSendingFailsTheTicksEvents() throws Exception {
        try (EncryptingProducer<String, Object> producer = producer()) {
            Future<RecordMetadata> lost = producer.send(record(1));
            kafka.sendException = new TimeoutException("full");
            clock.set(NOON + 2_000_000);
            assertThrows(TimeoutException.class, () -> producer.send(record(2)));
            kafka.sendException = null;
            assertEquals(TimeoutException.class, assertThrows(ExecutionException.class, () -> lost.get(60, TimeUnit.SECONDS)).getCause().getClass());
            assertEquals(1, producer.counters().get(Count.LOST));
            producer.send(record(4));
        }
        assertEquals(40, sent().sum()[0]);
    }

    /** A frame before the tick's own fails: the events are in no frame that anybody will send. */
    @Test
    void aFailureOfAnEarlierFrameFailsTheTicksEventsToo() throws Exception {
        clock.set(19_676 * DAY - 1_500_000);
        try (EncryptingProducer<String, Object> producer = producer()) {
            Future<RecordMetadata> lost = producer.send(record(1));
            kafka.sendException = new TimeoutException("full");
            // At midnight the opening of the next day comes first.
            clock.set(19_676 * DAY);
            assertThrows(TimeoutException.class, () -> producer.send(record(2)));
            kafka.sendException = null;
            assertThrows(ExecutionException.class, () -> lost.get(60, TimeUnit.SECONDS));
            assertEquals(1, producer.counters().get(Count.LOST));
        }
    }

    @Test
    void flushingWaitsForTheTick() throws Exception {
        try (EncryptingProducer<String, Object> producer = producer()) {
            producer.flush();
            Future<RecordMetadata> event = producer.send(record(1));
            producer.flush();
            assertEquals(2, kafka.history().size(), "its frame is sent");
            assertEquals(NOON + 2_000_000, clock.now());
            event.get(60, TimeUnit.SECONDS);
        }
    }

    @Test
    void closingWithoutTimeLosesTheOpenTickAndSaysSo() throws Exception {
        device.settings.put("alpheus.close.timeout.ms", "0");
        EncryptingProducer<String, Object> producer = producer();
        Future<RecordMetadata> lost = producer.send(record(1));
        producer.close();
        assertInstanceOf(TickLostException.class, assertThrows(ExecutionException.class, () -> lost.get(60, TimeUnit.SECONDS)).getCause());
        assertEquals(1, producer.counters().get(Count.LOST));
        assertEquals(1, kafka.history().size());
    }

    /** An application that sends again from a callback must neither wait nor disturb what is being sent. */
    @Test
    void sendingFromACallbackDoesNotWait() throws Exception {
        long sum = 0;
        try (EncryptingProducer<String, Object> producer = producer()) {
            boolean done = false;
            for (int round = 1; !done && round <= 5; round++) {
                long now = NOON + round * 10_000_000L;
                // Four frames are made at once. The mock calls back within the first.
                Future<Future<RecordMetadata>> again = sendTwice(producer, now);
                sum += 10;
                try {
                    assertFalse(again.get(60, TimeUnit.SECONDS).isDone(), "its tick is still open");
                    at(producer, now + 1_000_000);
                    again.get().get(60, TimeUnit.SECONDS);
                    sum += 20;
                    done = true;
                } catch (ExecutionException refused) {
                    // The borders' own thread was sending, and a callback does not wait for that either.
                    assertInstanceOf(TimeoutException.class, refused.getCause());
                }
            }
            assertTrue(done, "it never had to wait");
        }
        assertEquals(sum, sent().sum()[0]);
    }

    /** Sends a record whose callback sends another one, and sets the clock so that its frame is sent. */
    private Future<Future<RecordMetadata>> sendTwice(EncryptingProducer<String, Object> producer, long until)
            throws Exception {
        CompletableFuture<Future<RecordMetadata>> again = new CompletableFuture<>();
        producer.send(record(1), (metadata, failure) -> {
            try {
                again.complete(producer.send(record(2)));
            } catch (TimeoutException busy) {
                again.completeExceptionally(busy);
            }
        });
        at(producer, until);
        return again;
    }

    @Test
    void aProcessThatSleptSendsOneFrameForThatTime() throws Exception {
        try (EncryptingProducer<String, Object> producer = producer()) {
            producer.send(record(1));
            at(producer, NOON + 5_000_000);
            assertEquals(1 + 4, kafka.history().size(), "a short delay shows nothing");
            producer.send(record(2));
            at(producer, NOON + 3600_000_000L);
            producer.send(record(4));
        }
        TickReader sent = sent();
        assertEquals(70, sent.sum()[0]);
        assertEquals(
                List.of(ClaimKind.TICK, ClaimKind.GAP, ClaimKind.CLOSING_TICK), sent.kinds().subList(5, 8));
        assertEquals(1 + 4 + 3, sent.kinds().size());
    }

    @Test
    void aClockThatJumpsFarAheadOpensAnotherSession() throws Exception {
        try (EncryptingProducer<String, Object> producer = producer()) {
            producer.send(record(1));
            clock.set(NOON + 1000 * DAY);
            // The event is refused, unless the borders' own thread has looked at the clock before it.
            boolean refused = false;
            try {
                producer.send(record(2));
            } catch (SerializationException jumped) {
                refused = true;
            }
            producer.keeper().borders();
            producer.send(record(refused ? 4 : 2));
            assertEquals(2, producer.counters().get(Count.SESSIONS));
            assertEquals(1, producer.counters().get(Count.LOST));
        }
        assertEquals(40, sent().sum()[0]);
    }

    /** A session that is ahead of the clock could send nothing until the clock has caught up. */
    @Test
    void aClockThatIsSetForwardAndBackOpensOtherSessions() throws Exception {
        try (EncryptingProducer<String, Object> producer = producer()) {
            producer.send(record(1));
            at(producer, NOON + 3600_000_000L);
            producer.send(record(2));
            at(producer, NOON + 10_000_000);
            producer.send(record(4));
            at(producer, NOON + 12_000_000);
            producer.send(record(4));
            assertEquals(2, producer.counters().get(Count.SESSIONS));
            assertEquals(1, producer.counters().get(Count.LOST), "of the open tick");
        }
        TickReader sent = sent();
        assertEquals(2, sent.openings.size());
        assertNotEquals(
                sent.openings.get(0).claim().session(), sent.openings.get(1).claim().session());
        assertEquals(10 + 40 + 40, sent.sum()[0]);
    }

    /** Copies of a running process part at midnight: the number is drawn afresh. */
    @Test
    void aSessionEndsWithItsDay() throws Exception {
        clock.set(19_676 * DAY - 2_500_000);
        try (EncryptingProducer<String, Object> producer = producer()) {
            producer.send(record(1));
            at(producer, 19_676 * DAY + 1_000_000);
            producer.send(record(2));
            assertEquals(1, producer.counters().get(Count.SESSIONS));
        }
        TickReader sent = sent();
        assertEquals(30, sent.sum()[0]);
        assertEquals(2, sent.openings.size());
        long first = sent.statements.get(0).session();
        assertNotEquals(first + 1, sent.openings.get(1).claim().session());
        assertEquals(Optional.of(new Previous(first, 19_676 * DAY)), sent.openings.get(1).previous());
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
            assertEquals(2, kafka.history().size());
            at(producer, NOON + 4_900_000);
            assertEquals(2, kafka.history().size(), "no border before its lateness is over");
        }
        assertEquals(3, sent().events());
        assertEquals(List.of(0L, 2L, 3L), sent().statements.stream().map(Statement::count).toList());
    }

    private static ProducerRecord<String, Object> timed(long millis) {
        return new ProducerRecord<>(TestDevice.TOPIC, null, millis, "k", Map.of("power", 1));
    }

    @Test
    void aRejectedEventLeavesNoTrace() throws Exception {
        try (EncryptingProducer<String, Object> producer = producer()) {
            producer.send(record(1));
            SerializationException refused =
                    assertThrows(SerializationException.class, () -> producer.send(record(31337)));
            assertFalse(refused.getMessage().contains("31337"), refused.getMessage());
            assertThrows(SerializationException.class, () -> producer.send(new ProducerRecord<>(TestDevice.TOPIC, null)));
            assertEquals(2, producer.counters().get(Count.REFUSED));
        }
        assertEquals(1, sent().events());
        assertEquals(10, sent().sum()[0]);
    }

    @Test
    void threadsShareOneProducer() throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(4);
        List<Future<RecordMetadata>> events = new ArrayList<>();
        try (EncryptingProducer<String, Object> producer = producer()) {
            producer.send(record(1));
            for (int i = 0; i < 400; i++) {
                int each = i;
                threads.execute(() -> {
                    Future<RecordMetadata> event = producer.send(record(1));
                    synchronized (events) {
                        events.add(event);
                    }
                    if (each % 10 == 0) {
                        clock.waitUntil(clock.now() + 300_000);
                    }
                });
            }
            threads.shutdown();
            assertTrue(threads.awaitTermination(30, TimeUnit.SECONDS));
        }
        assertEquals(401, sent().events());
        for (Future<RecordMetadata> event : events) {
            event.get(60, TimeUnit.SECONDS);
        }
    }

    @Test
    void whatNeedsARecordForEachEventIsRejected() {
        for (Map.Entry<String, String> bad : Map.of(
                "transactional.id", "t", "alpheus.headers", "trace", "alpheus.format", "registry").entrySet()) {
            device.settings.put("schema.registry.url", "http://localhost:1");
            device.settings.put(bad.getKey(), bad.getValue());
            ConfigException refused = assertThrows(ConfigException.class, this::producer, bad.getKey());
            assertTrue(refused.getMessage().contains(bad.getKey()), refused.getMessage());
            assertTrue(refused.getMessage().contains("frames: ticks"), refused.getMessage());
            device.settings.remove(bad.getKey());
        }
        try (EncryptingSerializer<Object> serializer = new EncryptingSerializer<>()) {
            ConfigException refused = assertThrows(ConfigException.class,
                    () -> serializer.configure(device.settings, false, own -> kafka, clock));
            assertTrue(refused.getMessage().contains("EncryptingProducer"), refused.getMessage());
        }
    }

    @Test
    void anIdentityThatTheServiceWouldRefuseIsRejectedAtTheStart() throws Exception {
        TestDevice other = new TestDevice(Files.createDirectories(folder.resolve("other")), 1000, "ticks");
        String[][] cases = {
            {"deployment.json", "device.txt", "deployment.json"},
            {"deployment.json", "none", "cannot be read"},
            {"device.seed", "other/device.seed", "not that of the certificate"},
            {"device.seed", "schema.yaml", "not a seed"},
            {"device.txt", "ingest.txt", "role `ingest`"},
            {"device.txt", "schema.yaml", "not a certificate"},
            {"device.txt", "other/device.txt", "did not sign"},
        };
        for (String[] each : cases) {
            Path broken = Files.createDirectories(folder.resolve("broken"));
            for (String name : List.of("deployment.json", "device.seed", "device.txt")) {
                Files.deleteIfExists(broken.resolve(name));
                Path source = folder.resolve(each[0].equals(name) ? each[1] : name);
                if (Files.exists(source)) {
                    Files.copy(source, broken.resolve(name));
                }
            }
            device.settings.put("alpheus.identity.folder", broken.toString());
            ConfigException refused = assertThrows(ConfigException.class, this::producer, String.join(" ", each));
            assertTrue(refused.getMessage().contains(each[2]), refused.getMessage());
            assertTrue(refused.getMessage().contains(each[0]), refused.getMessage());
            assertNull(refused.getCause());
        }
        device.settings.remove("alpheus.identity.folder");
        ConfigException refused = assertThrows(ConfigException.class, this::producer);
        assertTrue(refused.getMessage().contains("alpheus.identity.folder"), refused.getMessage());
        assertNotEquals(other.identity.device(), device.identity.device());
    }
}
