// What comes out of the job as records: each kind to its topic.
package alpheus.flink;

import alpheus.flink.Messages.DeadLetter;
import alpheus.flink.Messages.Joined;
import alpheus.flink.Messages.Progress;
import alpheus.flink.Messages.Summary;
import alpheus.flink.Messages.WindowSum;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
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
 * What comes out of the job as records, all through one sink, so that a checkpoint commits them together. A
 * dead letter is the record that came, with its reason in a header.
 */
final class Outlet implements KafkaRecordSerializationSchema<byte[]>, KafkaDatasetFacetProvider {
    /** Names the reason of a dead letter. */
    static final String REASON = "alpheus.reason";

    private static final long serialVersionUID = 1L;

    private final String sums;
    private final String summaries;
    private final String deadLetters;

    Outlet(String sums, String summaries, String deadLetters) {
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
                case Summary.KIND -> {
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

    /** Names the topics, among whose transactions the sink looks for those that a failure left open. */
    @Override
    public Optional<KafkaDatasetFacet> getKafkaDatasetFacet() {
        return Optional.of(new DefaultKafkaDatasetFacet(
                DefaultKafkaDatasetIdentifier.ofTopics(List.of(sums, summaries, deadLetters)), new Properties()));
    }

    /**
     * Behind the summaries that it is about only where each task writes what it says itself: with another number of
     * sinks Flink deals records out among them. Then nothing is said.
     */
    private ProducerRecord<byte[], byte[]> progress(byte[] message, KafkaSinkContext context) throws IOException {
        Progress progress = Progress.read(message);
        boolean isOwn = progress.task() == context.getParallelInstanceId()
                && progress.tasks() == context.getNumberOfParallelInstances();
        return isOwn ? new ProducerRecord<>(summaries, utf8("progress/" + progress.task()), message) : null;
    }

    private ProducerRecord<byte[], byte[]> deadLetter(DeadLetter letter) {
        List<Header> headers = List.of(new RecordHeader(REASON, utf8(letter.reason())));
        byte[] key = HexFormat.of().parseHex(letter.stream());
        return new ProducerRecord<>(deadLetters, null, key, letter.frame(), headers);
    }

    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
