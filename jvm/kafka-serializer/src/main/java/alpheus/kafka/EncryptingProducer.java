// A Kafka producer that encrypts its events.
package alpheus.kafka;

import alpheus.kafka.EventRefusedException.Fault;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A Kafka producer that encrypts its events. It replaces a {@link KafkaProducer}, and takes its settings
 * and those of {@link AlpheusConfig}. Events are encrypted under the device's key before they reach Kafka.
 * Borders are sent on time even without events, through the same connection, in order and in the
 * application's transactions. It is safe for concurrent use.
 *
 * <p>The broker and the readers of the topic see the stream's id, and when it is on. They never see a value,
 * nor the record's own key, which is not sent. With {@code frames: events} they see the time of each event.
 *
 * <p>Unless the schema has {@code frames: events}, the producer adds up its events and sends one frame a tick. A
 * future or callback of {@link #send} tells what became of the event's tick, after its end. There are no
 * transactions then, and no headers.
 *
 * <p>A frame that the broker rejects breaks its tick and ends the session. Events of that tick are lost and
 * counted ({@code lost-total}). The next event waits for a session that opens at the next tick, for {@code
 * max.block.ms} at most. {@link #abortTransaction} has the same effect.
 *
 * @param <K> the application's keys
 * @param <V> the application's values
 */
public final class EncryptingProducer<K, V> implements Producer<K, V> {
    private final Producer<byte[], byte[]> kafka;
    private final OwnTransactions own;
    private final SessionKeeper keeper;
    private final RowReader<V> reader;
    private final StreamCounters counters;
    private final List<String> headers;
    private final byte[] key;
    private final FrameFormat format;
    private final boolean transactional;
    /** Whether each event has a frame; otherwise each tick has. */
    private final boolean framePerEvent;
    private final long closeMillis;

    private final AtomicReference<String> topic = new AtomicReference<>();
    private boolean inTransaction;

    /**
     * A producer over Kafka.
     *
     * @param settings a producer's settings, and Alpheus's
     */
    public EncryptingProducer(Map<String, ?> settings) {
        this(settings, new KafkaProducer<>(
                AlpheusConfig.producerSettings(settings), new ByteArraySerializer(), new ByteArraySerializer()),
                MicroClock.SYSTEM);
    }

    /**
     * A producer over Kafka.
     *
     * @param settings a producer's settings, and Alpheus's
     */
    public EncryptingProducer(Properties settings) {
        this(asMap(settings));
    }

    EncryptingProducer(Map<String, ?> settings, Producer<byte[], byte[]> kafka, MicroClock clock) {
        Object client = settings.get(ProducerConfig.CLIENT_ID_CONFIG);
        this.kafka = kafka;
        this.own = new OwnTransactions(kafka);
        this.counters = new StreamCounters(client == null ? "" : client.toString());
        try {
            ProducerRules.check(settings);
            AlpheusConfig config = new AlpheusConfig(settings);
            StreamEncryptor encryptor = Encryptors.open(config, clock, counters);
            this.reader = Encryptors.reader(config);
            this.headers = config.getList(AlpheusConfig.HEADERS);
            this.key = encryptor.stream().bytes();
            this.format = new FrameFormat(config);
            this.transactional = settings.get(ProducerConfig.TRANSACTIONAL_ID_CONFIG) != null;
            this.closeMillis = config.getLong(AlpheusConfig.CLOSE_TIMEOUT);
            this.framePerEvent = encryptor.hasFramePerEvent();
            if (!framePerEvent) {
                ProducerRules.checkTicks(config, settings, encryptor);
            }
            this.keeper = new SessionKeeper(
                    encryptor, clock, counters, AlpheusConfig.maxBlockMillis(settings), this::deliver);
        } catch (ConfigException refused) {
            kafka.close(Duration.ZERO);
            counters.close();
            throw refused;
        }
    }

    private static Map<String, Object> asMap(Properties settings) {
        Map<String, Object> map = new TreeMap<>();
        settings.stringPropertyNames().forEach(name -> map.put(name, settings.getProperty(name)));
        settings.forEach((name, value) -> map.put(name.toString(), value));
        return map;
    }

    @Override
    public Future<RecordMetadata> send(ProducerRecord<K, V> record) {
        return send(record, null);
    }

    /**
     * Encrypts a record and sends it, after the borders before it.
     *
     * @throws SerializationException if the record cannot be encrypted; its cause has the reason
     * @throws org.apache.kafka.common.errors.TimeoutException if no session could open within
     *     {@code max.block.ms}, or if another frame waits for the broker that long
     */
    @Override
    public Future<RecordMetadata> send(ProducerRecord<K, V> record, Callback callback) {
        admit(record);
        if (!framePerEvent) {
            return keeper.tickEvent(reader, record.value(), record.timestamp(), callback);
        }
        return keeper.event(reader, record.value(), record.timestamp(), frame ->
                kafka.send(recordOf(frame, passed(record.headers())), keeper.watched(frame, callback)));
    }

    private void admit(ProducerRecord<K, V> record) {
        if (record.partition() != null) {
            throw refusal(Fault.PARTITION);
        }
        if (!topic.compareAndSet(null, record.topic()) && !topic.get().equals(record.topic())) {
            throw refusal(Fault.OTHER_TOPIC);
        }
    }

    private static SerializationException refusal(Fault fault) {
        EventRefusedException refused = new EventRefusedException(fault);
        return new SerializationException(refused.getMessage(), refused);
    }

    /** Between the application's transactions borders have their own transactions. */
    private void deliver(List<byte[]> frames) {
        if (!transactional || inTransaction) {
            sendAll(frames);
            return;
        }
        own.run(() -> sendAll(frames));
    }

    private void sendAll(List<byte[]> frames) {
        frames.forEach(frame -> kafka.send(recordOf(frame, new RecordHeaders()), keeper.watched(frame, null)));
    }

    private ProducerRecord<byte[], byte[]> recordOf(byte[] frame, Headers passed) {
        byte[] value = format.write(topic.get(), frame);
        return new ProducerRecord<>(topic.get(), null, FrameTimes.millis(frame), key, value, passed);
    }

    private Headers passed(Headers given) {
        Headers passed = new RecordHeaders();
        headers.forEach(name -> given.headers(name).forEach(passed::add));
        return passed;
    }

    @Override
    public void initTransactions() {
        kafka.initTransactions();
    }

    @Override
    public void beginTransaction() {
        keeper.exclusively(() -> {
            own.settle();
            kafka.beginTransaction();
            keeper.begin();
            inTransaction = true;
        });
    }

    @Override
    public void sendOffsetsToTransaction(
            Map<TopicPartition, OffsetAndMetadata> offsets, ConsumerGroupMetadata group) {
        kafka.sendOffsetsToTransaction(offsets, group);
    }

    @Override
    public void commitTransaction() {
        keeper.exclusively(() -> {
            kafka.commitTransaction();
            inTransaction = false;
        });
    }

    /** Aborts, and abandons the session: its frames are gone, and no frame is made twice. */
    @Override
    public void abortTransaction() {
        keeper.exclusively(() -> {
            keeper.abort();
            inTransaction = false;
            kafka.abortTransaction();
        });
    }

    /**
     * Waits until all events are in the topic. With one frame a tick this waits for the end of the tick.
     */
    @Override
    public void flush() {
        keeper.awaitTick();
        kafka.flush();
    }

    @Override
    public List<PartitionInfo> partitionsFor(String name) {
        return kafka.partitionsFor(name);
    }

    @Override
    public Map<MetricName, ? extends Metric> metrics() {
        Map<MetricName, Metric> all = counters.metrics();
        all.putAll(kafka.metrics());
        return all;
    }

    @Override
    public void registerMetricForSubscription(KafkaMetric metric) {
        kafka.registerMetricForSubscription(metric);
    }

    @Override
    public void unregisterMetricFromSubscription(KafkaMetric metric) {
        kafka.unregisterMetricFromSubscription(metric);
    }

    @Override
    public Uuid clientInstanceId(Duration timeout) {
        return kafka.clientInstanceId(timeout);
    }

    @Override
    public void close() {
        close(Duration.ofMillis(Long.MAX_VALUE));
    }

    /**
     * Closes the session, waiting for the end of its tick if there is time, and closes the producer.
     * Otherwise, and within a transaction, the tick's events are lost and counted.
     */
    @Override
    public void close(Duration timeout) {
        try {
            keeper.close(Math.min(closeMillis, timeout.toMillis()), () -> {
                if (inTransaction) {
                    keeper.abort();
                }
            });
        } finally {
            kafka.close(timeout);
            counters.close();
        }
    }

    StreamCounters counters() {
        return counters;
    }

    SessionKeeper keeper() {
        return keeper;
    }
}
