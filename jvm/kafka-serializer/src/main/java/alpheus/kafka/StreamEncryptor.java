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
import alpheus.stream.MasterSecret;
import alpheus.stream.Producer;
import alpheus.stream.ProducerException;
import alpheus.stream.Session;
import alpheus.stream.Start;
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
    /** The maximum number of borders made at once. After a long sleep there may be more than fit in memory. */
    private static final int PIECE = 256;

    private final Schema schema;
    private final Encoder encoder;
    private final Row row;
    private final Producer producer;
    private final RandomGenerator random;
    private final MicroClock clock;
    private final StreamCounters counters;
    private final boolean timedByRecord;
    private final long lateness;
    private final long skew;

    /** Frames that were made but not fetched yet. */
    private List<byte[]> made = new ArrayList<>();

    private Session session;
    /** Whether its opening border was fetched. */
    private boolean begun;
    /** The number of opened sessions, except those at midnight. Frames of earlier ones do not matter. */
    private long generation;
    /** Events of that session. */
    private long events;

    StreamEncryptor(
            Schema schema, StreamId stream, MasterSecret master, AlpheusConfig config, RandomGenerator random,
            MicroClock clock, StreamCounters counters)
            throws LayoutException, ProducerException {
        this.schema = schema;
        this.encoder = new Encoder(schema);
        this.row = encoder.row();
        this.producer = new Producer(master, stream, schema.id(), schema.tick(), encoder.words());
        this.random = random;
        this.clock = clock;
        this.counters = counters;
        this.timedByRecord = config.isTimedByRecord();
        this.lateness = config.latenessMicros();
        this.skew = config.skewMicros();
    }

    /** The stream, which is the key of its records. */
    StreamId stream() {
        return producer.stream();
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
            session = producer.open(new Start.Again(now), producer.nextTick(now), random, frame -> made.add(frame));
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
        try {
            if (value == null) {
                throw new EventRefusedException(Fault.NO_VALUE);
            }
            row.clear();
            reader.read(value, schema, row);
            long at = timeOf(millis);
            session.event(at, vector -> encoder.encode(row, random, vector));
            events++;
            counters.add(Count.EVENTS, 1);
            counters.add(Count.BORDERS, made.size() - 1L);
            return take();
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
        boolean more = at >= session.nextBorder() + PIECE * schema.tick();
        return more && !hasJumped(at) ? piece(at) : List.of();
    }

    private boolean hasJumped(long until) {
        return (until - session.nextBorder()) / schema.tick() > Producer.LONGEST_SILENCE;
    }

    private List<byte[]> piece(long until) throws ProducerException {
        session.advance(Math.min(until, session.nextBorder() + (PIECE - 1) * schema.tick()));
        counters.add(Count.BORDERS, made.size());
        return take();
    }

    /** Frames that a rejected event left: the borders before it. */
    List<byte[]> left() {
        counters.add(Count.BORDERS, made.size());
        return take();
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
            counters.add(Count.LOST, events - kept);
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
        producer.close();
    }
}
