// One stream: its sessions in order of time, and its windows of each plan.
package alpheus.flink;

import alpheus.crypto.TagKey;
import alpheus.flink.Judgement.Segment;
import alpheus.stream.EventTime;
import alpheus.stream.Frame;
import alpheus.tick.Claim;
import alpheus.tick.ClaimKind;
import alpheus.tick.TickFrame;
import alpheus.tick.TickFrameException;
import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Function;

/**
 * The job's state of one stream: sums of ciphertexts, times and counts, but no key. Sessions are
 * sequential: none extends past the opening of the next, so no tick is covered twice. A tick's sum is
 * frozen once its digest is complete, so replayed or repeated events cannot change it.
 */
public final class StreamState {
    /** Sessions that are kept of a member; one a day is more. */
    static final int MAX_SESSIONS = 64;

    /** The maximum number of open ticks kept for a member's session. */
    private static final int MAX_TICKS = 256;
    /** The same for a stream that is in no plan yet. */
    private static final int MAX_IDLE_TICKS = 4;
    /** The maximum number of complete ticks that wait for a plan, or for their time. */
    private static final int MAX_WAITING = 64;

    private final List<SessionState> sessions = new ArrayList<>();
    private final Map<String, Member> members = new LinkedHashMap<>();
    private final TreeMap<WindowKey, WindowState> windows = new TreeMap<>();
    /** Complete ticks for plans that this task has not received yet. */
    private final Map<String, List<OpenTick>> waiting = new LinkedHashMap<>();
    /** Complete ticks that arrived before their time. A later plan may start with them. */
    private final List<OpenTick> early = new ArrayList<>();
    /** What there is instead of sessions if each tick has a frame. */
    private TickPart ticks = new TickPart();

    /**
     * One window of one plan.
     *
     * @param plan the plan
     * @param start its start
     */
    record WindowKey(String plan, long start) implements Comparable<WindowKey> {
        @Override
        public int compareTo(WindowKey other) {
            int order = plan.compareTo(other.plan);
            return order != 0 ? order : Long.compare(start, other.start);
        }
    }

    Map<String, Member> members() {
        return members;
    }

    /** Whether the state is empty. Frames of unknown streams leave no state. */
    boolean isUnused() {
        return sessions.isEmpty() && members.isEmpty() && ticks.isUnused();
    }

    /** Whether it is in no plan, and has opened no session since a time. */
    boolean isForgotten(long since) {
        return members.isEmpty() && (sessions.isEmpty() || last().opened() < since) && ticks.runs().isOlderThan(since);
    }

    /** Forgets what it sent. Its device stays, since that is reported only once. Returns whether nothing is left. */
    boolean forget() {
        sessions.clear();
        ticks.forget();
        return isUnused();
    }

    TickPart ticks() {
        return ticks;
    }

    /**
     * Adds the stream to a plan. If this comes again, its sender has not received the report that the
     * stream joined; nothing else changes. Earlier windows in which the stream was online are reported as
     * too early.
     */
    void join(PlanView plan, int position) {
        Member known = members.get(plan.plan());
        if (known != null) {
            known.announceAgain();
            return;
        }
        Member member = new Member(position, plan.from());
        members.put(plan.plan(), member);
        early.forEach(tick -> count(plan, member, tick));
    }

    /** The plan has ended. */
    void leave(String plan) {
        members.remove(plan);
        windows.keySet().removeIf(key -> key.plan().equals(plan));
        waiting.remove(plan);
        ticks.waited(plan);
        if (members.isEmpty() && !sessions.isEmpty()) {
            sessions.subList(0, sessions.size() - 1).clear();
            last().keep(MAX_IDLE_TICKS);
        }
    }

    /** This task has received a plan. Ticks that waited for it count. */
    void start(PlanView plan) {
        Member member = members.get(plan.plan());
        List<OpenTick> waited = waiting.remove(plan.plan());
        if (member != null && waited != null) {
            waited.forEach(tick -> count(plan, member, tick));
        }
        List<TickWords> framed = ticks.waited(plan.plan());
        if (member != null) {
            framed.forEach(tick -> count(plan, member, tick));
        }
    }

    private void count(PlanView plan, Member member, TickWords tick) {
        long start = plan.startOf(tick.tile().end());
        if (member.wants(start, tick.tile().end())) {
            windowOrNew(plan, start).add(plan, tick);
        }
        member.giveUp(tick.tile().end(), plan.window());
        forgetWindows(plan.plan(), member);
    }

