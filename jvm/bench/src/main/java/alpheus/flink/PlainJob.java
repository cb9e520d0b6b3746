// The job without privacy: the same sums over vectors or raw attributes, in the clear.
package alpheus.flink;

import alpheus.AlpheusException;
import alpheus.encode.Encoder;
import alpheus.encode.Row;
import alpheus.schema.Attribute;
import alpheus.schema.Schema;
import alpheus.stream.TickSum;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.sink.TransactionNamingStrategy;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.core.execution.CheckpointingMode;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.windowing.ProcessAllWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * The usual job: a window for each stream, and their sum, exactly once over Kafka. Checkpoints, partitions
 * and clients have the settings of the encrypted job.
 */
final class PlainJob {
    private static final TypeInformation<long[]> LONGS = PrimitiveArrayTypeInfo.LONG_PRIMITIVE_ARRAY_TYPE_INFO;

    private PlainJob() {}

    /** Adds one record to a sum. */
    static final class Sums implements AggregateFunction<Tuple2<String, long[]>, long[], long[]> {
        private static final long serialVersionUID = 1L;

        private final int words;
        /** The schema's file if records are raw attributes, null if they are vectors. */
        private final String schema;
        private transient Encoder encoder;
        private transient List<Attribute> attributes;
        private transient Row row;
        private transient Random random;

        Sums(int words, String schema) {
            this.words = words;
            this.schema = schema;
        }

        @Override
        public long[] createAccumulator() {
            return new long[words];
        }

        @Override
        public long[] add(Tuple2<String, long[]> record, long[] sum) {
            if (schema == null) {
                TickSum.add(sum, record.f1);
                return sum;
            }
            prepare();
            try {
                row.clear();
                BenchApplication.fill(attributes, record.f1, row);
                encoder.encode(row, random, sum);
                return sum;
            } catch (AlpheusException impossible) {
                throw new IllegalStateException(impossible);
            }
        }

        private void prepare() {
            if (encoder == null) {
                try {
                    Schema read = Schema.fromYaml(Files.readString(Path.of(schema)));
                    encoder = new Encoder(read);
                    attributes = read.attributes();
                    row = encoder.row();
                    random = new Random(1);
                } catch (IOException | AlpheusException impossible) {
                    throw new IllegalStateException(impossible);
                }
            }
        }

        @Override
        public long[] getResult(long[] sum) {
            return sum;
        }

        @Override
        public long[] merge(long[] one, long[] other) {
            TickSum.add(one, other);
            return one;
        }
    }

    /** The stream and the longs of a record. */
    private static final class Reader implements KafkaRecordDeserializationSchema<Tuple2<String, long[]>> {
        private static final long serialVersionUID = 1L;

        @Override
        public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<Tuple2<String, long[]>> out) {
            long[] longs = new long[record.value().length / Long.BYTES];
            ByteBuffer.wrap(record.value()).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().get(longs);
            out.collect(Tuple2.of(HexFormat.of().formatHex(record.key()), longs));
        }

        @Override
        public TypeInformation<Tuple2<String, long[]>> getProducedType() {
            return Types.TUPLE(Types.STRING, LONGS);
        }
    }

    /** The sums of all streams of a window, with its start. */
    private static final class Total extends ProcessAllWindowFunction<long[], byte[], TimeWindow> {
        private static final long serialVersionUID = 1L;

        @Override
        public void process(Context context, Iterable<long[]> sums, Collector<byte[]> out) {
            long[] sum = sums.iterator().next();
            ByteBuffer bytes = ByteBuffer.allocate(Long.BYTES * (1 + sum.length));
            bytes.putLong(1_000L * context.window().getStart()).asLongBuffer().put(sum);
            out.collect(bytes.array());
        }
    }

    /** Builds the job. It sums the attributes of {@code schema}, or vectors without it. */
    static void assemble(StreamExecutionEnvironment flink, JobConfig config, String schema) {
        flink.enableCheckpointing(config.getLong(JobConfig.CHECKPOINT), CheckpointingMode.EXACTLY_ONCE);
        flink.getConfig().enableObjectReuse();
        Shape shape = config.shape();
        KafkaSource<Tuple2<String, long[]>> source = KafkaSource.<Tuple2<String, long[]>>builder()
                .setProperties(config.client())
                .setTopics(config.getString(JobConfig.EVENTS))
                .setGroupId(config.getString(JobConfig.NAME))
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setProperty("isolation.level", "read_committed")
                .setDeserializer(new Reader())
                .build();
        WatermarkStrategy<Tuple2<String, long[]>> times = WatermarkStrategy
                .<Tuple2<String, long[]>>forMonotonousTimestamps()
                .withIdleness(Duration.ofMillis(config.getLong(JobConfig.IDLE)));
        Duration window = Duration.ofMillis(shape.tick() / 1_000L);
        flink.fromSource(source, times, "events")
                .keyBy(record -> record.f0, Types.STRING)
                .window(TumblingEventTimeWindows.of(window))
                .aggregate(new Sums(shape.words(), schema), LONGS, LONGS)
                .windowAll(TumblingEventTimeWindows.of(window))
                .reduce(PlainJob::sum, new Total(), PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO)
                .sinkTo(sink(config));
    }

    private static long[] sum(long[] one, long[] other) {
        TickSum.add(one, other);
        return one;
    }

    private static KafkaSink<byte[]> sink(JobConfig config) {
        String topic = config.getString(JobConfig.SUMS);
        return KafkaSink.<byte[]>builder()
                .setBootstrapServers(config.client().getProperty("bootstrap.servers"))
                .setKafkaProducerConfig(config.sinkClient())
                .setRecordSerializer((KafkaRecordSerializationSchema<byte[]>) (bytes, context, timestamp) ->
                        new ProducerRecord<>(topic, bytes))
                .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .setTransactionalIdPrefix(config.getString(JobConfig.NAME))
                .setTransactionNamingStrategy(TransactionNamingStrategy.INCREMENTING)
                .build();
    }
}
