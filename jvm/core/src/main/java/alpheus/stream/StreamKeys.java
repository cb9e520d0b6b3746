// Keys of one stream: its daily subkeys, its key vectors K(t) and the MACs of its borders (Zeph §3.3).
package alpheus.stream;

import alpheus.crypto.Hkdf;
import alpheus.crypto.KeyStream;
import alpheus.crypto.SecretBytes;
import alpheus.crypto.TagKey;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * The keys of one stream under one schema. Producer and controller derive the same keys, and nobody else
 * has them. The subkeys are bound to the schema's id, so a service that redefines the schema gets noise.
 * Not safe for concurrent use.
 */
public final class StreamKeys implements AutoCloseable {
    /** The maximum number of words of an event: a block's number within its event has 12 bits. */
    public static final int MAX_WORDS = 2 << 12;

    private static final int T_SHIFT = 12;
    private static final int SUBKEY = 16;
    private static final int BORDER_KEY = 32;
    private static final String DAY_LABEL = "alpheus/stream/day/v1";
    private static final String BORDER_KEY_LABEL = "alpheus/stream/border/v1";
    private static final String BORDER_LABEL = "alpheus/border/v1";
    private static final String TICK_LABEL = "alpheus/tick/v2";
    private static final String TICK_COUNT_LABEL = "alpheus/tick/count/v2";

    private final SecretBytes master;
    private final StreamId stream;
    private final SchemaId schema;
    private final TagKey border;
    private final byte[] blocks;
    /** The last subkey and its day: nearly every call uses the same one. */
    private KeyStream cached;

    private long cachedDay = -1;

    /**
     * Derives the keys.
     *
     * @param master the stream's secret, which may be wiped afterwards
     * @param stream the stream
     * @param schema the schema
     * @param words words of its events
     */
    public StreamKeys(MasterSecret master, StreamId stream, SchemaId schema, int words) {
        if (words < 1 || words > MAX_WORDS) {
            throw new IllegalArgumentException("an event has 1 to " + MAX_WORDS + " words");
        }
        this.master = master.secret().duplicate();
        this.stream = stream;
        this.schema = schema;
        this.blocks = new byte[Long.BYTES * words];
        try (SecretBytes key =
                Hkdf.derive(this.master, BORDER_KEY, BORDER_KEY_LABEL, stream.bytes(), schema.bytes())) {
            border = new TagKey(key);
        }
    }

    /**
     * The stream of these keys.
     *
     * @return the stream
     */
    public StreamId stream() {
        return stream;
    }

    /**
     * The schema of these keys.
     *
     * @return the schema
     */
    public SchemaId schema() {
        return schema;
    }

    /**
     * Writes K(t), the pad of a time in a session. Used for one event, it hides the event from everyone
     * without the keys. Used for two, it hides neither.
     *
     * @param session the session
     * @param t the time in microseconds, below {@link EventTime#LIMIT}
     * @param out the output, with as many words as an event
     */
    public void keyVector(long session, long t, long[] out) {
        if (t < 0 || t >= EventTime.LIMIT) {
            throw new IllegalArgumentException("there is no key for a time that is not below 2^52");
        }
        if (Long.BYTES * out.length != blocks.length) {
            throw new IllegalArgumentException("the vector must have as many words as an event");
        }
        keyOf(t / EventTime.DAY).fill(session, t << T_SHIFT, blocks, blocks.length);
        ByteBuffer.wrap(blocks).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().get(out);
    }

    /**
     * The MAC of a border.
     *
     * @param kind the kind of border
     * @param session the session
     * @param t when it stands
     * @param count data events since the last border
     * @return 16 bytes
     */
    public byte[] borderTag(BorderKind kind, long session, long t, long count) {
        return border.tag(BORDER_LABEL, eight(kind.ordinal()), eight(session), eight(t), eight(count));
    }

    /**
     * Whether the MAC of a border is this stream's. Takes constant time.
     *
     * @param tag the MAC
     * @param kind the kind of border
     * @param session the session
     * @param t when
     * @param count data events since the last border
     * @return true if so
     */
    public boolean verifiesBorder(byte[] tag, BorderKind kind, long session, long t, long count) {
        return border.verifies(tag, BORDER_LABEL, eight(kind.ordinal()), eight(session), eight(t), eight(count));
    }

    /**
     * The MAC of what a tick frame states.
     *
     * @param kind the number of its kind
     * @param session the session
     * @param from where its time starts
     * @param to where it ends
     * @param count number of events since the last anchor
     * @param root 16 bytes of the root of the sum since then
     * @return 16 bytes
     */
    public byte[] tickTag(long kind, long session, long from, long to, long count, byte[] root) {
        return border.tag(TICK_LABEL, eight(kind), eight(session), eight(from), eight(to), eight(count), root);
    }

    /**
     * The pad over a tick frame's number of events. It hides one number: each border of a session has one
     * frame.
     *
     * @param session the session
     * @param to where the frame's time ends
     * @return 64 bits
     */
    public long countPad(long session, long to) {
        byte[] pad = border.tag(TICK_COUNT_LABEL, eight(session), eight(to));
        return ByteBuffer.wrap(pad).order(ByteOrder.LITTLE_ENDIAN).getLong();
    }

    private KeyStream keyOf(long day) {
        if (day != cachedDay) {
            forgetDay();
            try (SecretBytes key =
                    Hkdf.derive(master, SUBKEY, DAY_LABEL, stream.bytes(), schema.bytes(), eight(day))) {
                cached = new KeyStream(key);
                cachedDay = day;
            }
        }
        return cached;
    }

    private void forgetDay() {
        if (cached != null) {
            cached.close();
        }
        cachedDay = -1;
    }

    private static byte[] eight(long number) {
        return ByteBuffer.allocate(Long.BYTES).putLong(number).array();
    }

    /** Wipes the keys. */
    @Override
    public void close() {
        master.close();
        forgetDay();
        Arrays.fill(blocks, (byte) 0);
    }
}
