// Plays producers, policy manager and controllers over a real broker, and computes the expected sums from
// the input topic.
package alpheus.flink;

import static org.junit.jupiter.api.Assertions.assertTrue;

import alpheus.broker.Broker;
import alpheus.broker.Topics;
import alpheus.flink.Messages.PlanStart;
import alpheus.flink.Messages.Progress;
import alpheus.flink.Messages.TokenSet;
import alpheus.flink.Messages.WindowSum;
import alpheus.stream.Frame;
import alpheus.stream.FrameException;
import alpheus.stream.StreamId;
import alpheus.stream.TickSum;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** All parties around the job. */
final class Desk implements AutoCloseable {
    static final int PARTITIONS = 4;
    static final int CONTROLLERS = 3;

    private final Broker broker;
    private final JobConfig config;
    private final KafkaProducer<byte[], byte[]> kafka;
    /** Each stream's only session. */
    private final Map<Integer, Long> sessions = new HashMap<>();

    Desk(Broker broker, JobConfig config) throws ExecutionException, InterruptedException {
        this.broker = broker;
        this.config = config;
        broker.createTopics(PARTITIONS, topic(JobConfig.EVENTS));
        broker.createTopics(2, topic(JobConfig.TOKENS));
        broker.createTopics(1, topic(JobConfig.INSTRUCTIONS), topic(JobConfig.SUMS), topic(JobConfig.SUMMARIES),
                topic(JobConfig.DEAD_LETTERS));
        kafka = new KafkaProducer<>(Map.of("bootstrap.servers", broker.bootstrap(), "enable.idempotence", "true"),
                new ByteArraySerializer(), new ByteArraySerializer());
    }

    private String topic(String setting) {
        return config.getString(setting);
    }

    /** Sends a frame of a stream; the last partition stays empty. */
    void frame(int stream, byte[] frame) throws FrameException {
        sessions.putIfAbsent(stream, Frame.parse(frame).session());
        event(stream % (PARTITIONS - 1), Feed.stream(stream).bytes(), frame);
    }

    void event(int partition, byte[] key, byte[] value) {
        kafka.send(new ProducerRecord<>(topic(JobConfig.EVENTS), partition, key, value));
    }

    void instruct(byte[] message) {
        kafka.send(new ProducerRecord<>(topic(JobConfig.INSTRUCTIONS), message));
    }

    void answer(byte[] message) {
        kafka.send(new ProducerRecord<>(topic(JobConfig.TOKENS), message));
    }

    void flush() {
        kafka.flush();
    }

    /** Starts a plan over this many streams. */
    void begin(int streams) {
        instruct(new PlanStart(Feed.PLAN).bytes());
        for (int stream = 0; stream < streams; stream++) {
            instruct(Feed.join(stream));
        }
        flush();
    }

    /** Whether the job has durably processed all instructions. */
    boolean isInstructed() throws Exception {
        TopicPartition only = new TopicPartition(topic(JobConfig.INSTRUCTIONS), 0);
        try (Admin admin = broker.admin()) {
            String group = config.getString(JobConfig.NAME);
            OffsetAndMetadata read =
                    admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(only);
            long end = Topics.everything(broker, only.topic()).size();
            return read != null && read.offset() >= end;
        }
    }

    /** Sends the job the opening set of a window. */
    void open(int window, int... streams) {
        instruct(Feed.opening(window, tokenSet(window), streams).bytes());
    }

    private static TokenSet tokenSet(int window) {
        return Feed.tokens(window, CONTROLLERS, true);
    }

    /** Controllers answer, each for its streams and masked. Opening shares follow, and everything is sent twice. */
    void answer(int window, int... streams) {
        Random random = new Random(window);
        for (int controller = 0; controller < CONTROLLERS; controller++) {
            long[] mask = random.longs(Feed.PLAN.rows().length).toArray();
            long[] token = mask.clone();
            for (int stream : streams) {
                if (stream % CONTROLLERS == controller) {
                    TickSum.add(token, Feed.keys(stream, sessions.get(stream), Feed.start(window)));
                }
            }
            for (int twice = 0; twice < 2; twice++) {
                answer(Feed.share(window, controller, mask));
                answer(Feed.token(window, controller, token));
            }
        }
        flush();
    }

    /** Streams that the job last reported as complete in a window. */
    Set<Integer> complete(int window) throws Exception {
        Set<Integer> complete = new HashSet<>();
        for (Summary summary : summaries()) {
            if (summary.start() == Feed.start(window) && summary.judgement().isComplete()) {
                complete.add(summary.position());
            }
        }
        return complete;
    }

