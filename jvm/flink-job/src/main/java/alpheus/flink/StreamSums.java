// Keyed by stream: sums ticks, reports which windows are complete, and contributes to windows that open.
package alpheus.flink;

import alpheus.flink.Messages.DeadLetter;
import alpheus.flink.Messages.DeviceIs;
import alpheus.flink.Messages.FrameIn;
import alpheus.flink.Messages.Join;
import alpheus.flink.Messages.Joined;
import alpheus.flink.Messages.Opening;
import alpheus.flink.Messages.PlanEnd;
import alpheus.flink.Messages.PlanStart;
import alpheus.flink.Parts.Side;
import alpheus.flink.Parts.Sum;
import alpheus.stream.EventTime;
import alpheus.stream.Frame;
import alpheus.stream.FrameException;
import alpheus.stream.TickSum;
import alpheus.tick.Claim;
import alpheus.tick.TickFrame;
import alpheus.tick.TickFrameException;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.BiConsumer;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.BroadcastState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ReadOnlyBroadcastState;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.TimeDomain;
import org.apache.flink.streaming.api.functions.co.KeyedBroadcastProcessFunction;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/**
 * Keyed by stream: sums ciphertexts by session and tick, and reports for each window whether the stream is
 * complete. It contributes its sum to each window that opens, once: when the opening set is known and the
 * window is complete, whichever is later. So a replay after a restore, in which the set comes before the
 * events, gives the same result. No event is late for a window without a known opening set.
 *
 * <p>It sees the same as the service: ciphertexts, times, sessions and counts.
 */
public final class StreamSums extends KeyedBroadcastProcessFunction<String, byte[], byte[], byte[]> {
    /** Plans and opening sets, on every task. */
    public static final MapStateDescriptor<String, byte[]> INSTRUCTIONS = new MapStateDescriptor<>(
            "instructions", Types.STRING, PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO);
    /** Summaries, and which streams have joined, for the policy manager. */
    public static final OutputTag<byte[]> SUMMARIES =
            new OutputTag<>("summaries", PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO);
    /** Rejected records. */
    public static final OutputTag<byte[]> DEAD_LETTERS =
            new OutputTag<>("dead-letters", PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO);

    private static final long serialVersionUID = 1L;
    private static final String PLAN = "plan/";
    /** A plan that has ended. A join after its end must not create a member that nobody removes. */
    private static final String ENDED = "ended/";
    private static final long MILLI = 1_000L;
    /** In milliseconds, like timers. */
    private static final long A_SECOND = 1_000L;
    private static final long DAY_MILLIS = EventTime.DAY / EventTime.MILLISECOND;
    /** The maximum number of opening sets of a plan that are kept for replays after a restore. */
    private static final long MAX_SETS = 1024;

    private final Shape shape;
    private final Ingest.Source keys;
    private final ValueStateDescriptor<StreamState> descriptor;
    private transient ValueState<StreamState> streams;
    private transient Map<String, ReadPlan> readPlans;
    private transient OpeningSets sets;
    /** Checks frames, if each tick has one. */
    private transient Ingest ingest;

    /**
     * Sums of one schema's streams.
     *
     * @param shape the part of the schema that the job needs
     */
    public StreamSums(Shape shape) {
        this(shape, IngestFiles::read);
    }

    StreamSums(Shape shape, Ingest.Source keys) {
        this.shape = shape;
        this.keys = keys;
        this.descriptor = new ValueStateDescriptor<>("stream", new StreamStateSerializer(shape.schema()));
    }

    @Override
    public void open(OpenContext context) {
        streams = getRuntimeContext().getState(descriptor);
        readPlans = new HashMap<>();
        ingest = shape.hasFramePerTick() ? keys.open(shape) : null;
    }

    @Override
    public void processElement(byte[] element, ReadOnlyContext context, Collector<byte[]> out) throws Exception {
        StreamState state = streams.value();
        if (state == null) {
            state = new StreamState();
        }
        if (Messages.kind(element) == Join.KIND) {
            join(state, Join.read(element), context);
            return;
        }
        if (Messages.kind(element) == DeviceIs.KIND) {
            for (byte[] waited : state.ticks().setDevice(DeviceIs.read(element).device())) {
                frame(state, new FrameIn(context.getCurrentKey(), waited).bytes(), context, out);
            }
        } else {
            frame(state, element, context, out);
        }
        // A rejected frame may have changed why its tick is incomplete.
        if (!state.isUnused()) {
            streams.update(state);
        }
    }

