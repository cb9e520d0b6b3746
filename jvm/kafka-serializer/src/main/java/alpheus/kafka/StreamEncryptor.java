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
 * One stream's events as frames, in the order in which they go to the topic, with the borders and
 * sessions between them. It keeps no state on any disk: every start draws a session of its own, which
 * opens at the next tick, so that no key is ever used twice, whatever was killed or started again from a copy; but
 * the memory of a running process must not be copied and run twice.
 * Whoever uses it holds a lock; it sends nothing itself.
 */
final class StreamEncryptor implements AutoCloseable {
    /** Borders that are made at once: after a long sleep there are more of them than memory should hold. */
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

    /** Frames that were made and not taken yet. */
    private List<byte[]> made = new ArrayList<>();

    private Session session;
    /** Whether its opening border was handed on. */
    private boolean begun;
    /** How many sessions were opened, but for midnights: frames of an earlier one are of no concern. */
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

    /** Which of its sessions runs; frames that fail later are told by it. */
    long generation() {
        return generation;
    }

    /**
     * Opens a session at the next tick, if none runs. Its opening border comes once the clock has reached that
     * tick: who sums refuses what lies ahead of its own clock, and with an opening border all that follows.
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

    /** Whether the session's opening border was handed on, before which no event may be. */
    boolean hasBegun() {
        return begun;
    }

    /** When events can be sent: after the session's opening border. */
    long readyAt() {
        return session.last();
    }

    /** The frames of one event: its own is the last, after borders that stand before it. */
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

    /** The borders that are due, at most a piece of them. A clock that has jumped far ahead ends the session. */
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

    /** A piece of the borders that stand before an event, where they are more than that; ask until there is none. */
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

    /** Frames that a refused event left behind: borders that stand before it. */
    List<byte[]> left() {
        counters.add(Count.BORDERS, made.size());
        return take();
    }

    /** When the session can close in order; 0 where none has begun. */
    long closesAt() {
        return session == null || !begun ? 0 : session.nextBorder();
    }

    /** Ends the session in order. */
    List<byte[]> finish() throws ProducerException {
        if (session != null) {
            session.close(session.nextBorder());
            session = null;
            counters.add(Count.BORDERS, made.size());
        }
        return take();
    }

    /** Gives the session up, as it must be once a frame of it was not delivered. Events of its tick are lost. */
    void giveUp() {
        giveUpAllAfter(closed());
    }

    /** Events of its session whose ticks are closed. */
    long closed() {
        return session == null ? 0 : events - session.unclosed();
    }

    /** Gives the session up where even borders after its first so many events are gone. */
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
        // All borders up to there would be made at once, and events behind it would wait.
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

    /** When an event is said to have happened. */
    private long said(Long millis) {
        return timedByRecord && millis != null ? AlpheusConfig.micros(millis) : clock.now();
    }

    /** The first time from {@code wanted} on that is after {@code last} and on no tick. */
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
