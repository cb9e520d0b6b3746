// Keyed by stream: sums ticks, says which windows are complete, and contributes to those that open.
package alpheus.flink;

import alpheus.flink.Messages.DeadLetter;
import alpheus.flink.Messages.FrameIn;
import alpheus.flink.Messages.Join;
import alpheus.flink.Messages.Opening;
import alpheus.flink.Messages.PlanEnd;
import alpheus.flink.Messages.PlanStart;
import alpheus.flink.Messages.Side;
import alpheus.flink.Messages.Sum;
import alpheus.flink.Messages.Summary;
import alpheus.stream.Frame;
import alpheus.stream.FrameException;
import alpheus.stream.TickSum;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.BiConsumer;
import org.apache.flink.api.common.state.BroadcastState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ReadOnlyBroadcastState;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.functions.co.KeyedBroadcastProcessFunction;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/**
 * Keyed by stream: sums ciphertexts by session and tick, says of each window whether the stream is
 * complete, and contributes its sum to each window that opens, once: when the opening set is known and
 * the window complete, whichever comes later. So a replay after a restore, in which the set comes before
 * the events, gives the same. No event is late for a window whose opening set is not known.
 *
 * <p>It sees what the service sees anyway: ciphertexts, times, sessions and counts.
 */
public final class StreamSums extends KeyedBroadcastProcessFunction<String, byte[], byte[], byte[]> {
    /** What is kept of plans and opening sets, on every task. */
    public static final MapStateDescriptor<String, byte[]> INSTRUCTIONS = new MapStateDescriptor<>(
            "instructions", Types.STRING, PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO);
    /** Summaries, for the policy manager. */
    public static final OutputTag<byte[]> SUMMARIES =
            new OutputTag<>("summaries", PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO);
    /** Records that were refused. */
    public static final OutputTag<byte[]> DEAD_LETTERS =
            new OutputTag<>("dead-letters", PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO);

    private static final long serialVersionUID = 1L;
    private static final String PLAN = "plan/";
    private static final String SET = "set/";
    private static final long MILLI = 1_000L;
    /** Opening sets of a plan that are kept for streams that come again after a restore. */
    private static final long MOST_SETS = 1024;

    private static final ValueStateDescriptor<StreamState> STREAM =
            new ValueStateDescriptor<>("stream", new StreamStateSerializer());

    private final Shape shape;
    private transient ValueState<StreamState> streams;
    private transient Map<String, ReadPlan> readPlans;

    /**
     * Sums of one schema's streams.
     *
     * @param shape what is needed of the schema
     */
    public StreamSums(Shape shape) {
        this.shape = shape;
    }

    @Override
    public void open(OpenContext context) {
        streams = getRuntimeContext().getState(STREAM);
        readPlans = new HashMap<>();
    }

    @Override
    public void processElement(byte[] element, ReadOnlyContext context, Collector<byte[]> out) throws Exception {
        StreamState state = streams.value();
        if (state == null) {
            state = new StreamState();
        }
        if (Messages.kind(element) == Join.KIND) {
            Join join = Join.read(element);
            state.join(join.plan(), join.position());
            streams.update(state);
            schedule(state, join.plan(), context);
            return;
        }
        try {
            take(state, FrameIn.frameOf(element), context, out);
        } catch (FrameException refused) {
            refuse(element, Refusal.MALFORMED, context);
        } catch (RefusedException refused) {
            refuse(element, refused.refusal(), context);
        }
        // A refused frame may have changed why its tick is not complete.
        if (!state.isUnused()) {
            streams.update(state);
        }
    }

    private static void refuse(byte[] element, Refusal refusal, ReadOnlyContext context) throws IOException {
        FrameIn in = FrameIn.read(element);
        context.output(DEAD_LETTERS, new DeadLetter(in.stream(), refusal.label(), in.frame()).bytes());
    }

    private void take(StreamState state, Frame frame, ReadOnlyContext context, Collector<byte[]> out)
            throws Exception {
        if (frame.time() > micros(context.timerService().currentProcessingTime()) + shape.skew()) {
            throw new RefusedException(Refusal.FUTURE);
        }
        ReadOnlyBroadcastState<String, byte[]> known = context.getBroadcastState(INSTRUCTIONS);
        Optional<Long> froze = state.add(shape, id -> plan(id, known), frame);
        if (froze.isEmpty() && frame.kind() != Frame.Kind.OPENING) {
            return;
        }
        for (PlanView plan : plans(state, known)) {
            if (frame.kind() == Frame.Kind.OPENING) {
                schedule(state, plan, context);
            }
            if (froze.isPresent()) {
                completed(state, plan, plan.startOf(froze.get()), context, out);
            }
        }
    }