    private void frame(StreamState state, byte[] element, ReadOnlyContext context, Collector<byte[]> out) throws Exception {
        try {
            if (shape.hasFramePerTick()) {
                take(state, FrameIn.read(element).frame(), context, out);
            } else {
                take(state, FrameIn.frameOf(element), context, out);
            }
        } catch (FrameException | TickFrameException refused) {
            refuse(element, Refusal.MALFORMED, context);
        } catch (RefusedException refused) {
            refuse(element, refused.refusal(), context);
        }
    }

    /** A frame that each tick has. It is checked before it counts for anything. */
    private void take(StreamState state, byte[] bytes, ReadOnlyContext context, Collector<byte[]> out)
            throws Exception {
        long now = micros(context.timerService().currentProcessingTime());
        TickFrame seen = TickFrame.parse(bytes, shape.tick());
        if (seen.words() > 0 && seen.words() != shape.words()) {
            throw new RefusedException(Refusal.MALFORMED);
        }
        if (seen.claim().to() > now + shape.skew()) {
            throw new RefusedException(Refusal.FUTURE);
        }
        if (state.ticks().device() == null) {
            if (!state.ticks().keep(bytes)) {
                throw new RefusedException(Refusal.UNKNOWN_DEVICE);
            }
            lookAgain(context);
            return;
        }
        TickFrame frame = ingest.check(context.getCurrentKey(), bytes, state.ticks().device(),
                session -> state.ticks().runs().run(session).map(TickRun::frame));
        ReadOnlyBroadcastState<String, byte[]> known = context.getBroadcastState(INSTRUCTIONS);
        boolean came = state.add(shape, id -> plan(id, known), frame, bytes);
        if (!came) {
            lookAgain(context);
        }
        for (PlanView plan : plans(state, known)) {
            if (came) {
                completed(state, plan, frame.claim(), context, out);
            } else {
                schedule(state, plan, context);
            }
        }
    }

    /** The time of a frame has come. It may complete windows whose time is over, or that have opened. */
    private void completed(
            StreamState state, PlanView plan, Claim claim, ReadOnlyContext context, Collector<byte[]> out)
            throws Exception {
        Member member = state.members().get(plan.plan());
        long first = Math.max(plan.startOf(claim.from() + 1), member.settled());
        // With what ends at its start, a window may be complete, too.
        long latest = plan.startOf(claim.to() + 1);
        Map<Long, byte[]> opened = sets(context.getBroadcastState(INSTRUCTIONS)).of(plan.plan());
        long last = opened.keySet().stream().mapToLong(Long::longValue).max().orElse(Long.MIN_VALUE);
        last = Math.min(latest, Math.max(last, member.nextReport() - plan.window()));
        for (long start = first; start <= last; start += plan.window()) {
            if (member.isOpen(start)) {
                completed(state, plan, start, context, out);
            }
        }
    }

    private void join(StreamState state, Join join, ReadOnlyContext context) throws Exception {
        PlanView plan = join.plan();
        ReadOnlyBroadcastState<String, byte[]> known = context.getBroadcastState(INSTRUCTIONS);
        if (known.contains(ENDED + plan.plan())) {
            return;
        }
        state.join(plan, join.position());
        // Sets may come first: a window that opened without the stream is settled for it.
        for (Map.Entry<Long, byte[]> set : sets(known).of(plan.plan()).entrySet()) {
            if (plan.hasWindow(set.getKey()) && !Opening.hasStream(set.getValue(), join.position())) {
                state.settle(shape, id -> plan(id, known), plan.plan(), set.getKey(), plan.window());
            }
        }
        streams.update(state);
        schedule(state, plan, context);
    }

    /** Opening sets in broadcast state, which is read once. */
    private OpeningSets sets(ReadOnlyBroadcastState<String, byte[]> known) throws Exception {
        if (sets == null) {
            sets = OpeningSets.in(known.immutableEntries());
        }
        return sets;
    }

    private static void refuse(byte[] element, Refusal refusal, ReadOnlyContext context) throws IOException {
        FrameIn in = FrameIn.read(element);
        context.output(DEAD_LETTERS, new DeadLetter(in.stream(), refusal.label(), "", in.place(), in.frame()).bytes());
    }

