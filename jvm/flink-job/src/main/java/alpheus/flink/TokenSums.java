// Keyed by plan, window and a share of the controllers: holds tokens until the opening set is known, and adds them up.
package alpheus.flink;

import alpheus.flink.Messages.Opening;
import alpheus.flink.Messages.Side;
import alpheus.flink.Messages.Sum;
import alpheus.flink.Messages.Token;
import alpheus.stream.TickSum;
import java.time.Duration;
import java.util.BitSet;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.BroadcastState;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.functions.co.KeyedBroadcastProcessFunction;
import org.apache.flink.util.Collector;

/**
 * Holds controllers' tokens and opening shares of a window, each once, until all those of its share of the
 * opening set are there; then gives their sum Σ (T − o), once. Controllers are dealt into shares, so that whoever
 * adds the shares up sees a fixed number of them, however many controllers there are.
 *
 * <p>Answers are durable and come again the same: the first one counts. Whether the service's signature and the
 * controller's are right is checked before they come here.
 */
public final class TokenSums extends KeyedBroadcastProcessFunction<String, byte[], byte[], byte[]> {
    /** Opening sets, on every task. */
    public static final MapStateDescriptor<String, byte[]> SETS = new MapStateDescriptor<>(
            "token-sets", Types.STRING, PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO);

    private static final long serialVersionUID = 1L;
    private static final Duration KEPT = Duration.ofDays(7);
    /** Takes the place of a controller's number once the share is given. */
    private static final String DONE = "done";
    private static final int MOST_SETS = 4096;

    private static final MapStateDescriptor<String, byte[]> ANSWERS = new MapStateDescriptor<>(
            "answers", Types.STRING, PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO);

    static {
        ANSWERS.enableTimeToLive(StateTtlConfig.newBuilder(KEPT).build());
    }

    private transient MapState<String, byte[]> answers;

    /** For the job. */
    public TokenSums() {}

    @Override
    public void open(OpenContext context) {
        answers = getRuntimeContext().getMapState(ANSWERS);
    }

    @Override
    public void processElement(byte[] element, ReadOnlyContext context, Collector<byte[]> out) throws Exception {
        Token token = Token.read(element);
        String name = nameOf(token.controller(), token.opens());
        if (answers.contains(DONE) || answers.contains(name)) {
            return;
        }
        answers.put(name, element);
        byte[] set = context.getBroadcastState(SETS).get(windowOf(token.plan(), token.start()));
        if (set != null) {
            give(context.getCurrentKey(), answers, Opening.read(set), out);
        }
    }

    @Override
    public void processBroadcastElement(byte[] element, Context context, Collector<byte[]> out) throws Exception {
        if (Messages.kind(element) != Opening.KIND) {
            return;
        }
        Opening set = Opening.read(element);
        BroadcastState<String, byte[]> known = context.getBroadcastState(SETS);
        String window = windowOf(set.plan(), set.start());
        if (known.contains(window)) {
            return;
        }
        known.put(window, element);
        forgetOldest(known);
        context.applyToKeyedState(ANSWERS, (key, held) -> {
            if (key.startsWith(window)) {
                give(key, held, set, out);
            }
        });
    }

    /** Gives the sum of a share, if all of it is there. What is not in the set is dropped. */
    private static void give(String key, MapState<String, byte[]> held, Opening set, Collector<byte[]> out)
            throws Exception {
        BitSet own = Token.shareOf(key, set.tokens().controllers());
        boolean masked = set.tokens().masked();
        long[] tokens = new long[set.tokens().rows()];
        long[] openings = new long[set.tokens().rows()];
        long[] digest = new long[SetDigest.WORDS];
        for (int each : own.stream().toArray()) {
            if (!isAdded(held, nameOf(each, false), tokens) || masked && !isAdded(held, nameOf(each, true), openings)) {
                return;
            }
            SetDigest.addToken(digest, set.plan(), set.start(), each);
        }
        for (int i = 0; i < tokens.length; i++) {
            tokens[i] -= openings[i];
        }
        held.clear();
        held.put(DONE, new byte[0]);
        if (!own.isEmpty()) {
            out.collect(new Sum(Side.TOKENS, set.plan(), set.start(), set.tokens().controllers().cardinality(),
                    set.tokens().digest(), own.cardinality(), digest, tokens).bytes());
        }
    }

    /** Adds an answer, if it is there; one of another length than the release is none. */
    private static boolean isAdded(MapState<String, byte[]> held, String name, long[] sum) throws Exception {
        byte[] answer = held.get(name);
        if (answer == null) {
            return false;
        }
        long[] rows = Token.read(answer).rows();
        if (rows.length != sum.length) {
            held.remove(name);
            return false;
        }
        TickSum.add(sum, rows);
        return true;
    }

    private static void forgetOldest(BroadcastState<String, byte[]> known) throws Exception {
        int count = 0;
        String oldest = null;
        long start = Long.MAX_VALUE;
        for (var entry : known.entries()) {
            count++;
            Opening set = Opening.read(entry.getValue());
            if (set.start() < start) {
                start = set.start();
                oldest = entry.getKey();
            }
        }
        if (count > MOST_SETS && oldest != null) {
            known.remove(oldest);
        }
    }

    private static String nameOf(int controller, boolean opens) {
        return (opens ? "o" : "T") + controller;
    }

    private static String windowOf(String plan, long start) {
        return plan + "/" + start + "/";
    }
}
