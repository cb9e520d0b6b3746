// One stream's producer of tick frames, offline.
package alpheus.tick;

import alpheus.crypto.SecretBytes;
import alpheus.stream.EventTime;
import alpheus.stream.MasterSecret;
import alpheus.stream.Producer;
import alpheus.stream.ProducerException;
import alpheus.stream.SchemaId;
import alpheus.stream.Start;
import alpheus.stream.StreamId;
import alpheus.stream.StreamKeys;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.random.RandomGenerator;

/**
 * One stream's producer of tick frames, offline. It knows nothing about queries. {@link #open} creates a
 * {@link TickSession}, which alone can encrypt. While a session runs, the producer opens no other. Not safe
 * for concurrent use.
 */
public final class TickProducer implements AutoCloseable {
    private final StreamKeys keys;
    private final TickShape shape;
    private final DeviceIdentity device;
    private final OpeningContext context;
    /** Whether a session was opened before. */
    private boolean opened;

    private boolean online;

    /**
     * A producer.
     *
     * @param master the stream's secret, which may be wiped afterwards
     * @param stream the stream
     * @param schema the schema's id
     * @param shape the schema's lengths
     * @param device who the device is to the service; the producer takes ownership
     * @throws ProducerException if the cipher has no such words or tick
     */
    public TickProducer(
            MasterSecret master, StreamId stream, SchemaId schema, TickShape shape, DeviceIdentity device)
            throws ProducerException {
        Producer.checkShape(shape.tick(), shape.blocks().words());
        if (shape.anchor() < shape.tick() || shape.anchor() % shape.tick() != 0) {
            throw new IllegalArgumentException("the anchor is a multiple of the tick, as in a checked schema");
        }
        this.keys = new StreamKeys(master, stream, schema, shape.blocks().words());
        this.shape = shape;
        this.device = device;
        this.context = new OpeningContext(device.authority(), stream, schema);
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
        return EventTime.ceiling(now, shape.tick());
    }

    /**
     * Opens a session and passes its opening to a sink.
     *
     * @param start what is known about the stream's past
     * @param at a tick
     * @param previous the session before it, if the device remembers it: {@link TickSession#reached}
     * @param random draws the session's number, 64 random bits, and its key, here and at each midnight. So no
     *     pad of another session repeats, whichever clock, backup or snapshot the producer started from
     * @param sink takes the frames, in order
     * @return the session
     * @throws ProducerException if it cannot be opened; the producer does not change
     */
    public TickSession open(
            Start start, long at, Optional<Previous> previous, RandomGenerator random, Consumer<byte[]> sink)
            throws ProducerException {
        Producer.admit(start, at, shape.tick(), opened, online);
        TickSession session = new TickSession(this, begin(at, previous, random), random, sink);
        opened = true;
        online = true;
        return session;
    }

    /**
     * A session of a day, before its opening is sent.
     *
     * @param number its number
     * @param at its first border
     * @param key the key that it shares with the service
     * @param opening its first frame
     */
    record Begun(long number, long at, SessionKey key, byte[] opening) {}

    /** Draws a session and makes its opening. */
    Begun begin(long at, Optional<Previous> previous, RandomGenerator random) {
        long number = random.nextLong();
        byte[] drawn = new byte[SessionKey.LENGTH];
        random.nextBytes(drawn);
        try (SecretBytes secret = SecretBytes.takeOver(drawn)) {
            SessionKey key = new SessionKey(secret, stream());
            Claim claim = Claims.make(keys, new Statement(ClaimKind.OPENING, number, at, at, 0, Root.NONE));
            byte[] opening = Opening.make(claim, previous, secret, device, context, random);
            key.finish(opening);
            return new Begun(number, at, key, opening);
        }
    }

    StreamKeys keys() {
        return keys;
    }

    TickShape shape() {
        return shape;
    }

    void goOffline() {
        online = false;
    }

    /** Wipes the keys. */
    @Override
    public void close() {
        keys.close();
        device.close();
    }
}
