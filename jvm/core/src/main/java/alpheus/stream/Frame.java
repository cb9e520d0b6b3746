// Events on the wire. The stream is the record's key and not in the frame.
package alpheus.stream;

import alpheus.crypto.LinkHash;
import alpheus.stream.FrameException.Fault;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * One event, as a view of received bytes. docs/wire-formats.md has the table. Numbers and words are
 * little-endian, and times are in microseconds. Readers see session, times, count and length, but nothing
 * about the values.
 */
public final class Frame {
    /** Bytes of a data frame before its words. */
    public static final int DATA_HEAD = 25;
    /** Bytes of a border or closing frame before its words. */
    public static final int BORDER_HEAD = 49;
    /** Bytes of an opening frame. */
    public static final int OPENING_LENGTH = 33;

    static final VarHandle WORD = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private static final int TAG = 16;
    private static final int SESSION_AT = 1;
    private static final int TIME_AT = 9;
    private static final int PREVIOUS_AT = 17;
    private static final int COUNT_AT = 25;
    private static final int OPENING_TAG_AT = 17;
    private static final int BORDER_TAG_AT = 33;

    /** Version 1, and the kind: the first byte. */
    public enum Kind {
        /** The first border of a session. */
        OPENING(0x10, OPENING_LENGTH),
        /** An event with data. */
        DATA(0x11, DATA_HEAD),
        /** A border within a session. */
        BORDER(0x12, BORDER_HEAD),
        /** The last border of a session that ends in order. */
        CLOSING(0x13, BORDER_HEAD);

        final byte code;
        final int head;

        Kind(int code, int head) {
            this.code = (byte) code;
            this.head = head;
        }
    }

    private final byte[] bytes;
    /** The start of the frame. It ends at the end of the bytes. */
    private final int start;
    private final Kind kind;

    private Frame(byte[] bytes, int start, Kind kind) {
        this.bytes = bytes;
        this.start = start;
        this.kind = kind;
    }

    /**
     * Parses a frame. Any bytes are either a frame or rejected. This checks the form only: window sums
     * compare the number of words with the schema's, and the controller checks the MAC.
     *
     * @param bytes the bytes, which the frame then is a view of
     * @return the frame
     * @throws FrameException which says what is wrong
     */
    public static Frame parse(byte[] bytes) throws FrameException {
        return parse(bytes, 0);
    }

    /**
     * Parses a frame at the end of other bytes.
     *
     * @param bytes the bytes, which the frame then is a view of
     * @param start the start of the frame, at most their length
     * @return the frame
     * @throws FrameException which says what is wrong
     */
    public static Frame parse(byte[] bytes, int start) throws FrameException {
        if (bytes.length == start) {
            throw new FrameException(Fault.EMPTY);
        }
        Frame frame = new Frame(bytes, start, kind(bytes[start]));
        int head = frame.kind.head;
        // Times are checked before missing bytes behind them, as in the Rust implementation.
        frame.need(TIME_AT + Long.BYTES, head);
        if (frame.time() < 0 || frame.time() >= EventTime.LIMIT) {
            throw new FrameException(Fault.TIME_BEYOND_LIMIT, frame.time());
        }
        if (frame.kind == Kind.OPENING) {
            frame.need(head, head);
            if (frame.length() > head) {
                throw new FrameException(Fault.TRAILING_BYTES, frame.length() - head);
            }
            return frame;
        }
        frame.need(PREVIOUS_AT + Long.BYTES, head);
        if (Long.compareUnsigned(frame.previous(), frame.time()) >= 0) {
            throw new FrameException(Fault.TIMES_NOT_ASCENDING, frame.time(), frame.previous());
        }
        frame.need(head, head);
        checkWords(frame.length() - head);
        return frame;
    }

    private static Kind kind(byte code) throws FrameException {
        for (Kind kind : Kind.values()) {
            if (kind.code == code) {
                return kind;
            }
        }
        throw new FrameException(Fault.UNKNOWN_KIND, code & 0xff);
    }

