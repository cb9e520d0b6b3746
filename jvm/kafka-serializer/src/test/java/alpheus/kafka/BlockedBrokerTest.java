// A broker that accepts nothing for a while: nobody waits longer than allowed, and nothing is lost.
package alpheus.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import alpheus.kafka.StreamCounters.Count;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

// A separate thread, since one that waits for a lock may miss the timeout.
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class BlockedBrokerTest {
    private static final long NOON = 19_675 * 86_400_000_000L + 43_200_000_000L;

    @TempDir
    private Path folder;

    private TestDevice device;
    private final TestClock clock = new TestClock(NOON + 900_000);
    private final Gate kafka = new Gate();

    /** Sending waits while the gate is closed, as when the client's buffer is full. */
    private static final class Gate extends MockProducer<byte[], byte[]> {
        private final CountDownLatch entered = new CountDownLatch(1);
        private final CountDownLatch opened = new CountDownLatch(1);
        private volatile boolean shut;

        Gate() {
            super(true, null, new ByteArraySerializer(), new ByteArraySerializer());
        }

        @Override
        public Future<RecordMetadata> send(ProducerRecord<byte[], byte[]> record, Callback callback) {
            if (shut) {
                entered.countDown();
                try {
                    opened.await();
                } catch (InterruptedException interrupted) {
                    throw new InterruptException(interrupted);
                }
            }
            return super.send(record, callback);
        }

        void open() {
            shut = false;
            opened.countDown();
        }
    }

    @BeforeEach
    void device() throws Exception {
        device = new TestDevice(folder, 1000);
        device.settings.put("max.block.ms", "400");
        device.settings.put("alpheus.close.timeout.ms", "100");
    }

    private static ProducerRecord<String, Object> event() {
        return new ProducerRecord<>(TestDevice.TOPIC, Map.of("power", 1));
    }

    @Test
    void aWaitingBorderDelaysNoEventLongerThanAllowed() throws Exception {
        EncryptingProducer<String, Object> producer = new EncryptingProducer<>(device.settings, kafka, clock);
        producer.send(event());
        kafka.shut = true;
        // The timer of borders sees that one is due.
        clock.set(NOON + 2_100_000);
        kafka.entered.await();
        assertThrows(TimeoutException.class, () -> producer.send(event()));
        assertThrows(TimeoutException.class, producer::abortTransaction);
        kafka.open();
        sendOnceTheTimerIsDone(producer);
        assertEquals(1, producer.counters().get(Count.SESSIONS), "the session goes on");
        clock.set(NOON + 3_100_000);
        producer.keeper().borders();
        assertEquals(2, device.opened(sent()).count());
        producer.close();
    }

    /** The timer's thread still holds the session for as long as it takes to wake. */
    private static void sendOnceTheTimerIsDone(EncryptingProducer<String, Object> producer) {
        while (true) {
            try {
                producer.send(event());
                return;
            } catch (TimeoutException held) {
                Thread.onSpinWait();
            }
        }
    }

    private List<byte[]> sent() {
        return kafka.history().stream().map(ProducerRecord::value).toList();
    }

    @Test
    void closingDoesNotWaitForASendAndTheKeysAreWipedAfterIt() throws Exception {
        EncryptingProducer<String, Object> producer = new EncryptingProducer<>(device.settings, kafka, clock);
        producer.send(event());
        kafka.shut = true;
        Thread application = new Thread(() -> producer.send(event()));
        application.setUncaughtExceptionHandler((thread, closed) -> { });
        application.start();
        kafka.entered.await();
        producer.close(Duration.ofMillis(100));
        assertTrue(application.isAlive(), "it still waits for the broker");
        assertEquals(0, producer.counters().get(Count.LOST), "the keys are still in use");
        kafka.open();
        application.join();
        assertEquals(2, producer.counters().get(Count.LOST), "its tick never ends, and its events are counted");
        assertThrows(IllegalStateException.class, () -> producer.send(event()));
    }
}
