// Turns output of the job into records, each kind for its topic.
package alpheus.flink;

import alpheus.flink.Messages.DeadLetter;
import alpheus.flink.Messages.Joined;
import alpheus.flink.Messages.Progress;
import alpheus.flink.Messages.WindowSum;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import org.apache.flink.connector.kafka.lineage.DefaultKafkaDatasetFacet;
import org.apache.flink.connector.kafka.lineage.DefaultKafkaDatasetIdentifier;
import org.apache.flink.connector.kafka.lineage.KafkaDatasetFacet;
import org.apache.flink.connector.kafka.lineage.KafkaDatasetFacetProvider;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;

/**
 * Turns output of the job into records. All go through one sink, so a checkpoint commits them together. A
 * dead letter is the original record, with its reason and where it came from in headers.
 */
final class Outlet implements KafkaRecordSerializationSchema<byte[]>, KafkaDatasetFacetProvider {
    /** The header with the reason of a dead letter. */
    static final String REASON = "alpheus.reason";

    /** The headers with the place of the original record. */
    static final String TOPIC = "alpheus.topic";
    static final String PARTITION = "alpheus.partition";
    static final String OFFSET = "alpheus.offset";

    private static final long serialVersionUID = 1L;

    private final String events;
    private final String sums;
    private final String summaries;
    private final String deadLetters;

    Outlet(String events, String sums, String summaries, String deadLetters) {
        this.events = events;
        this.sums = sums;
        this.summaries = summaries;
        this.deadLetters = deadLetters;
    }

    @Override
    public ProducerRecord<byte[], byte[]> serialize(byte[] message, KafkaSinkContext context, Long timestamp) {
        try {
            return switch (Messages.kind(message)) {
                case WindowSum.KIND -> {
                    WindowSum sum = WindowSum.read(message);
                    yield new ProducerRecord<>(sums, utf8(sum.plan() + "/" + sum.start()), message);
                }
                case Summary.KIND, Summary.OF_TICKS -> {
                    Summary summary = Summary.read(message);
                    String key = summary.plan() + "/" + summary.start() + "/" + summary.stream();
                    yield new ProducerRecord<>(summaries, utf8(key), message);
                }
                case Joined.KIND -> {
                    Joined joined = Joined.read(message);
                    yield new ProducerRecord<>(summaries, utf8(joined.plan() + "/joined/" + joined.stream()), message);
                }
                case Progress.KIND -> progress(message, context);
                default -> deadLetter(DeadLetter.read(message));
            };
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
    }

    /** Names the topics. The sink searches their transactions for those that a failure left open. */
    @Override
    public Optional<KafkaDatasetFacet> getKafkaDatasetFacet() {
        return Optional.of(new DefaultKafkaDatasetFacet(
                DefaultKafkaDatasetIdentifier.ofTopics(List.of(sums, summaries, deadLetters)), new Properties()));
    }

    /**
     * Progress follows its summaries only if each task writes its own output. With another number of sinks
     * Flink redistributes the records. Then no progress is written.
     */
    private ProducerRecord<byte[], byte[]> progress(byte[] message, KafkaSinkContext context) throws IOException {
        Progress progress = Progress.read(message);
        boolean isOwn = progress.task() == context.getParallelInstanceId()
                && progress.tasks() == context.getNumberOfParallelInstances();
        return isOwn ? new ProducerRecord<>(summaries, utf8("progress/" + progress.task()), message) : null;
    }

    private ProducerRecord<byte[], byte[]> deadLetter(DeadLetter letter) {
        List<Header> headers = new ArrayList<>();
        headers.add(new RecordHeader(REASON, utf8(letter.reason())));
        if (letter.place().isKnown()) {
            headers.add(new RecordHeader(TOPIC, utf8(letter.topic().isEmpty() ? events : letter.topic())));
            headers.add(new RecordHeader(PARTITION, utf8(Integer.toString(letter.place().partition()))));
            headers.add(new RecordHeader(OFFSET, utf8(Long.toString(letter.place().offset()))));
        }
        byte[] key = HexFormat.of().parseHex(letter.stream());
        return new ProducerRecord<>(deadLetters, null, key, letter.frame(), headers);
    }

    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
