// Keyed by plan, window and a share of the controllers: holds tokens until the opening set is known, and sums them.
package alpheus.flink;

import alpheus.flink.Messages.Opening;
import alpheus.flink.Messages.Token;
import alpheus.flink.Parts.Side;
import alpheus.flink.Parts.Sum;
import alpheus.flink.Parts.TokenShare;
import alpheus.stream.TickSum;
import java.io.IOException;
import java.time.Duration;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/**
 * Holds controllers' tokens and opening shares of a window, each once, until all of its share of the
 * opening set are there. Then it outputs their sum Σ (T − o), once. Controllers are divided into shares, so
 * the number of parts is fixed, however many controllers there are. A share's part of the set is kept with
 * its answers for a week, regardless of other windows.
 *
 * <p>Answers are durable and are repeated unchanged: the first one counts. The signatures of service and
 * controller are checked before answers arrive here.
 */
public final class TokenSums extends KeyedProcessFunction<String, byte[], byte[]> {
    private static final long serialVersionUID = 1L;
    private static final Duration KEPT = Duration.ofDays(7);
    /** Replaces a controller's number once the share is done. */
    private static final String DONE = "done";

    private transient MapState<String, byte[]> answers;
    private transient ValueState<byte[]> set;

    /** For the job. */
    public TokenSums() {}

    @Override
    public void open(OpenContext context) {
        MapStateDescriptor<String, byte[]> held = new MapStateDescriptor<>(
                "answers", Types.STRING, PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO);
        ValueStateDescriptor<byte[]> share =
                new ValueStateDescriptor<>("set", PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO);
        held.enableTimeToLive(StateTtlConfig.newBuilder(KEPT).build());
        share.enableTimeToLive(StateTtlConfig.newBuilder(KEPT).build());
        answers = getRuntimeContext().getMapState(held);
        set = getRuntimeContext().getState(share);
    }

    /** Splits an opening set into its shares. Other instructions do not concern tokens. */
    static void deal(byte[] instruction, Collector<byte[]> out) throws IOException {
        if (Messages.kind(instruction) == Opening.KIND) {
            TokenShare.of(Opening.read(instruction)).forEach(share -> out.collect(share.bytes()));
        }
    }

    /** The key of a token or of a share. */
    static String keyOf(byte[] message) throws IOException {
        return Messages.kind(message) == Token.KIND ? Token.read(message).key() : TokenShare.read(message).key();
    }

    @Override
    public void processElement(byte[] element, Context context, Collector<byte[]> out) throws Exception {
        if (answers.contains(DONE)) {
            return;
        }
        if (Messages.kind(element) == Token.KIND) {
            Token token = Token.read(element);
            String name = nameOf(token.controller(), token.opens());
            if (answers.contains(name)) {
                return;
            }
            answers.put(name, element);
        } else if (set.value() == null) {
            set.update(element);
        }
        byte[] known = set.value();
        if (known != null) {
            give(TokenShare.read(known), out);
        }
    }

    /** Outputs the sum of a share, if it is complete. Answers that are not in the set are dropped. */
    private void give(TokenShare share, Collector<byte[]> out) throws Exception {
        long[] tokens = new long[share.rows()];
        long[] openings = new long[share.rows()];
        long[] digest = new long[SetDigest.WORDS];
        int[] own = share.own();
        for (int each : own) {
            if (!isAdded(nameOf(each, false), tokens) || share.masked() && !isAdded(nameOf(each, true), openings)) {
                return;
            }
            SetDigest.addToken(digest, share.plan(), share.start(), each);
        }
        for (int i = 0; i < tokens.length; i++) {
            tokens[i] -= openings[i];
        }
        answers.clear();
        answers.put(DONE, new byte[0]);
        set.clear();
        out.collect(new Sum(Side.TOKENS, share.plan(), share.start(), share.wanted(), share.wantedDigest(),
                own.length, digest, tokens).bytes());
    }

    /** Adds an answer, if it is there. An answer with the wrong length is ignored. */
    private boolean isAdded(String name, long[] sum) throws Exception {
        byte[] answer = answers.get(name);
        if (answer == null) {
            return false;
        }
        long[] rows = Token.read(answer).rows();
        if (rows.length != sum.length) {
            answers.remove(name);
            return false;
        }
        TickSum.add(sum, rows);
        return true;
    }

    private static String nameOf(int controller, boolean opens) {
        return (opens ? "o" : "T") + controller;
    }
}
