// A session. Nothing else encrypts.
package alpheus.stream;

import alpheus.encode.EncodeException;
import alpheus.stream.Frame.Kind;
import alpheus.stream.ProducerException.Fault;
import java.util.Arrays;
import java.util.function.Consumer;

/**
 * An online producer: a session number and the key vector of its last event. Times within a session
 * strictly increase, so nothing is encrypted twice under one (session, time). A session is never stored or
 * resumed.
 *
 * <p>A session ends with its UTC day: it closes on the first border of the next day, and another opens on
 * the same border, under the next number.
 *
 * <p>Each frame is passed to a sink at once, in order. A frame that was not delivered cannot be recreated:
 * call {@link #abandon} and open another session. Not safe for concurrent use.
 */
public final class Session {
    private final Producer producer;
    private final StreamKeys keys;
    private final Consumer<byte[]> sink;
    private final long tick;
    /** The plaintext of the current event; zero between events. */
    private final long[] plain;

    private long session;
    private long opened;
    /** Time of the last event, border or data. */
    private long last;

    private long border;
    /** Data events since the last border. */
    private long count;
    /** K(last). */
    private long[] current;
    /** Room for the next. */
    private long[] next;

    private boolean ended;

    Session(Producer producer, long session, long at, Consumer<byte[]> sink) {
        this.producer = producer;
        this.keys = producer.keys();
        this.sink = sink;
        this.tick = producer.tick();
        this.plain = new long[producer.words()];
        this.current = new long[producer.words()];
        this.next = new long[producer.words()];
        begin(session, at);
    }

    /** Adds the words of one event to a vector of zeros. */
    @FunctionalInterface
    public interface Encoding {
        /**
         * Adds the words.
         *
         * @param vector the event's words; the last, the check word, must stay zero
         * @throws EncodeException if the event is not as declared
         */
        void addTo(long[] vector) throws EncodeException;
    }

    /**
     * The session's number, until the day ends. Public.
     *
     * @return the number
     */
    public long number() {
        return session;
    }

    /**
     * Time of the last event or border.
     *
     * @return microseconds
     */
    public long last() {
        return last;
    }

    /**
     * The time of the next border. A producer whose clock has reached it calls {@link #advance}, so windows
     * close without waiting for an event.
     *
     * @return microseconds
     */
    public long nextBorder() {
        return border + tick;
    }

    /**
     * Data events since the last border. They are lost if the session is abandoned now.
     *
     * @return the number
     */
    public long unclosed() {
        return count;
    }

    /**
     * Encrypts one data event and passes its frame to the sink, after the frames of all borders up to it. A
     * rejected event changes nothing, but borders of earlier ticks may have been sent.
     *
     * <p>The frame reveals session, time, the time before, and the number of words. Without the stream's
     * keys the words look uniformly random.
     *
     * @param t its time, after {@link #last()} and not on a tick
     * @param encoding adds its words
     * @throws ProducerException if the time is not allowed
     * @throws EncodeException if the encoding rejects it
     */
    public void event(long t, Encoding encoding) throws ProducerException, EncodeException {
        admit(t);
        // Before the encoding: a border's plaintext is zero.
        bordersUntil(t);
        try {
            encoding.addTo(plain);
            if (plain[plain.length - 1] != 0) {
                throw new IllegalStateException("the encoding writes to the check word; it was made for another schema");
            }
            byte[] frame = Frame.make(Kind.DATA, session, t, last, 0, null, plain.length);
            count++;
            deliver(encipher(frame, Frame.DATA_HEAD, t), t);
        } finally {
            Arrays.fill(plain, 0);
        }
    }

    /**
     * Passes the borders of all ticks up to and including a time to the sink.
     *
     * @param now the producer's clock
     * @throws ProducerException if no further border would fit, or if there would be too many, since the clock
     *     has jumped; the session can then still close
     */
    public void advance(long now) throws ProducerException {
        needsRunning();
        roomAfter(now);
        silenceUntil(now);
        bordersUntil(now);
    }