    private List<PlanView> plans(StreamState state, ReadOnlyBroadcastState<String, byte[]> known) {
        return state.members().keySet().stream().map(id -> plan(id, known)).flatMap(Optional::stream).toList();
    }

    /** A plan that this task has heard of. It is long, and asked for with every tick: it is read once. */
    private Optional<PlanView> plan(String id, ReadOnlyBroadcastState<String, byte[]> known) {
        try {
            byte[] bytes = known.get(PLAN + id);
            ReadPlan last = readPlans.get(id);
            if (last == null || last.bytes() != bytes) {
                last = new ReadPlan(bytes, bytes == null ? Optional.empty()
                        : Optional.of(PlanStart.read(bytes).plan()));
                readPlans.put(id, last);
            }
            return last.plan();
        } catch (Exception impossible) {
            throw new IllegalStateException("a plan that was checked cannot be read", impossible);
        }
    }

    /** A plan, and which bytes it was read from. */
    private record ReadPlan(byte[] bytes, Optional<PlanView> plan) {}

    /** A tick was frozen: its window may be complete now, though its time is over. */
    private void completed(
            StreamState state, PlanView plan, long start, ReadOnlyContext context, Collector<byte[]> out)
            throws Exception {
        byte[] set = context.getBroadcastState(INSTRUCTIONS).get(setKey(plan.plan(), start));
        String stream = context.getCurrentKey();
        if (set != null) {
            Optional<Sum> part = contribution(state, stream, plan, Opening.read(set));
            part.ifPresent(sum -> out.collect(sum.bytes()));
            return;
        }
        boolean over = micros(context.timerService().currentWatermark()) >= start + plan.window() + plan.grace();
        WindowState window = state.window(plan.plan(), start);
        if (over && window != null && !window.isReported() && state.judge(shape, plan, start).isComplete()) {
            report(state, plan, start, context);
        }
    }

    /** Sets the timer of the next window that the stream has something to say about. */
    private static void schedule(StreamState state, PlanView plan, ReadOnlyContext context) {
        Member member = state.members().get(plan.plan());
        long end = member.nextReport() + plan.window() + plan.grace();
        // At the end of all input a stream that never went offline would be reported for ever.
        if (context.timerService().currentWatermark() == Long.MAX_VALUE) {
            return;
        }
        context.timerService().registerEventTimeTimer((end + MILLI - 1) / MILLI);
    }

    @Override
    public void onTimer(long timestamp, OnTimerContext context, Collector<byte[]> out) throws Exception {
        StreamState state = streams.value();
        if (state == null) {
            return;
        }
        for (PlanView plan : plans(state, context.getBroadcastState(INSTRUCTIONS))) {
            Member member = state.members().get(plan.plan());
            while (micros(timestamp) >= member.nextReport() + plan.window() + plan.grace()) {
                long start = member.nextReport();
                if (!state.isOnline(plan, start)) {
                    break;
                }
                WindowState window = state.window(plan.plan(), start);
                if (window == null || !window.isReported()) {
                    report(state, plan, start, context);
                }
                member.resume(start + plan.window());
            }
            if (state.isOnline(plan, member.nextReport())) {
                schedule(state, plan, context);
            }
        }
        streams.update(state);
    }

    private void report(StreamState state, PlanView plan, long start, ReadOnlyContext context) {
        WindowState window = state.window(plan.plan(), start);
        Judgement judgement = state.judge(shape, plan, start);
        long check = 0;
        if (judgement.isComplete()) {
            check = window.rows()[window.rows().length - 1];
            window.report();
        }
        int position = state.members().get(plan.plan()).position();
        Summary summary =
                new Summary(context.getCurrentKey(), plan.plan(), start, position, check, judgement);
        context.output(SUMMARIES, summary.bytes());
    }

