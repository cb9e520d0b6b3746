// Transactions of borders that the broker does not end in time.
package alpheus.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.file.Path;
import java.util.Map;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CutShortTest {
    private static final long NOON = 19_675 * 86_400_000_000L + 43_200_000_000L;

    @TempDir
    private Path folder;

    private TestDevice device;
    private final TestClock clock = new TestClock(NOON + 300_000);
    private final Slow kafka = new Slow();

    /** Like Kafka's own: after a commit or an abort timed out, it accepts only the same call. */
    private static final class Slow extends MockProducer<byte[], byte[]> {
        private String pending = "";
        private boolean away;

        Slow() {
            super(true, null, new ByteArraySerializer(), new ByteArraySerializer());
        }

        private void ask(String what) {
            if (!pending.isEmpty() && !pending.equals(what)) {
                throw new IllegalStateException("the previous call to " + pending + " timed out and must be retried");
            }
            pending = away ? what : "";
            if (away) {
                throw new TimeoutException("the coordinator is away");
            }
        }

        @Override
        public void beginTransaction() {
            if (!pending.isEmpty()) {
                ask("beginTransaction");
            }
            super.beginTransaction();
        }

        @Override
        public void commitTransaction() {
            ask("commitTransaction");
            super.commitTransaction();
        }

        @Override
        public void abortTransaction() {
            ask("abortTransaction");
            super.abortTransaction();
        }
    }

    @BeforeEach
    void device() throws Exception {
        device = new TestDevice(folder, 1000);
        device.settings.put("transactional.id", "t");
    }

    private static ProducerRecord<String, Object> event() {
        return new ProducerRecord<>(TestDevice.TOPIC, Map.of("power", 1));
    }

    private void send(EncryptingProducer<String, Object> producer) {
        producer.beginTransaction();
        producer.send(event());
        producer.commitTransaction();
    }

    /** Borders are sent between transactions while the broker's coordinator is away. */
    private void borders(EncryptingProducer<String, Object> producer) {
        clock.set(clock.now() + 2 * TestDevice.TICK);
        assertThrows(TimeoutException.class, () -> producer.keeper().borders());
    }

    private long opened() throws Exception {
        return device.opened(kafka.history().stream().map(ProducerRecord::value).toList()).count();
    }

    @Test
    void aCommitThatTimedOutIsRetried() throws Exception {
        try (EncryptingProducer<String, Object> producer = new EncryptingProducer<>(device.settings, kafka, clock)) {
            producer.initTransactions();
            send(producer);
            kafka.away = true;
            borders(producer);
            borders(producer);
            kafka.away = false;
            send(producer);
        }
        assertEquals(2, opened(), "what was before and what comes after");
    }

    @Test
    void anAbortThatTimedOutIsRetried() throws Exception {
        try (EncryptingProducer<String, Object> producer = new EncryptingProducer<>(device.settings, kafka, clock)) {
            producer.initTransactions();
            send(producer);
            kafka.away = true;
            kafka.sendException = new TimeoutException("full");
            borders(producer);
            kafka.sendException = null;
            kafka.away = false;
            send(producer);
        }
        assertEquals(1, opened());
    }
}