    private void count(PlanView plan, Member member, OpenTick tick) {
        long start = plan.startOf(tick.end());
        if (member.wants(start, tick.end())) {
            windowOrNew(plan, start).add(plan, tick);
        }
        member.giveUp(tick.end(), plan.window());
        forgetWindows(plan.plan(), member);
    }

    private void forgetWindows(String plan, Member member) {
        windows.subMap(new WindowKey(plan, Long.MIN_VALUE), new WindowKey(plan, member.settled())).clear();
    }

    private SessionState last() {
        return sessions.get(sessions.size() - 1);
    }

    /** Adds a frame. Returns the end of the tick that it completed, if any. */
    Optional<Long> add(Shape shape, Function<String, Optional<PlanView>> plans, Frame frame, long now)
            throws RefusedException {
        boolean onTick = frame.time() % shape.tick() == 0;
        if (frame.kind() == Frame.Kind.DATA ? onTick : !onTick) {
            throw new RefusedException(onTick ? Refusal.DATA_ON_TICK : Refusal.BORDER_OFF_TICK);
        }
        if (frame.kind() == Frame.Kind.OPENING) {
            open(plans, frame);
            return Optional.empty();
        }
        long tickEnd = shape.tickEnd(frame.time());
        try {
            int mostTicks = members.isEmpty() ? MAX_IDLE_TICKS : MAX_TICKS;
            Optional<OpenTick> frozen = session(frame.session()).add(shape, frame, mostTicks);
            frozen.ifPresent(tick -> freeze(plans, tick, now));
            return frozen.map(OpenTick::end);
        } catch (RefusedException refused) {
            boolean gone = refused.refusal() == Refusal.DUPLICATE || refused.refusal() == Refusal.UNKNOWN_SESSION;
            throw gone && isLate(tickEnd) ? new RefusedException(Refusal.LATE) : refused;
        }
    }

    private SessionState session(long id) throws RefusedException {
        for (int i = sessions.size() - 1; i >= 0; i--) {
            if (sessions.get(i).id() == id) {
                return sessions.get(i);
            }
        }
        throw new RefusedException(Refusal.UNKNOWN_SESSION);
    }

    /** Opens a session. A session that was still running has died. */
    private void open(Function<String, Optional<PlanView>> plans, Frame opening) throws RefusedException {
        long t = opening.time();
        if (sessions.stream().anyMatch(session -> session.id() == opening.session())) {
            throw new RefusedException(Refusal.SESSION_KNOWN);
        }
        if (!sessions.isEmpty() && t < last().latest()) {
            throw new RefusedException(Refusal.BACKDATED);
        }
        forgetSessions();
        // A session ends with its day, so one a day is more.
        long days = sessions.isEmpty() ? 0 : (t - sessions.get(0).opened()) / EventTime.DAY;
        if (!members.isEmpty() && sessions.size() >= MAX_SESSIONS + days) {
            throw new RefusedException(Refusal.TOO_MANY_SESSIONS);
        }
        if (!sessions.isEmpty()) {
            last().replace(t);
        }
        if (members.isEmpty()) {
            sessions.clear();
            early.clear();
        }
        sessions.removeIf(SessionState::isEmpty);
        SessionState session = SessionState.of(opening);
        session.settle(horizon());
        sessions.add(session);
        members.forEach((plan, member) -> plans.apply(plan).ifPresent(view -> resume(view, member)));
    }

    /**
     * Advances to the next window in which the stream was online at any time. Returns whether there is one.
     * A session that died counts until the next opens. Windows in which the stream was offline have nothing
     * to report. Its next session may have arrived before time has passed the end of the last.
     */
    boolean resume(PlanView plan, Member member) {
        long start = member.nextReport();
        Optional<Long> opened = sessions.stream()
                .filter(session -> session.reachesBeyond(start))
                .findFirst()
                .map(SessionState::opened)
                .or(() -> ticks.runs().reachingBeyond(start).map(run -> run.opening().to()));
        opened.ifPresent(at -> member.resume(plan.startOf(at + 1)));
        return opened.isPresent();
    }

