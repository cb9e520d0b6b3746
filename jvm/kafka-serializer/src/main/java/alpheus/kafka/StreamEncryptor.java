// One stream's events as frames, with the borders and sessions between them.
package alpheus.kafka;

import alpheus.AlpheusException;
import alpheus.encode.Encoder;
import alpheus.encode.Row;
import alpheus.kafka.EventRefusedException.Fault;
import alpheus.kafka.StreamCounters.Count;
import alpheus.layout.LayoutException;
import alpheus.schema.Schema;
import alpheus.stream.EventTime;
import alpheus.stream.Producer;
import alpheus.stream.ProducerException;
import alpheus.stream.StreamId;
import java.util.ArrayList;
import java.util.List;
import java.util.random.RandomGenerator;

/**
 * Turns one stream's events into frames, in the order of the topic, with the borders and sessions between
 * them. It keeps no state on disk. Every start draws a new session, which opens at the next tick. So no key
 * is used twice, even if the process was killed or restarted from a copy. But the memory of a running
 * process must not be copied and run twice. The caller must hold a lock. The class sends nothing itself.
 */
final class StreamEncryptor implements AutoCloseable {
    /** A clock that goes back further was set. */
    private static final long STEPPED_BACK = 1_000_000;

    private final Schema schema;
    private final Encoder encoder;
    private final Row row;
    private final Sessions sessions;
    private final RandomGenerator random;
    private final MicroClock clock;
    private final StreamCounters counters;
    private final boolean timedByRecord;
    private final long lateness;
    private final long skew;

    /** Frames that were made but not fetched yet. */
    private List<byte[]> made = new ArrayList<>();

    private Sessions.Running session;
    /** Receives how many events are lost when a session is abandoned. */
    private Losses lost = number -> { };
    /** Whether its opening border was fetched. */
    private boolean begun;
    /** The number of opened sessions, except those at midnight. Frames of earlier ones do not matter. */
    private long generation;
    /** Events of that session. */
    private long events;

    StreamEncryptor(
            Schema schema, Sessions sessions, AlpheusConfig config, RandomGenerator random, MicroClock clock,
            StreamCounters counters)
            throws LayoutException {
        this.schema = schema;
        this.encoder = new Encoder(schema);
        this.row = encoder.row();
        this.sessions = sessions;
        this.random = random;
        this.clock = clock;
        this.counters = counters;
        this.timedByRecord = config.isTimedByRecord();
        this.lateness = config.latenessMicros();
        this.skew = config.skewMicros();
    }

    /** Takes how many events are lost. */
    @FunctionalInterface
    interface Losses {
        void lose(long number);
    }

    /** Sets what receives the number of events that are lost. */
    void onLoss(Losses losses) {
        lost = losses;
    }

    /** The stream, which is the key of its records. */
    StreamId stream() {
        return sessions.stream();
    }

    /** Whether each event has a frame; otherwise each tick has. */
    boolean hasFramePerEvent() {
        return sessions.hasFramePerEvent();
    }

    /** The schema. */
    Schema schema() {
        return schema;
    }

    /** The number of the current session. It identifies frames that fail later. */
    long generation() {
        return generation;
    }

    /**
     * Opens a session at the next tick, if none runs. Its opening border comes once the clock has reached
     * that tick. The job rejects frames ahead of its own clock; if it rejects an opening border, it rejects
     * everything after it.
     */
    List<byte[]> open() throws ProducerException {
        long now = clock.now();
        if (session == null) {
            begun = false;
            session = sessions.open(now, frame -> made.add(frame));
            generation++;
            events = 0;
            counters.add(Count.SESSIONS, 1);
        }
        if (begun || now < session.last()) {
            return List.of();
        }
        begun = true;
        return take();
    }

    /** Whether the session's opening border was fetched. No event may come before it. */
    boolean hasBegun() {
        return begun;
    }

    /** When events can be sent: after the session's opening border. */
    long readyAt() {
        return session.last();
    }

    /** The frames of one event. Its own frame is the last, after the borders before it. */
    <V> List<byte[]> event(RowReader<V> reader, V value, Long millis) throws AlpheusException {
        return counted(() -> {
            read(reader, value);
            long at = timeOf(millis);
            encode(at);
            counters.add(Count.BORDERS, made.size() - 1L);
            return take();
        });
    }

    /** When an event happened, if each tick has a frame. Then come {@link #ticksBefore} and {@link #add}. */
    long place(Long millis) throws AlpheusException {
        return counted(() -> timeOf(millis));
    }

    /** The frames of all ticks before an event's. */
    List<byte[]> ticksBefore(long at) throws AlpheusException {
        return counted(() -> {
            long ticks = (at - session.nextBorder()) / schema.tick();
            if (ticks > Producer.LONGEST_SILENCE) {
                throw new ProducerException(ProducerException.Fault.JUMPED_AHEAD, ticks, Producer.LONGEST_SILENCE);
            }
            return at < session.nextBorder() ? List.<byte[]>of() : piece(at);
        });
    }