    private void need(int length, int head) throws FrameException {
        if (length() < length) {
            throw new FrameException(Fault.TRUNCATED, length(), head);
        }
    }

    private int length() {
        return bytes.length - start;
    }

    private long longAt(int position) {
        return (long) WORD.get(bytes, start + position);
    }

    private static void checkWords(int length) throws FrameException {
        if (length % Long.BYTES != 0) {
            throw new FrameException(Fault.PARTIAL_WORD, length);
        }
        if (length == 0) {
            throw new FrameException(Fault.NO_WORDS);
        }
        if (length / Long.BYTES > StreamKeys.MAX_WORDS) {
            throw new FrameException(Fault.TOO_MANY_WORDS, length / Long.BYTES);
        }
    }

    /** A frame with this many words: its header is written and its words are zero. */
    static byte[] make(Kind kind, long session, long t, long previous, long count, byte[] tag, int words) {
        byte[] bytes = new byte[kind.head + Long.BYTES * words];
        bytes[0] = kind.code;
        WORD.set(bytes, SESSION_AT, session);
        WORD.set(bytes, TIME_AT, t);
        if (kind == Kind.OPENING) {
            System.arraycopy(tag, 0, bytes, OPENING_TAG_AT, TAG);
            return bytes;
        }
        WORD.set(bytes, PREVIOUS_AT, previous);
        if (kind != Kind.DATA) {
            WORD.set(bytes, COUNT_AT, count);
            System.arraycopy(tag, 0, bytes, BORDER_TAG_AT, TAG);
        }
        return bytes;
    }

    /**
     * The kind of frame.
     *
     * @return the kind
     */
    public Kind kind() {
        return kind;
    }

    /**
     * Whether it is a border with ciphertext.
     *
     * @return true of an interior or closing border
     */
    public boolean endsTick() {
        return kind == Kind.BORDER || kind == Kind.CLOSING;
    }

    /**
     * Its session.
     *
     * @return the number
     */
    public long session() {
        return longAt(SESSION_AT);
    }

    /**
     * Its time.
     *
     * @return microseconds
     */
    public long time() {
        return longAt(TIME_AT);
    }

    /**
     * Time of the event before it; an opening has none.
     *
     * @return microseconds
     */
    public long previous() {
        return longAt(PREVIOUS_AT);
    }

    /**
     * Number of data events since the last border, according to a border.
     *
     * @return the number; 0 of an opening or data
     */
    public long count() {
        return endsTick() ? longAt(COUNT_AT) : 0;
    }

    /**
     * The MAC of a border.
     *
     * @return a copy; empty of data
     */
    public byte[] tag() {
        if (kind == Kind.DATA) {
            return new byte[0];
        }
        int at = start + (kind == Kind.OPENING ? OPENING_TAG_AT : BORDER_TAG_AT);
        return Arrays.copyOfRange(bytes, at, at + TAG);
    }

    /**
     * The number of words of ciphertext.
     *
     * @return 0 of an opening
     */
    public int words() {
        return (length() - kind.head) / Long.BYTES;
    }

    /**
     * A word of ciphertext.
     *
     * @param position its position, below {@link #words()}
     * @return the word
     */
    public long word(int position) {
        return longAt(kind.head + Long.BYTES * position);
    }

    /**
     * Its part h(session, t) − h(session, previous) of its tick's link digest.
     *
     * @return 64 bits
     */
    public long link() {
        return LinkHash.of(session(), time()) - LinkHash.of(session(), previous());
    }

    /**
     * Adds its words to a sum, modulo 2^64.
     *
     * @param sum the sum
     * @throws FrameException if the sum has another number of words; the sum does not change
     */
    public void addTo(long[] sum) throws FrameException {
        if (words() != sum.length) {
            throw new FrameException(Fault.WRONG_LENGTH, words(), sum.length);
        }
        for (int i = 0, at = start + kind.head; i < sum.length; i++, at += Long.BYTES) {
            sum[i] += (long) WORD.get(bytes, at);
        }
    }
}
