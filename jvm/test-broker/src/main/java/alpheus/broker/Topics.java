// Reads whole topics for tests.
package alpheus.broker;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Reads whole topics. */
public final class Topics {
    private Topics() {}

    /**
     * The committed records of a topic.
     *
     * @param broker the broker
     * @param topic the topic
     * @return its records, in order within each partition
     */
    public static List<ConsumerRecord<byte[], byte[]>> committed(Broker broker, String topic) {
        return read(broker, topic, "read_committed");
    }

    /**
     * All records of a topic, including aborted ones.
     *
     * @param broker the broker
     * @param topic the topic
     * @return its records, in order within each partition
     */
    public static List<ConsumerRecord<byte[], byte[]>> everything(Broker broker, String topic) {
        return read(broker, topic, "read_uncommitted");
    }

    private static List<ConsumerRecord<byte[], byte[]>> read(Broker broker, String topic, String isolation) {
        Map<String, Object> settings =
                new HashMap<>(Map.of("bootstrap.servers", broker.bootstrap(), "isolation.level", isolation));
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        try (var consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
                    .map(each -> new TopicPartition(topic, each.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (ends.entrySet().stream().anyMatch(end -> consumer.position(end.getKey()) < end.getValue())) {
                consumer.poll(Duration.ofMillis(200)).forEach(records::add);
            }
        }
        return records;
    }
}
