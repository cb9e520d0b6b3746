// Delays a job's events until everything is ready, so that the start is not measured.
package alpheus.flink;

import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerInterceptor;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.ProducerInterceptor;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

/** An interceptor of all clients of a job. Events wait at a gate, which opens once. */
public final class BenchGate
        implements ConsumerInterceptor<byte[], byte[]>, ProducerInterceptor<byte[], byte[]> {
    static final String EVENTS = "bench.events";

    private static volatile CountDownLatch gate = new CountDownLatch(1);

    private String events;

    /** For Kafka. */
    public BenchGate() {}

    static void open() {
        gate.countDown();
    }

    static void shut() {
        gate = new CountDownLatch(1);
    }

    @Override
    public void configure(Map<String, ?> settings) {
        events = String.valueOf(settings.get(EVENTS));
    }

    @Override
    public ConsumerRecords<byte[], byte[]> onConsume(ConsumerRecords<byte[], byte[]> records) {
        try {
            if (records.records(events).iterator().hasNext()) {
                gate.await();
            }
        } catch (InterruptedException ends) {
            Thread.currentThread().interrupt();
        }
        return records;
    }

    @Override
    public void onCommit(Map<TopicPartition, OffsetAndMetadata> offsets) {}

    @Override
    public ProducerRecord<byte[], byte[]> onSend(ProducerRecord<byte[], byte[]> record) {
        return record;
    }

    @Override
    public void onAcknowledgement(RecordMetadata metadata, Exception failure) {}

    @Override
    public void close() {}
}
