// Encryption by configuration alone: the value.serializer of an existing producer.
package alpheus.kafka;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serializer;

/**
 * Encryption by configuration alone: {@code value.serializer} is this class, and {@code key.serializer} is
 * {@link StreamKeySerializer}. A serializer turns one record into one, so borders use a separate connection
 * with the same settings.
 *
 * <p>There is no order between two connections. A session's opening border is acknowledged before its first
 * event is made. Other borders may overtake events that still wait in the first producer. Queries must
 * allow for that with a grace of {@code linger.ms} and a round trip. This class does not see that the
 * broker rejects a frame, which costs its stream that tick. Aborted events cannot be distinguished from
 * others, so a {@code transactional.id} is rejected. {@link EncryptingProducer} has none of these limits.
 *
 * <p>Headers are the application's own and go to the broker in the clear.
 *
 * @param <V> the application's values
 */
public final class EncryptingSerializer<V> implements Serializer<V> {
    private SessionKeeper keeper;
    private RowReader<V> reader;
    private StreamCounters counters;
    private Producer<byte[], byte[]> borders;
    private byte[] key;
    private FrameFormat format;
    private long closeMillis;
    private volatile String topic;

    /** For Kafka, which creates an instance by class name and configures it. */
    public EncryptingSerializer() {}

    @Override
    public void configure(Map<String, ?> settings, boolean isKey) {
        configure(settings, isKey, own -> new KafkaProducer<>(own, new ByteArraySerializer(), new ByteArraySerializer()),
                MicroClock.SYSTEM);
    }

    /** Creates the connection for borders. */
    @FunctionalInterface
    interface Connect {
        Producer<byte[], byte[]> connect(Map<String, Object> settings);
    }

    void configure(Map<String, ?> settings, boolean isKey, Connect connect, MicroClock clock) {
        if (isKey) {
            throw new ConfigException(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, getClass().getName(),
                    "keys are replaced, not encrypted: use " + StreamKeySerializer.class.getName());
        }
        if (settings.get(ProducerConfig.TRANSACTIONAL_ID_CONFIG) != null) {
            throw new ConfigException(ProducerConfig.TRANSACTIONAL_ID_CONFIG, "",
                    "borders would not be in the transactions: use " + EncryptingProducer.class.getName());
        }
        ProducerRules.check(settings);
        ProducerRules.checkKeySerializer(settings);
        AlpheusConfig config = new AlpheusConfig(settings);
        if (config.isTimedByRecord()) {
            throw new ConfigException(AlpheusConfig.TIME, "record",
                    "a serializer does not receive a record's time: use " + EncryptingProducer.class.getName());
        }
        String client = settings.get(ProducerConfig.CLIENT_ID_CONFIG) + "-borders";
        counters = new StreamCounters(client);
        StreamEncryptor encryptor = Encryptors.open(config, clock, counters);
        if (!encryptor.hasFramePerEvent()) {
            encryptor.close();
            counters.close();
            throw new ConfigException(AlpheusConfig.SCHEMA, config.getString(AlpheusConfig.SCHEMA),
                    "with `frames: ticks`, the default, events have no records of their own, which a serializer must return: use "
                            + EncryptingProducer.class.getName() + ", or `frames: events` in the schema");
        }
        reader = Encryptors.reader(config);
        key = encryptor.stream().bytes();
        format = new FrameFormat(config);
        closeMillis = config.getLong(AlpheusConfig.CLOSE_TIMEOUT);
        borders = connect.connect(ownSettings(settings, client));
        keeper = new SessionKeeper(
                encryptor, clock, counters, AlpheusConfig.maxBlockMillis(settings), this::deliver);
    }

    private static Map<String, Object> ownSettings(Map<String, ?> settings, String client) {
        Map<String, Object> own = AlpheusConfig.producerSettings(settings);
        own.remove(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG);
        own.remove(ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG);
        own.remove(ProducerConfig.INTERCEPTOR_CLASSES_CONFIG);
        own.remove(ProducerConfig.PARTITIONER_CLASS_CONFIG);
        own.put(ProducerConfig.CLIENT_ID_CONFIG, client);
        return own;
    }

    @Override
    public byte[] serialize(String name, V data) {
        if (topic != null && !topic.equals(name)) {
            EventRefusedException refused = new EventRefusedException(EventRefusedException.Fault.OTHER_TOPIC);
            throw new SerializationException(refused.getMessage(), refused);
        }
        topic = name;
        return keeper.event(reader, data, null, frame -> format.write(name, frame));
    }

    @Override
    public byte[] serialize(String name, Headers headers, V data) {
        return serialize(name, data);
    }

    private void deliver(List<byte[]> frames) {
        boolean opens = false;
        for (byte[] frame : frames) {
            opens |= FrameTimes.opens(frame);
            byte[] value = format.write(topic, frame);
            borders.send(new ProducerRecord<>(topic, null, FrameTimes.millis(frame), key, value), keeper.watched(frame, null));
        }
        // No event may come before its session's opening border.
        if (opens) {
            borders.flush();
        }
    }

    /** Closes the session, waiting for the end of its tick, and closes the borders' connection. */
    @Override
    public void close() {
        if (keeper != null) {
            try {
                keeper.close(closeMillis, () -> { });
            } finally {
                borders.close(Duration.ofMillis(Math.max(closeMillis, 1)));
                counters.close();
            }
        }
    }

    StreamCounters counters() {
        return counters;
    }

    SessionKeeper keeper() {
        return keeper;
    }
}
