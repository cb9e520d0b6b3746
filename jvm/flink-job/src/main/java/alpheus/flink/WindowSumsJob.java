// The job over Kafka, as a cluster runs it.
package alpheus.flink;

import alpheus.flink.Messages.DeadLetter;
import alpheus.flink.Messages.DeviceIs;
import alpheus.flink.Messages.Join;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.sink.TransactionNamingStrategy;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.core.execution.CheckpointingMode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * Window sums over Kafka, exactly once. Output is committed with each checkpoint, for consumers with
 * isolation level {@code read_committed}. The job holds no key to data. It sees ciphertexts, times, sessions
 * and counts. If each tick has a frame, it has the service's ingest keys, which authenticate frames and open
 * nothing else.
 */
public final class WindowSumsJob {
    private static final String NAME = "Alpheus window sums";
    /** Flink's own default is 128 for jobs that start small. */
    private static final int MAX_PARALLELISM = 1024;

    private WindowSumsJob() {}

    /**
     * Submits the job to the cluster that runs this.
     *
     * @param arguments property files; a later one overrides earlier ones, so secrets can be in a separate file
     * @throws Exception if a file cannot be read, or the job fails
     */
    public static void main(String[] arguments) throws Exception {
        if (arguments.length == 0) {
            throw new IllegalArgumentException("give a property file; jvm/README.md lists the settings");
        }
        JobConfig config = new JobConfig(settings(arguments));
        StreamExecutionEnvironment flink = StreamExecutionEnvironment.getExecutionEnvironment(config.flink());
        assemble(flink, config);
        flink.execute(NAME);
    }

    private static Map<String, Object> settings(String[] files) throws IOException {
        Properties read = new Properties();
        for (String file : files) {
            try (InputStream in = Files.newInputStream(Path.of(file))) {
                read.load(in);
            }
        }
        Map<String, Object> settings = new HashMap<>();
        read.stringPropertyNames().forEach(name -> settings.put(name, read.getProperty(name)));
        return settings;
    }

    /** Connects sources, sums and sink. */
    static void assemble(StreamExecutionEnvironment flink, JobConfig config) {
        flink.enableCheckpointing(config.getLong(JobConfig.CHECKPOINT), CheckpointingMode.EXACTLY_ONCE);
        // Messages are immutable, so they are not copied between steps.
        flink.getConfig().enableObjectReuse();
        // State is in so many parts for ever: no later job that goes on with it has more tasks.
        if (flink.getMaxParallelism() <= 0) {
            flink.setMaxParallelism(MAX_PARALLELISM);
        }
        Shape shape = config.shape();
        DataStream<byte[]> frames = read(flink, config, JobConfig.EVENTS, new FrameReader(config.envelope(), shape),
                times(config));
        DataStream<byte[]> instructions =
                read(flink, config, JobConfig.INSTRUCTIONS, MessageReader.ofInstructions(shape), untimed());
        DataStream<byte[]> tokens = read(flink, config, JobConfig.TOKENS, MessageReader.ofTokens(), untimed());
        WindowSums sums = WindowSums.of(
                good(frames).union(good(instructions).filter(WindowSumsJob::isOfAStream)),
                good(tokens), good(instructions).filter(message -> !isOfAStream(message)), shape);
        sums.sums().union(sums.summaries(), sums.deadLetters(), bad(frames), bad(instructions), bad(tokens))
                .sinkTo(sink(config)).name("results").uid("results");
    }

    private static DataStream<byte[]> read(
            StreamExecutionEnvironment flink, JobConfig config, String topic,
            KafkaRecordDeserializationSchema<byte[]> reader, WatermarkStrategy<byte[]> times) {
        KafkaSource<byte[]> source = KafkaSource.<byte[]>builder()
                .setProperties(config.client())
                .setTopics(config.getString(topic))
                .setGroupId(config.getString(JobConfig.NAME))
                // Without its state it reads everything again; docs/protocol.md says what it then repeats.
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setProperty("isolation.level", "read_committed")
                .setDeserializer(reader)
                .build();
        return flink.fromSource(source, times, config.getString(topic)).uid(topic);
    }

    /** A watermark for each partition. */
    private static WatermarkStrategy<byte[]> times(JobConfig config) {
        long skew = config.getLong(JobConfig.SKEW);
        long disorder = config.getLong(JobConfig.DISORDER);
        long idle = config.getLong(JobConfig.IDLE);
        return WatermarkStrategy.<byte[]>forGenerator(context -> new PartitionTimes(
                        new PartitionTimes.Limits(skew, disorder, idle), System::currentTimeMillis,
                        context.getInputActivityClock()::relativeTimeNanos))
                .withTimestampAssigner((message, before) -> FrameReader.millisOf(message));
    }

    private static WatermarkStrategy<byte[]> untimed() {
        return WatermarkStrategy.forGenerator(context -> new AlwaysIdle());
    }

    private static boolean isOfAStream(byte[] message) {
        return Messages.kind(message) == Join.KIND || Messages.kind(message) == DeviceIs.KIND;
    }

    private static DataStream<byte[]> good(DataStream<byte[]> read) {
        return read.filter(message -> Messages.kind(message) != DeadLetter.KIND);
    }

    private static DataStream<byte[]> bad(DataStream<byte[]> read) {
        return read.filter(message -> Messages.kind(message) == DeadLetter.KIND);
    }

    private static KafkaSink<byte[]> sink(JobConfig config) {
        return KafkaSink.<byte[]>builder()
                .setBootstrapServers(config.client().getProperty("bootstrap.servers"))
                .setKafkaProducerConfig(config.sinkClient())
                .setRecordSerializer(new Outlet(config.getString(JobConfig.EVENTS), config.getString(JobConfig.SUMS),
                        config.getString(JobConfig.SUMMARIES), config.getString(JobConfig.DEAD_LETTERS)))
                .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .setTransactionalIdPrefix(config.getString(JobConfig.NAME))
                // The broker would keep a new id for each checkpoint in memory for a week.
                .setTransactionNamingStrategy(TransactionNamingStrategy.POOLING)
                .build();
    }
}