    private void take(StreamState state, Frame frame, ReadOnlyContext context, Collector<byte[]> out)
            throws Exception {
        long now = micros(context.timerService().currentProcessingTime());
        if (frame.time() > now + shape.skew()) {
            throw new RefusedException(Refusal.FUTURE);
        }
        ReadOnlyBroadcastState<String, byte[]> known = context.getBroadcastState(INSTRUCTIONS);
        Optional<Long> froze = state.add(shape, id -> plan(id, known), frame, now);
        if (frame.kind() == Frame.Kind.OPENING) {
            lookAgain(context);
        }
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

    /** Sets a timer in two days, which removes streams that are in no plan. */
    private static void lookAgain(ReadOnlyContext context) {
        long now = context.timerService().currentProcessingTime();
        context.timerService().registerProcessingTimeTimer((now / DAY_MILLIS + 2) * DAY_MILLIS);
    }

    private List<PlanView> plans(StreamState state, ReadOnlyBroadcastState<String, byte[]> known) {
        return state.members().keySet().stream().map(id -> plan(id, known)).flatMap(Optional::stream).toList();
    }

    /** A plan that this task knows. It is long and used with every tick, so it is parsed once. */
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

    /** A plan, and the bytes it was parsed from. */
    private record ReadPlan(byte[] bytes, Optional<PlanView> plan) {}

    /** A tick was frozen. Its window may be complete now, although its time is over. */
    private void completed(
            StreamState state, PlanView plan, long start, ReadOnlyContext context, Collector<byte[]> out)
            throws Exception {
        byte[] set = sets(context.getBroadcastState(INSTRUCTIONS)).get(plan.plan(), start);
        if (set != null) {
            Optional<long[]> rows = contribution(state, plan, start, set, context.getBroadcastState(INSTRUCTIONS));
            if (rows.isPresent()) {
                long[] digest = new long[SetDigest.WORDS];
                SetDigest.addStream(digest, plan.plan(), start, context.getCurrentKey());
                out.collect(sum(plan, Opening.read(set), 1, digest, rows.get()).bytes());
            }
            return;
        }
        // Its time was over, whether the watermark was restored or not.
        boolean over = state.members().get(plan.plan()).nextReport() > start;
        WindowState window = state.window(plan.plan(), start);
        boolean isNew = window == null ? shape.hasFramePerTick() : !window.isReported();
        if (over && isNew && state.judge(shape, plan, start).isComplete()) {
            report(state, plan, start, context);
        }
    }

    /** Sets the timer of the next window that the stream reports. */
    private static void schedule(StreamState state, PlanView plan, ReadOnlyContext context) {
        Member member = state.members().get(plan.plan());
        long end = member.nextReport() + plan.window() + plan.grace();
        // At the end of all input a stream that never went offline would be reported forever.
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
        if (context.timeDomain() == TimeDomain.PROCESSING_TIME) {
            forget(state, context);
            return;
        }
        ReadOnlyBroadcastState<String, byte[]> known = context.getBroadcastState(INSTRUCTIONS);
        List<PlanView> plans = plans(state, known);
        waitForPlans(state.members().size() - plans.size(), context);
        for (PlanView plan : plans) {
            Member member = state.members().get(plan.plan());
            boolean isOnline = state.resume(plan, member);
            while (isOnline && micros(timestamp) >= member.nextReport() + plan.window() + plan.grace()) {
                long start = member.nextReport();
                WindowState window = state.window(plan.plan(), start);
                boolean isReported = window != null && window.isReported();
                // Nobody needs a report about a window that has opened.
                if (!isReported && sets(known).get(plan.plan(), start) == null) {
                    report(state, plan, start, context);
                }
                member.resume(start + plan.window());
                isOnline = state.resume(plan, member);
            }
            if (member.announce()) {
                String stream = context.getCurrentKey();
                context.output(SUMMARIES, new Joined(stream, plan.plan(), member.position()).bytes());
            }
            if (isOnline) {
                schedule(state, plan, context);
            }
        }
        streams.update(state);
    }

    private void forget(StreamState state, OnTimerContext context) throws IOException {
        if (state.isForgotten(micros(context.timerService().currentProcessingTime() - 2 * DAY_MILLIS))) {
            if (state.forget()) {
                streams.clear();
            } else {
                streams.update(state);
            }
        } else {
            lookAgain(context);
        }
    }

    /**
     * Sets the timer again for a plan that this task does not know yet. Otherwise its window would never be
     * reported.
     */
    private static void waitForPlans(int unknown, OnTimerContext context) {
        long watermark = context.timerService().currentWatermark();
        if (unknown > 0 && watermark < Long.MAX_VALUE - A_SECOND) {
            context.timerService().registerEventTimeTimer(watermark + A_SECOND);
        }
    }

    private void report(StreamState state, PlanView plan, long start, ReadOnlyContext context) {
        Judgement judgement = state.judge(shape, plan, start);
        long check = 0;
        if (judgement.isComplete()) {
            WindowState window = state.windowOrNew(plan, start);
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
            case PlanStart.KIND -> begin(PlanStart.read(element).plan(), element, context, out);
            case PlanEnd.KIND -> {
                String plan = PlanEnd.read(element).plan();
                known.put(ENDED + plan, new byte[0]);
                known.remove(PLAN + plan);
                readPlans.remove(plan);
                forget(known, plan, Long.MAX_VALUE);
                eachStream(context, (stream, state) -> state.leave(plan));
            }
            case Opening.KIND -> open(Opening.read(element).withoutControllers(), context, out);
            default -> throw new IOException("unknown kind of instruction; its sender may run a newer version");
        }
    }

    private void begin(PlanView plan, byte[] bytes, Context context, Collector<byte[]> out) throws Exception {
        BroadcastState<String, byte[]> known = context.getBroadcastState(INSTRUCTIONS);
        if (known.contains(ENDED + plan.plan())) {
            return;
        }
        known.put(PLAN + plan.plan(), bytes);
        eachStream(context, (stream, state) -> state.start(plan));
        for (byte[] set : sets(known).of(plan.plan()).values()) {
            contribute(plan, set, context, out);
        }
    }

    private void eachStream(Context context, BiConsumer<String, StreamState> change) throws Exception {
        context.applyToKeyedState(descriptor, (stream, held) -> {
            StreamState state = held.value();
            change.accept(stream, state);
            held.update(state);
        });
    }

    private void open(Opening set, Context context, Collector<byte[]> out) throws Exception {
        BroadcastState<String, byte[]> known = context.getBroadcastState(INSTRUCTIONS);
        String key = OpeningSets.key(set.plan(), set.start());
        if (known.contains(key) || known.contains(ENDED + set.plan())) {
            return;
        }
        byte[] bytes = set.bytes();
        sets(known).put(set.plan(), set.start(), bytes);
        known.put(key, bytes);
        byte[] announced = known.get(PLAN + set.plan());
        if (announced != null) {
            PlanView plan = PlanStart.read(announced).plan();
            forget(known, set.plan(), set.start() - MAX_SETS * plan.window());
            contribute(plan, bytes, context, out);
        }
    }

    /** Sums this task's streams for a window that opens. */
    private void contribute(PlanView plan, byte[] bytes, Context context, Collector<byte[]> out) throws Exception {
        Opening set = Opening.read(bytes);
        if (!plan.hasWindow(set.start())) {
            return;
        }
        long[] rows = new long[plan.rows().length];
        long[] digest = new long[SetDigest.WORDS];
        long[] count = new long[1];
        eachStream(context, (stream, state) -> {
            Optional<long[]> part = contribution(state, plan, set.start(), bytes, context.getBroadcastState(INSTRUCTIONS));
            part.ifPresent(own -> {
                TickSum.add(rows, own);
                SetDigest.addStream(digest, plan.plan(), set.start(), stream);
                count[0]++;
            });
        });
        if (count[0] > 0) {
            out.collect(sum(plan, set, count[0], digest, rows).bytes());
        }
    }

    /** Contributes a stream to a window that opens, once. The window is then settled for the stream. */
    private Optional<long[]> contribution(
            StreamState state, PlanView plan, long start, byte[] set, ReadOnlyBroadcastState<String, byte[]> known) {
        Member member = state.members().get(plan.plan());
        if (member == null || !member.isOpen(start)) {
            return Optional.empty();
        }
        if (!Opening.hasStream(set, member.position())) {
            state.settle(shape, id -> plan(id, known), plan.plan(), start, plan.window());
            return Optional.empty();
        }
        boolean hasRows = shape.hasFramePerTick() || state.window(plan.plan(), start) != null;
        if (!hasRows || !state.judge(shape, plan, start).isComplete()) {
            // After a restore the set may come before the events.
            return Optional.empty();
        }
        long[] rows = state.windowOrNew(plan, start).rows().clone();
        state.settle(shape, id -> plan(id, known), plan.plan(), start, plan.window());
        return Optional.of(rows);
    }

    private static Sum sum(PlanView plan, Opening set, long count, long[] digest, long[] rows) {
        return new Sum(Side.STREAMS, plan.plan(), set.start(), set.streams().cardinality(), set.digest(),
                count, digest, rows);
    }

    /** Removes opening sets of windows that start at or before a time. */
    private void forget(BroadcastState<String, byte[]> known, String plan, long upTo) throws Exception {
        for (String key : sets(known).forget(plan, upTo)) {
            known.remove(key);
        }
    }

    /** Converts to microseconds; the minimum and maximum stay unchanged. */
    private static long micros(long millis) {
        return Math.max(Long.MIN_VALUE / MILLI, Math.min(millis, Long.MAX_VALUE / MILLI)) * MILLI;
    }
}