    /** Adds an authentic tick frame. Returns whether it changed what is known about its time. */
    boolean add(Shape shape, Function<String, Optional<PlanView>> plans, TickFrame frame, byte[] bytes)
            throws RefusedException {
        Claim claim = frame.claim();
        if (claim.from() % shape.tick() != 0 || claim.to() % shape.tick() != 0) {
            throw new RefusedException(Refusal.BORDER_OFF_TICK);
        }
        if (claim.kind() == ClaimKind.OPENING) {
            ticks.runs().open(claim, bytes, !members.isEmpty());
            members.forEach((plan, member) -> plans.apply(plan).ifPresent(view -> resume(view, member)));
            return false;
        }
        long[] words = words(shape, frame);
        byte[] mac = Arrays.copyOfRange(bytes, bytes.length - TagKey.TAG, bytes.length);
        boolean counts = ticks.runs().take(claim, mac, needs(shape, plans, claim));
        if (counts && words.length > 0) {
            TickWords tick = new TickWords(new Tile(claim.session(), claim.from(), claim.to()), words);
            members.forEach((id, member) -> plans.apply(id).ifPresentOrElse(
                    view -> count(view, member, tick), () -> ticks.await(id, tick)));
        }
        return true;
    }

    private static long[] words(Shape shape, TickFrame frame) throws RefusedException {
        try {
            return frame.claim().kind().isGap() ? new long[0] : frame.ciphertext(shape.words());
        } catch (TickFrameException otherSchema) {
            throw new RefusedException(Refusal.MALFORMED);
        }
    }

    private TickRun.Needs needs(Shape shape, Function<String, Optional<PlanView>> plans, Claim claim) {
        boolean starts = members.values().stream().anyMatch(member -> member.settled() == claim.to());
        boolean cuts = claim.endsPeriod(shape.ticks().anchor()) || members.keySet().stream()
                .anyMatch(id -> plans.apply(id).map(plan -> claim.to() % plan.window() == 0).orElse(true));
        return new TickRun.Needs(isLate(claim.to()), starts, cuts, !members.isEmpty());
    }

    /** A window's rows, which are zero if the stream was asleep all the time. */
    WindowState windowOrNew(PlanView plan, long start) {
        WindowKey key = new WindowKey(plan.plan(), start);
        return windows.computeIfAbsent(key, made -> new WindowState(plan.rows().length));
    }

    private void freeze(Function<String, Optional<PlanView>> plans, OpenTick tick, long now) {
        early.removeIf(each -> each.end() <= now);
        if (tick.end() > now) {
            await(early, tick);
        }
        members.forEach((id, member) -> {
            Optional<PlanView> plan = plans.apply(id);
            plan.ifPresentOrElse(view -> count(view, member, tick),
                    () -> await(waiting.computeIfAbsent(id, made -> new ArrayList<>()), tick));
        });
    }

    private static void await(List<OpenTick> ticks, OpenTick tick) {
        ticks.add(tick);
        if (ticks.size() > MAX_WAITING) {
            ticks.remove(0);
        }
    }

    private boolean isLate(long tickEnd) {
        return !members.isEmpty() && horizon() >= tickEnd
                && members.values().stream().allMatch(member -> member.isLate(tickEnd));
    }

    /**
     * The time up to which all windows of all plans are settled, if any is. No plan needs the ticks before
     * its first window, but they arrive in order and show how their session continues.
     */
    private long horizon() {
        return members.values().stream().anyMatch(Member::hasSettled) ? wantedFrom() : 0;
    }

    /** The time up to which no plan needs anything. */
    private long wantedFrom() {
        return members.values().stream().mapToLong(Member::settled).min().orElse(0);
    }

    WindowState window(String plan, long start) {
        return windows.get(new WindowKey(plan, start));
    }

    /** The status of the stream in a window in which it was online. */
    Judgement judge(Shape shape, PlanView plan, long start) {
        WindowState window = window(plan.plan(), start);
        if (shape.hasFramePerTick()) {
            Tiling tiling = new Tiling(
                    start, start + plan.window(), ticks.runs(), shape.ticks().anchor(), shape.tick(), plan.gaps());
            return tiling.judge(window == null ? List.of() : window.tiles());
        }
        List<TickMark> marks = window == null ? List.of() : window.marks();
        long missing = plan.window() / shape.tick() - marks.size();
        Optional<List<Segment>> segments =
                missing > plan.gaps() || marks.isEmpty() ? Optional.empty() : segments(shape, start, marks);
        if (segments.isEmpty()) {
            return Judgement.incomplete(firstTrouble(shape, start, marks));
        }
        long events = marks.stream().mapToLong(TickMark::events).sum();
        return events > shape.events()
                ? Judgement.incomplete(Incomplete.OVER_CAPACITY) : new Judgement(null, events, segments.get());
    }

    private Incomplete firstTrouble(Shape shape, long start, List<TickMark> marks) {
        long tickEnd = start + shape.tick();
        for (TickMark mark : marks) {
            if (mark.end() != tickEnd) {
                break;
            }
            tickEnd += shape.tick();
        }
        long missing = tickEnd;
        return sessions.stream()
                .filter(session -> session.covers(missing))
                .findFirst()
                .map(session -> session.trouble(missing))
                .orElse(Incomplete.OFFLINE);
    }