    @Override
    public void processBroadcastElement(byte[] element, Context context, Collector<byte[]> out) throws Exception {
        BroadcastState<String, byte[]> known = context.getBroadcastState(INSTRUCTIONS);
        switch (Messages.kind(element)) {
            case PlanStart.KIND -> {
                PlanView plan = PlanStart.read(element).plan();
                known.put(PLAN + plan.plan(), element);
                eachStream(context, (stream, state) -> state.start(plan));
                for (Opening set : setsOf(known, plan.plan())) {
                    contribute(plan, set, context, out);
                }
            }
            case PlanEnd.KIND -> {
                String plan = PlanEnd.read(element).plan();
                known.remove(PLAN + plan);
                readPlans.remove(plan);
                forget(known, plan, Long.MAX_VALUE);
                eachStream(context, (stream, state) -> state.leave(plan));
            }
            case Opening.KIND -> open(Opening.read(element), element, context, out);
            default -> throw new IOException("an instruction of an unknown kind; is its writer newer?");
        }
    }

    private static void eachStream(Context context, BiConsumer<String, StreamState> change) throws Exception {
        context.applyToKeyedState(STREAM, (stream, held) -> {
            StreamState state = held.value();
            change.accept(stream, state);
            held.update(state);
        });
    }

    private void open(Opening set, byte[] bytes, Context context, Collector<byte[]> out) throws Exception {
        BroadcastState<String, byte[]> known = context.getBroadcastState(INSTRUCTIONS);
        if (known.contains(setKey(set.plan(), set.start()))) {
            return;
        }
        known.put(setKey(set.plan(), set.start()), bytes);
        byte[] announced = known.get(PLAN + set.plan());
        if (announced != null) {
            PlanView plan = PlanStart.read(announced).plan();
            forget(known, set.plan(), set.start() - MOST_SETS * plan.window());
            contribute(plan, set, context, out);
        }
    }

    /** Adds up what this task's streams have for a window that opens. */
    private void contribute(PlanView plan, Opening set, Context context, Collector<byte[]> out) throws Exception {
        long[] rows = new long[plan.rows().length];
        long[] digest = new long[SetDigest.WORDS];
        long[] count = new long[1];
        eachStream(context, (stream, state) -> {
            Optional<Sum> part = contribution(state, stream, plan, set);
            part.ifPresent(sum -> {
                TickSum.add(rows, sum.rows());
                TickSum.add(digest, sum.digest());
                count[0] += sum.count();
            });
        });
        if (count[0] > 0) {
            out.collect(sum(plan, set, count[0], digest, rows).bytes());
        }
    }

    /** What a stream gives to a window that opens, once; it is then settled for the stream. */
    private Optional<Sum> contribution(StreamState state, String stream, PlanView plan, Opening set) {
        Member member = state.members().get(plan.plan());
        if (member == null) {
            return Optional.empty();
        }
        if (!set.streams().get(member.position())) {
            state.settle(plan.plan(), set.start(), plan.window());
            return Optional.empty();
        }
        WindowState window = state.window(plan.plan(), set.start());
        if (window == null || !state.judge(shape, plan, set.start()).isComplete()) {
            // After a restore the set may come before the events.
            return Optional.empty();
        }
        long[] digest = new long[SetDigest.WORDS];
        SetDigest.addStream(digest, plan.plan(), set.start(), stream);
        Sum sum = sum(plan, set, 1, digest, window.rows().clone());
        state.settle(plan.plan(), set.start(), plan.window());
        return Optional.of(sum);
    }

    private static Sum sum(PlanView plan, Opening set, long count, long[] digest, long[] rows) {
        return new Sum(Side.STREAMS, plan.plan(), set.start(), set.streams().cardinality(), set.digest(),
                count, digest, rows);
    }

    /** Forgets opening sets of windows that start at or before a time. */
    private static void forget(BroadcastState<String, byte[]> known, String plan, long upTo) throws Exception {
        for (Opening set : setsOf(known, plan)) {
            if (set.start() <= upTo) {
                known.remove(setKey(plan, set.start()));
            }
        }
    }

    private static List<Opening> setsOf(BroadcastState<String, byte[]> known, String plan) throws Exception {
        List<Opening> sets = new ArrayList<>();
        for (Map.Entry<String, byte[]> entry : known.entries()) {
            if (entry.getKey().startsWith(SET + plan + "/")) {
                sets.add(Opening.read(entry.getValue()));
            }
        }
        return sets;
    }

    /** Microseconds; beginning and end of all time stay what they are. */
    private static long micros(long millis) {
        return Math.max(Long.MIN_VALUE / MILLI, Math.min(millis, Long.MAX_VALUE / MILLI)) * MILLI;
    }

    private static String setKey(String plan, long start) {
        return SET + plan + "/" + start;
    }
}
