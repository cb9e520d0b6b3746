// Tick frames on the wire. The stream is the record's key and not in the frame.
package alpheus.tick;

import alpheus.crypto.TagKey;
import alpheus.stream.StreamKeys;
import alpheus.tick.TickFrameException.Fault;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Optional;

/**
 * A tick frame, as a view of received bytes. crates/encrypted-stream/src/tick/frame.rs has the table. Numbers and words are
 * little-endian, and times are in microseconds. Its form alone is checked: {@link SessionKey#verifies} and
 * {@link Opening#verify} check who sent it, and the controller the claim's tag.
 */
public final class TickFrame {
    /** Bytes of a tick frame before its words. */
    public static final int TICK_HEAD = 57;
    /** Bytes of a gap frame before its MAC. */
    public static final int GAP_HEAD = 65;

    private static final int VERSION = 0x20;
    private static final int TIME_AT = 9;
    private static final int GAP_TIME_AT = 17;

    private final byte[] bytes;
    private final Claim claim;
    private final Opening opening;

    private TickFrame(byte[] bytes, Claim claim, Opening opening) {
        this.bytes = bytes;
        this.claim = claim;
        this.opening = opening;
    }

    /** The first byte of a kind of frame. */
    static byte code(ClaimKind kind) {
        return (byte) (VERSION + kind.ordinal());
    }

    /**
     * Whether bytes claim to be a tick frame, rather than one of an event.
     *
     * @param bytes the bytes
     * @return whether the first of them has this version
     */
    public static boolean isOne(byte[] bytes) {
        return isOne(bytes, 0);
    }

    /**
     * The same of bytes within others.
     *
     * @param bytes the bytes
     * @param start where the frame starts
     * @return whether the first of them has this version
     */
    public static boolean isOne(byte[] bytes, int start) {
        return bytes.length > start && (bytes[start] & 0xf0) == VERSION;
    }

    /**
     * The end of the time that a frame covers, without parsing it.
     *
     * @param bytes bytes that hold a frame which was parsed before
     * @param start where it starts
     * @return microseconds
     */
    public static long timeOf(byte[] bytes, int start) {
        boolean isGap = bytes[start] == code(ClaimKind.GAP) || bytes[start] == code(ClaimKind.CLOSING_GAP);
        return (long) Bytes.WORD.get(bytes, start + (isGap ? GAP_TIME_AT : TIME_AT));
    }

    /**
     * Parses a frame of a stream whose schema has this tick. Any bytes are either a frame or rejected.
     *
     * @param bytes the bytes, which the frame then is a view of
     * @param tick the schema's tick in microseconds
     * @return the frame
     * @throws TickFrameException which says what is wrong
     */
    public static TickFrame parse(byte[] bytes, long tick) throws TickFrameException {
        if (bytes.length == 0) {
            throw new TickFrameException(Fault.EMPTY);
        }
        ClaimKind kind = kind(bytes[0]);
        if (kind == ClaimKind.OPENING) {
            Opening opening = Opening.parse(bytes);
            return new TickFrame(bytes, opening.claim(), opening);
        }
        int least = (kind.isGap() ? GAP_HEAD : TICK_HEAD) + TagKey.TAG;
        Bytes fields = Bytes.of(bytes, least);
        long session = fields.number();
        long first = fields.time();
        long from = kind.isGap() ? first : Math.max(first - tick, 0);
        long to = kind.isGap() ? fields.time() : first;
        if (from >= to) {
            throw new TickFrameException(Fault.ORDER, to, from);
        }
        Claim claim = new Claim(kind, session, from, to, fields.number(), fields.root(), fields.take(TagKey.TAG));
        checkWords(kind, bytes.length, least);
        return new TickFrame(bytes, claim, null);
    }

    private static ClaimKind kind(byte code) throws TickFrameException {
        for (ClaimKind kind : ClaimKind.values()) {
            if (code(kind) == code) {
                return kind;
            }
        }
        throw new TickFrameException(Fault.UNKNOWN_KIND, code & 0xff);
    }

    private static void checkWords(ClaimKind kind, int length, int least) throws TickFrameException {
        int ciphertext = length - least;
        if (kind.isGap()) {
            if (ciphertext > 0) {
                throw new TickFrameException(Fault.TOO_LONG, length, least);
            }
        } else if (ciphertext % Long.BYTES != 0) {
            throw new TickFrameException(Fault.PARTIAL_WORD, ciphertext);
        } else if (ciphertext == 0) {
            throw new TickFrameException(Fault.NO_WORDS);
        } else if (ciphertext / Long.BYTES > StreamKeys.MAX_WORDS) {
            throw new TickFrameException(Fault.TOO_MANY_WORDS, ciphertext / Long.BYTES);
        }
    }

    /** A tick or gap frame, with the MAC of its session's key. A gap has no words. */
    static byte[] make(Claim claim, long[] words, SessionKey key) {
        boolean isGap = claim.kind().isGap();
        int length = isGap ? GAP_HEAD : TICK_HEAD + Long.BYTES * words.length;
        ByteBuffer out = ByteBuffer.allocate(length + TagKey.TAG).order(ByteOrder.LITTLE_ENDIAN);
        out.put(code(claim.kind())).putLong(claim.session());
        if (isGap) {
            out.putLong(claim.from());
        }
        out.putLong(claim.to()).putLong(claim.maskedCount());
        out.order(ByteOrder.BIG_ENDIAN).putLong(claim.root().high()).putLong(claim.root().low());
        out.put(claim.tag()).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; !isGap && i < words.length; i++) {
            out.putLong(words[i]);
        }
        key.finish(out.array());
        return out.array();
    }

    /**
     * What it states, apart from its words.
     *
     * @return the claim
     */
    public Claim claim() {
        return claim;
    }

    /**
     * The opening, if it is one.
     *
     * @return the opening
     */
    public Optional<Opening> opening() {
        return Optional.ofNullable(opening);
    }

    /**
     * The number of words of ciphertext.
     *
     * @return 0 of a gap or an opening
     */
    public int words() {
        boolean hasWords = opening == null && !claim.kind().isGap();
        return hasWords ? (bytes.length - TICK_HEAD - TagKey.TAG) / Long.BYTES : 0;
    }

    /**
     * Its ciphertext.
     *
     * @param words words of an event of the schema
     * @return the words
     * @throws TickFrameException if it has another number of words
     */
    public long[] ciphertext(int words) throws TickFrameException {
        if (words() != words) {
            throw new TickFrameException(Fault.WRONG_LENGTH, words(), words);
        }
        long[] all = new long[words];
        for (int i = 0, at = TICK_HEAD; i < words; i++, at += Long.BYTES) {
            all[i] = (long) Bytes.WORD.get(bytes, at);
        }
        return all;
    }
}