    /**
     * Ends the session in order: borders up to a tick, the last of them a closing one.
     *
     * @param at the tick
     * @throws ProducerException if it cannot end there; the session does not change
     */
    public void close(long at) throws ProducerException {
        needsRunning();
        if (at % tick != 0) {
            throw new ProducerException(Fault.NOT_A_TICK, at, tick);
        }
        if (at < nextBorder()) {
            throw new ProducerException(Fault.NOT_ASCENDING, at, Math.max(last, border));
        }
        if (at >= EventTime.LIMIT) {
            throw new ProducerException(Fault.BEYOND_LIMIT, at);
        }
        silenceUntil(at);
        bordersUntil(at - tick);
        border(Kind.CLOSING);
        end();
    }

    /** Drops the session. The {@link #unclosed()} events are lost: no window will include them. */
    public void abandon() {
        if (!ended) {
            end();
        }
    }

    private void end() {
        ended = true;
        Arrays.fill(current, 0);
        Arrays.fill(next, 0);
        producer.goOffline();
    }

    private void needsRunning() throws ProducerException {
        if (ended) {
            throw new ProducerException(Fault.ENDED);
        }
    }

    /** Whether a data event may stand at a time. */
    private void admit(long t) throws ProducerException {
        needsRunning();
        if (t <= last) {
            throw new ProducerException(Fault.NOT_ASCENDING, t, last);
        }
        if (t < nextBorder()) {
            return;
        }
        if (t % tick == 0) {
            throw new ProducerException(Fault.ON_A_TICK, t);
        }
        roomAfter(t);
        silenceUntil(t);
    }

    /** Whether the clock has not jumped ahead. */
    private void silenceUntil(long t) throws ProducerException {
        long ticks = (t - border) / tick;
        if (ticks > producer.longestSilence()) {
            throw new ProducerException(Fault.JUMPED_AHEAD, ticks, producer.longestSilence());
        }
    }

    /** Whether there is room for the border after a time. */
    private void roomAfter(long t) throws ProducerException {
        if (t < 0 || t >= EventTime.LIMIT || EventTime.floor(t, tick) + tick >= EventTime.LIMIT) {
            throw new ProducerException(Fault.BEYOND_LIMIT, t);
        }
    }

    private void bordersUntil(long t) {
        while (nextBorder() <= t) {
            if (nextBorder() / EventTime.DAY == opened / EventTime.DAY) {
                border(Kind.BORDER);
            } else {
                beginDay();
            }
        }
    }

    /**
     * Closes the session on the next border and opens another there. The opening border goes first.
     * Otherwise the stream would look offline between the two, and windows would close without it.
     */
    private void beginDay() {
        long t = nextBorder();
        byte[] closing = borderFrame(Kind.CLOSING, t);
        begin(session + 1, t);
        sink.accept(closing);
    }

    private void begin(long number, long t) {
        session = number;
        opened = t;
        last = t;
        border = t;
        count = 0;
        keys.keyVector(number, t, current);
        byte[] tag = keys.borderTag(BorderKind.OPENING, number, t, 0);
        sink.accept(Frame.make(Kind.OPENING, number, t, 0, 0, tag, 0));
    }

    /** Makes the border after the last one. */
    private void border(Kind kind) {
        long t = nextBorder();
        byte[] frame = borderFrame(kind, t);
        border = t;
        count = 0;
        deliver(frame, t);
    }

    private byte[] borderFrame(Kind kind, long t) {
        BorderKind claim = kind == Kind.CLOSING ? BorderKind.CLOSING : BorderKind.INTERIOR;
        byte[] tag = keys.borderTag(claim, session, t, count);
        byte[] frame = Frame.make(kind, session, t, last, count, tag, plain.length);
        return encipher(frame, Frame.BORDER_HEAD, t);
    }

    /** Writes m + K(t) − K(last) behind a frame's header, where m is {@link #plain}. */
    private byte[] encipher(byte[] frame, int head, long t) {
        keys.keyVector(session, t, next);
        long[] old = current;
        long[] made = next;
        for (int i = 0, at = head; i < made.length; i++, at += Long.BYTES) {
            Frame.WORD.set(frame, at, plain[i] + made[i] - old[i]);
        }
        next = old;
        current = made;
        return frame;
    }

    /**
     * Moves the session to a time, then releases the frame. No other frame can be made for the same time.
     */
    private void deliver(byte[] frame, long t) {
        last = t;
        sink.accept(frame);
    }
}