    /** Adds an event to the open tick. */
    <V> void add(RowReader<V> reader, V value, long at) throws AlpheusException {
        counted(() -> {
            read(reader, value);
            encode(at);
            return null;
        });
    }

    private <V> void read(RowReader<V> reader, V value) throws AlpheusException {
        if (value == null) {
            throw new EventRefusedException(Fault.NO_VALUE);
        }
        row.clear();
        reader.read(value, schema, row);
    }

    private void encode(long at) throws AlpheusException {
        session.event(at, vector -> encoder.encode(row, random, vector));
        events++;
        counters.add(Count.EVENTS, 1);
    }

    /** A step of sending an event, which may reject it. */
    @FunctionalInterface
    private interface Step<T> {
        T run() throws AlpheusException;
    }

    private <T> T counted(Step<T> step) throws AlpheusException {
        try {
            return step.run();
        } catch (AlpheusException refused) {
            counters.add(Count.REFUSED, 1);
            throw refused;
        } finally {
            row.clear();
        }
    }

    /** The next batch of due borders. A clock that has jumped far ahead ends the session. */
    List<byte[]> borders() throws ProducerException {
        long until = clock.now() - lateness;
        if (session == null || until < session.nextBorder()) {
            return List.of();
        }
        if (hasJumped(until)) {
            giveUp();
            return open();
        }
        return piece(until);
    }

    /**
     * The next batch of the borders before an event, if there are more than one batch. Repeat until it is
     * empty.
     */
    List<byte[]> bordersBefore(Long millis) throws ProducerException {
        long at = Math.min(said(millis), clock.now() + skew);
        boolean more = at >= session.nextBorder() + EventSessions.PIECE * schema.tick();
        return more && !hasJumped(at) ? piece(at) : List.of();
    }

    /**
     * Whether the clock was set back behind the session's last border, or behind its opening by more than a
     * tick. Until the clock had caught up, the session could send nothing.
     */
    boolean isAheadOfClock() {
        if (session == null) {
            return false;
        }
        long border = session.nextBorder() - schema.tick();
        long early = begun ? 0 : schema.tick();
        return clock.now() + early + STEPPED_BACK < border;
    }

    private boolean hasJumped(long until) {
        return (until - session.nextBorder()) / schema.tick() > Producer.LONGEST_SILENCE;
    }

    private List<byte[]> piece(long until) throws ProducerException {
        session.advance(until);
        counters.add(Count.BORDERS, made.size());
        return take();
    }

    /** Frames that a rejected event left: the borders before it. */
    List<byte[]> left() {
        counters.add(Count.BORDERS, made.size());
        return take();
    }

    /** Whether the open tick has events, of which nothing was made yet. */
    boolean hasOpenEvents() {
        return session != null && session.unclosed() > 0;
    }

    /** When the open tick's frame can be made. */
    long tickEndsAt() {
        return session.nextBorder() + lateness;
    }

    /** The time at which the session can close; 0 if none has started. */
    long closesAt() {
        return session == null || !begun ? 0 : session.nextBorder();
    }

    /** Closes the session. */
    List<byte[]> finish() throws ProducerException {
        if (session != null) {
            session.close(session.nextBorder());
            session = null;
            counters.add(Count.BORDERS, made.size());
        }
        return take();
    }

    /** Abandons the session, which is necessary after an undelivered frame. Events of its tick are lost. */
    void giveUp() {
        giveUpAllAfter(closed());
    }

    /** Events of its session whose ticks are closed. */
    long closed() {
        return session == null ? 0 : events - session.unclosed();
    }

    /** Abandons the session when even the borders after its first events are gone. */
    void giveUpAllAfter(long kept) {
        made.clear();
        if (session != null) {
            lost.lose(events - kept);
            session.abandon();
            session = null;
        }
    }

    private long timeOf(Long millis) throws EventRefusedException {
        boolean said = timedByRecord && millis != null;
        long wanted = said(millis);
        // All borders up to that time would be made at once, and events would wait behind them.
        if (said && wanted > clock.now() + skew) {
            throw new EventRefusedException(Fault.AHEAD);
        }
        long at = after(wanted, session.last(), schema.tick());
        if (said && (at / EventTime.MILLISECOND != millis
                || EventTime.floor(at, schema.tick()) != EventTime.floor(wanted, schema.tick()))) {
            throw new EventRefusedException(Fault.LATE);
        }
        return at;
    }

    /** The time of an event. */
    private long said(Long millis) {
        return timedByRecord && millis != null ? AlpheusConfig.micros(millis) : clock.now();
    }

    /** The first time from {@code wanted} on that is after {@code last} and not on a tick. */
    private static long after(long wanted, long last, long tick) {
        long at = wanted > last ? wanted : last + 1;
        return at % tick == 0 ? at + 1 : at;
    }

    private List<byte[]> take() {
        List<byte[]> taken = made;
        made = new ArrayList<>();
        return taken;
    }

    /** Wipes the keys. */
    @Override
    public void close() {
        giveUp();
        sessions.close();
    }
}
