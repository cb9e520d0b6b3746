// The producer, offline: it holds a stream's keys and can open a session (Zeph §3.3).
package alpheus.stream;

import alpheus.stream.ProducerException.Fault;
import java.util.function.Consumer;
import java.util.random.RandomGenerator;

/**
 * One stream's producer, offline. It knows nothing about queries. {@link #open} creates a {@link Session},
 * which alone can encrypt. While a session runs, the producer opens no other. Not safe for concurrent use.
 */
public final class Producer implements AutoCloseable {
    /** After this many ticks without an event, a later event looks like a clock jump. */
    public static final long LONGEST_SILENCE = 100_000;

    private static final int SHORTEST_TICK = 2;

    private final StreamKeys keys;
    private final long tick;
    private final int words;
    private final long longestSilence;
    /** Whether a session was opened before. */
    private boolean opened;

    private boolean online;

    /**
     * A producer of events with borders on every multiple of the tick.
     *
     * @param master the stream's secret, which may be wiped afterwards
     * @param stream the stream
     * @param schema the schema's id
     * @param tick the tick in microseconds
     * @param words words of an event, the check word included
     * @throws ProducerException if there is no such cipher
     */
    public Producer(MasterSecret master, StreamId stream, SchemaId schema, long tick, int words)
            throws ProducerException {
        this(master, stream, schema, tick, words, LONGEST_SILENCE);
    }

    /**
     * The same, with another limit on silence.
     *
     * @param master the stream's secret, which may be wiped afterwards
     * @param stream the stream
     * @param schema the schema's id
     * @param tick the tick in microseconds
     * @param words words of an event, the check word included
     * @param longestSilence ticks after which an event is rejected as a clock jump; each tick costs a border
     * @throws ProducerException if there is no such cipher
     */
    public Producer(
            MasterSecret master, StreamId stream, SchemaId schema, long tick, int words, long longestSilence)
            throws ProducerException {
        checkShape(tick, words);
        this.keys = new StreamKeys(master, stream, schema, words);
        this.tick = tick;
        this.words = words;
        this.longestSilence = longestSilence;
    }

    /**
     * Whether the cipher can encrypt such vectors, with borders at this distance.
     *
     * @param tick the tick in microseconds
     * @param words words of an event, the check word included
     * @throws ProducerException if it cannot
     */
    public static void checkShape(long tick, int words) throws ProducerException {
        if (words < 1 || words > StreamKeys.MAX_WORDS) {
            throw new ProducerException(Fault.WORDS, words);
        }
        if (tick < SHORTEST_TICK || tick > EventTime.DAY) {
            throw new ProducerException(Fault.TICK, tick);
        }
    }

    /**
     * The stream.
     *
     * @return its id
     */
    public StreamId stream() {
        return keys.stream();
    }

    /**
     * The first tick at or after a time, at which a session can open.
     *
     * @param now the producer's clock
     * @return the tick
     */
    public long nextTick(long now) {
        return EventTime.ceiling(now, tick);
    }

    /**
     * Whether a session may open.
     *
     * @param start what is known about the stream's past
     * @param at where it would open
     * @param tick the tick in microseconds
     * @param opened whether there was a session before
     * @param online whether one runs
     * @throws ProducerException if it may not
     */
    public static void admit(Start start, long at, long tick, boolean opened, boolean online) throws ProducerException {
        if (online) {
            throw new ProducerException(Fault.ENDED);
        }
        if (at % tick != 0) {
            throw new ProducerException(Fault.NOT_A_TICK, at, tick);
        }
        // Room for the border that closes the session.
        if (at < 0 || at + tick >= EventTime.LIMIT) {
            throw new ProducerException(Fault.BEYOND_LIMIT, at);
        }
        if (start instanceof Start.First && opened) {
            throw new ProducerException(Fault.NOT_THE_FIRST);
        }
        if (start instanceof Start.Again again && at < EventTime.ceiling(again.now(), tick)) {
            throw new ProducerException(Fault.BACK_DATED, at, EventTime.ceiling(again.now(), tick));
        }
    }

    /**
     * Opens a session and passes its opening border to a sink.
     *
     * @param start what is known about the stream's past
     * @param at a tick
     * @param random source of the session's number: 64 random bits, so no pad of another session repeats,
     *     whichever clock, backup or snapshot the producer started from
     * @param sink takes the frames, in order
     * @return the session
     * @throws ProducerException if it cannot be opened; the producer does not change
     */
    public Session open(Start start, long at, RandomGenerator random, Consumer<byte[]> sink)
            throws ProducerException {
        admit(start, at, tick, opened, online);
        opened = true;
        online = true;
        return new Session(this, random.nextLong(), at, sink);
    }

    StreamKeys keys() {
        return keys;
    }

    long tick() {
        return tick;
    }

    int words() {
        return words;
    }

    long longestSilence() {
        return longestSilence;
    }

    void goOffline() {
        online = false;
    }

    /** Wipes the keys. */
    @Override
    public void close() {
        keys.close();
    }
}