    /**
     * The parts of sessions, if none has a gap. A part may start only at the window's start or with its
     * session.
     */
    private Optional<List<Segment>> segments(Shape shape, long start, List<TickMark> marks) {
        List<Segment> segments = new ArrayList<>();
        for (TickMark mark : marks) {
            long from = mark.end() - shape.tick();
            Segment current = segments.isEmpty() ? null : segments.get(segments.size() - 1);
            if (current != null && current.session() == mark.session() && current.to() == from) {
                current.marks().add(mark);
                continue;
            }
            Optional<SessionState> session =
                    sessions.stream().filter(each -> each.id() == mark.session()).findFirst();
            boolean opens = session.filter(each -> each.opened() == from).isPresent();
            if (session.isEmpty() || !opens && from != start) {
                return Optional.empty();
            }
            SessionState found = session.get();
            segments.add(new Segment(mark.session(), from, opens, opens ? found.tagHigh() : 0,
                    opens ? found.tagLow() : 0, new ArrayList<>(List.of(mark))));
        }
        return Optional.of(segments);
    }

    /** Settles a window. Later events for it are late. */
    void settle(Shape shape, Function<String, Optional<PlanView>> plans, String plan, long start, long window) {
        Member member = members.get(plan);
        if (member == null) {
            return;
        }
        member.settle(start, window);
        windows.remove(new WindowKey(plan, start));
        forgetWindows(plan, member);
        long horizon = horizon();
        sessions.forEach(session -> session.settle(horizon));
        forgetSessions();
        if (shape.hasFramePerTick()) {
            ticks.runs().settle(horizon, claim -> Tiling.between(claim, shape.ticks().anchor())
                    || members.entrySet().stream().anyMatch(each -> cutsOpenWindow(each, plans, claim.to())));
        }
    }

    /** Whether a window of a plan starts or ends at a time that is not settled. */
    private static boolean cutsOpenWindow(
            Map.Entry<String, Member> member, Function<String, Optional<PlanView>> plans, long t) {
        return member.getValue().settled() <= t
                && plans.apply(member.getKey()).map(plan -> t % plan.window() == 0).orElse(true);
    }

    private void forgetSessions() {
        // The last session stays: a new one must not open in its past.
        SessionState kept = sessions.isEmpty() ? null : last();
        long from = wantedFrom();
        sessions.removeIf(session -> session != kept && !session.reachesBeyond(from));
    }

    void write(DataOutput out) throws IOException {
        out.writeInt(sessions.size());
        for (SessionState session : sessions) {
            session.write(out);
        }
        out.writeInt(members.size());
        for (Map.Entry<String, Member> member : members.entrySet()) {
            out.writeUTF(member.getKey());
            member.getValue().write(out);
        }
        out.writeInt(windows.size());
        for (Map.Entry<WindowKey, WindowState> window : windows.entrySet()) {
            out.writeUTF(window.getKey().plan());
            out.writeLong(window.getKey().start());
            window.getValue().write(out);
        }
        out.writeInt(waiting.size());
        for (Map.Entry<String, List<OpenTick>> ticks : waiting.entrySet()) {
            out.writeUTF(ticks.getKey());
            write(out, ticks.getValue());
        }
        write(out, early);
        ticks.write(out);
    }

    private static void write(DataOutput out, List<OpenTick> ticks) throws IOException {
        out.writeInt(ticks.size());
        for (OpenTick tick : ticks) {
            tick.write(out);
        }
    }

    static StreamState read(DataInput in) throws IOException {
        StreamState state = new StreamState();
        for (int left = Wire.length(in); left > 0; left--) {
            state.sessions.add(SessionState.read(in));
        }
        for (int left = Wire.length(in); left > 0; left--) {
            state.members.put(in.readUTF(), Member.read(in));
        }
        for (int left = Wire.length(in); left > 0; left--) {
            state.windows.put(new WindowKey(in.readUTF(), in.readLong()), WindowState.read(in));
        }
        for (int left = Wire.length(in); left > 0; left--) {
            List<OpenTick> ticks = new ArrayList<>();
            state.waiting.put(in.readUTF(), ticks);
            read(in, ticks);
        }
        read(in, state.early);
        state.ticks = TickPart.read(in);
        return state;
    }

    private static void read(DataInput in, List<OpenTick> ticks) throws IOException {
        for (int left = Wire.length(in); left > 0; left--) {
            ticks.add(OpenTick.read(in));
        }
    }
}
