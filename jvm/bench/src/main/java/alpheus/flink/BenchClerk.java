// Plays the policy manager and one controller of all streams: opens each window as soon as it is complete.
package alpheus.flink;

import alpheus.flink.Messages.Join;
import alpheus.flink.Messages.Opening;
import alpheus.flink.Messages.PlanStart;
import alpheus.flink.Messages.Token;
import alpheus.flink.Messages.TokenSet;
import alpheus.flink.Messages.WindowSum;
import alpheus.stream.TickSum;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** The environment of one run of a job. For plain jobs it only reads the results. */
final class BenchClerk {
    private static final String PLAN = "be".repeat(32);

    private final JobConfig config;
    private final BenchDevices devices;
    private final Producer<byte[], byte[]> kafka;
    private final int streams;
    private final int words;
    private final long start;
    private int said;
    private final Map<Long, Set<Integer>> complete = new HashMap<>();
    /** When the result of each window arrived, by its start. */
    private final Map<Long, Long> came = new HashMap<>();

    BenchClerk(JobConfig config, BenchDevices devices, Producer<byte[], byte[]> kafka, int streams, int words,
            long start) {
        this.config = config;
        this.devices = devices;
        this.kafka = kafka;
        this.streams = streams;
        this.words = words;
        this.start = start;
    }

    /** Writes a plan that releases every word, over all streams. Returns the number of instructions. */
    int begin() {
        int[][] rows = IntStream.range(0, words).mapToObj(word -> new int[] {word}).toArray(int[][]::new);
        PlanView plan = new PlanView(PLAN, devices.tick(), 0, start, 0, rows);
        send(JobConfig.INSTRUCTIONS, new PlanStart(plan).bytes());
        for (int stream = 0; stream < streams; stream++) {
            send(JobConfig.INSTRUCTIONS, new Join(BenchDevices.id(stream).toString(), plan, stream).bytes());
        }
        kafka.flush();
        return streams + 1;
    }

    private void send(String topic, byte[] message) {
        kafka.send(new ProducerRecord<>(config.getString(topic), message));
    }

    /** Records a summary. The last one of a window opens it. */
    void summary(byte[] message) throws IOException {
        said++;
        if (Messages.kind(message) != Summary.KIND) {
            // Progress is ignored: a benchmark waits for all of its streams anyway.
            return;
        }
        Summary summary = Summary.read(message);
        if (!summary.judgement().isComplete()) {
            throw new IllegalStateException("a benchmark must not lose events, but a stream is " + summary.judgement().why());
        }
        Set<Integer> there = complete.computeIfAbsent(summary.start(), made -> new HashSet<>());
        if (there.add(summary.position()) && there.size() == streams) {
            open(summary.start());
        }
    }

    /** The number of reported streams by window, to find out why there is no result. */
    String status() {
        StringBuilder status = new StringBuilder(said + " records; ");
        complete.forEach((start, there) -> status.append(start).append(": ").append(there.size()).append("; "));
        return status.toString();
    }

    private void open(long window) {
        BitSet all = new BitSet();
        all.set(0, streams);
        long[] digest = new long[SetDigest.WORDS];
        for (int stream = 0; stream < streams; stream++) {
            SetDigest.addStream(digest, PLAN, window, BenchDevices.id(stream).toString());
        }
        BitSet one = BitSet.valueOf(new long[] {1});
        long[] token = new long[SetDigest.WORDS];
        SetDigest.addToken(token, PLAN, window, 0);
        send(JobConfig.INSTRUCTIONS,
                new Opening(PLAN, window, all, digest, new TokenSet(one, token, false, words)).bytes());
        send(JobConfig.TOKENS, new Token(PLAN, window, 0, false, devices.token(numberOf(window))).bytes());
        kafka.flush();
    }

    private int numberOf(long window) {
        return (int) ((window - start) / devices.tick());
    }

    /** Records the encrypted job's result, which must be correct. */
    void sum(byte[] message, long now) throws IOException {
        WindowSum sum = WindowSum.read(message);
        TickSum.add(sum.ciphertexts(), sum.tokens());
        result(sum.start(), sum.ciphertexts(), now);
    }

    /** Records a plain job's result. */
    void plain(byte[] message, long now) {
        ByteBuffer bytes = ByteBuffer.wrap(message);
        long window = bytes.getLong();
        long[] sum = new long[words];
        bytes.asLongBuffer().get(sum);
        result(window, sum, now);
    }

    private void result(long window, long[] sum, long now) {
        long[] truth = devices.truth(numberOf(window));
        for (int i = 0; i < words; i++) {
            if (sum[i] != truth[i]) {
                throw new IllegalStateException("window " + numberOf(window) + " is wrong in word " + i);
            }
        }
        if (came.put(window, now) != null) {
            throw new IllegalStateException("window " + numberOf(window) + " came twice");
        }
    }

    /** The number of windows with a result, of the first ones. */
    long done(int windows) {
        return came.keySet().stream().filter(window -> numberOf(window) < windows).count();
    }

    /** When a window's result arrived, in milliseconds of this machine's clock. */
    long cameAt(int window) {
        return came.get(start + window * devices.tick());
    }
}