    List<Summary> summaries() throws Exception {
        List<Summary> summaries = new ArrayList<>();
        for (ConsumerRecord<byte[], byte[]> record : Topics.committed(broker, topic(JobConfig.SUMMARIES))) {
            int kind = Messages.kind(record.value());
            if (kind == Summary.KIND || kind == Summary.OF_TICKS) {
                summaries.add(Summary.read(record.value()));
            }
        }
        return summaries;
    }

    /** The reported progress of the job. Checks that no window before it was reported for the first time since. */
    long progress() throws Exception {
        Map<Integer, Progress> reached = new HashMap<>();
        Set<String> reported = new HashSet<>();
        for (ConsumerRecord<byte[], byte[]> record : Topics.committed(broker, topic(JobConfig.SUMMARIES))) {
            int kind = Messages.kind(record.value());
            if (kind == Progress.KIND) {
                Progress progress = Progress.read(record.value());
                reached.values().removeIf(other -> other.tasks() != progress.tasks());
                reached.put(progress.task(), progress);
            } else if (kind == Summary.KIND) {
                Summary summary = Summary.read(record.value());
                boolean isNew = reported.add(summary.start() + " " + summary.position());
                long end = summary.start() + Feed.PLAN.window() + Feed.PLAN.grace();
                assertTrue(!isNew || end > least(reached), () -> "late: " + summary);
            }
        }
        return least(reached);
    }

    /** The progress of all tasks, once all have reported. */
    private static long least(Map<Integer, Progress> reached) {
        boolean all = reached.values().stream().allMatch(progress -> progress.tasks() == reached.size());
        return all ? reached.values().stream().mapToLong(Progress::time).min().orElse(0) : 0;
    }

    /** The committed records of windows' sums. */
    List<WindowSum> sums() throws Exception {
        List<WindowSum> sums = new ArrayList<>();
        for (ConsumerRecord<byte[], byte[]> record : Topics.committed(broker, topic(JobConfig.SUMS))) {
            sums.add(WindowSum.read(record.value()));
        }
        return sums;
    }

    /** The number of dead letters by reason. */
    Map<String, Integer> deadLetters() {
        Map<String, Integer> reasons = new TreeMap<>();
        for (ConsumerRecord<byte[], byte[]> record : Topics.committed(broker, topic(JobConfig.DEAD_LETTERS))) {
            String reason = new String(record.headers().lastHeader(Outlet.REASON).value(),
                    StandardCharsets.UTF_8);
            reasons.merge(reason, 1, Integer::sum);
        }
        return reasons;
    }

    /** Where the dead letters' originals are: topic, partition and offset. */
    Set<String> originals() {
        Set<String> places = new TreeSet<>();
        for (ConsumerRecord<byte[], byte[]> record : Topics.committed(broker, topic(JobConfig.DEAD_LETTERS))) {
            StringBuilder place = new StringBuilder();
            for (String header : List.of(Outlet.TOPIC, Outlet.PARTITION, Outlet.OFFSET)) {
                byte[] value = record.headers().lastHeader(header).value();
                place.append(new String(value, StandardCharsets.UTF_8)).append('/');
            }
            places.add(place.toString());
        }
        return places;
    }

    /**
     * The expected sums of the input topic: every event decrypted separately, counted once, released and
     * summed.
     */
    long[] truth(int window, Set<Integer> streams) {
        long from = Feed.start(window);
        long[] rows = new long[Feed.PLAN.rows().length];
        Set<String> seen = new HashSet<>();
        for (ConsumerRecord<byte[], byte[]> record : Topics.everything(broker, topic(JobConfig.EVENTS))) {
            Frame frame = data(record);
            if (frame == null || frame.time() <= from || frame.time() > from + Feed.PLAN.window()) {
                continue;
            }
            int stream = record.key()[0];
            if (streams.contains(stream) && seen.add(stream + " " + frame.session() + " " + frame.time())) {
                long[] words = Feed.difference(stream, frame.session(), frame.previous(), frame.time());
                for (int i = 0; i < words.length; i++) {
                    words[i] += frame.word(i);
                }
                Feed.PLAN.release(words, rows);
            }
        }
        return rows;
    }

    private static Frame data(ConsumerRecord<byte[], byte[]> record) {
        try {
            boolean known = record.key() != null && record.key().length == StreamId.LENGTH
                    && Arrays.equals(record.key(), Feed.stream(record.key()[0]).bytes());
            Frame frame = known && record.value() != null ? Frame.parse(record.value()) : null;
            return frame != null && frame.kind() == Frame.Kind.DATA && frame.words() == Feed.WORDS ? frame : null;
        } catch (FrameException poison) {
            return null;
        }
    }

    @Override
    public void close() {
        kafka.close();
    }
}
