// A session of tick frames. It adds up its tick, and sends one frame at its end.
package alpheus.tick;

import alpheus.encode.EncodeException;
import alpheus.stream.EventTime;
import alpheus.stream.ProducerException;
import alpheus.stream.ProducerException.Fault;
import alpheus.stream.Session.Encoding;
import alpheus.stream.TickSum;
import java.util.Arrays;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.random.RandomGenerator;

/**
 * An online producer of tick frames. It holds the sum of the open tick in the clear: a crash loses that
 * tick. Borders of a session strictly increase, so it never makes two frames for one border. A session is
 * never stored or resumed; what a device may store is {@link #reached}.
 *
 * <p>A session ends with its UTC day: it closes on the first border of the next day, and another opens on
 * the same border. Its number is drawn afresh, so copies of a running device part there.
 *
 * <p>Each frame is passed to a sink at once, in order. Not safe for concurrent use.
 */
public final class TickSession {
    private final TickProducer producer;
    private final RandomGenerator random;
    private final Consumer<byte[]> sink;
    private final long tick;
    private final long anchor;
    /** The sum of the open tick's events. */
    private final long[] plain;
    /** The event that is being encoded; zero between events. */
    private final long[] event;
    /** Room for a tick's ciphertext. */
    private final long[] cipher;
    /** Since the last anchor, up to the last border. */
    private final SessionSum sum;

    private long session;
    private long opened;
    private SessionKey key;
    /** The last border that was sent. */
    private long border;
    /** Time of the last event or border. */
    private long last;
    /** Events of the open tick. */
    private long count;
    /** K(border). */
    private long[] current;
    /** Room for the next. */
    private long[] next;

    private boolean ended;

    TickSession(TickProducer producer, TickProducer.Begun begun, RandomGenerator random, Consumer<byte[]> sink) {
        int words = producer.shape().blocks().words();
        this.producer = producer;
        this.random = random;
        this.sink = sink;
        this.tick = producer.shape().tick();
        this.anchor = producer.shape().anchor();
        this.plain = new long[words];
        this.event = new long[words];
        this.cipher = new long[words];
        this.current = new long[words];
        this.next = new long[words];
        this.sum = new SessionSum(producer.shape().blocks());
        run(begun);
        sink.accept(begun.opening());
    }

    private void run(TickProducer.Begun begun) {
        session = begun.number();
        key = begun.key();
        opened = begun.at();
        border = begun.at();
        last = begun.at();
        count = 0;
        sum.restart();
        producer.keys().keyVector(session, border, current);
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
     * The session and its last border: what the next session's opening names as the one before. Public.
     *
     * @return both
     */
    public Previous reached() {
        return new Previous(session, border);
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
     * The time of the next border. A producer whose clock has reached it calls {@link #advance}.
     *
     * @return microseconds
     */
    public long nextBorder() {
        return border + tick;
    }

    /**
     * Events of the open tick. They are lost if the session is abandoned now.
     *
     * @return the number
     */
    public long unclosed() {
        return count;
    }

    /**
     * Adds one event to the open tick. Nothing is sent. A rejected event leaves no trace.
     *
     * @param t its time, after {@link #last()} and before {@link #nextBorder()}
     * @param encoding adds its words
     * @throws ProducerException if the time is not allowed
     * @throws EncodeException if the encoding rejects it
     */
    public void event(long t, Encoding encoding) throws ProducerException, EncodeException {
        admit(t);
        try {
            encoding.addTo(event);
            if (event[event.length - 1] != 0) {
                throw new IllegalStateException("the encoding writes to the check word; it was made for another schema");
            }
            TickSum.add(plain, event);
            last = t;
            count++;
        } finally {
            Arrays.fill(event, 0);
        }
    }

    private void admit(long t) throws ProducerException {
        needsRunning();
        if (t <= last) {
            throw new ProducerException(Fault.NOT_ASCENDING, t, last);
        }
        if (t % tick == 0) {
            throw new ProducerException(Fault.ON_A_TICK, t);
        }
        if (t > nextBorder()) {
            throw new ProducerException(Fault.TICK_OVER, t, nextBorder());
        }
    }

    /**
     * Passes the frames of all ticks up to and including a time to the sink, also of those without events.
     * A frame shows the session, its tick and the number of words. Everything else looks uniformly random
     * to anyone who lacks the stream's keys.
     *
     * @param now the producer's clock
     * @throws ProducerException if no further border would fit; the session can then still close
     */
    public void advance(long now) throws ProducerException {
        needsRunning();
        roomAfter(now);
        ticksUntil(now);
    }

    /**
     * The device was asleep up to now: sends one frame for all ticks that have passed since its last event.
     * If there was one in the open tick, that tick's frame comes first. The gap shows that the device was
     * asleep, and that it counted no event.
     *
     * @param now the producer's clock
     * @throws ProducerException as {@link #advance}
     */
    public void sleepUntil(long now) throws ProducerException {
        needsRunning();
        roomAfter(now);
        if (count > 0 && nextBorder() <= now) {
            ticksUntil(nextBorder());
        }
        long until = EventTime.floor(now, tick);
        while (border < until) {
            long midnight = lastBorder();
            if (until < midnight) {
                gap(ClaimKind.GAP, until);
            } else {
                beginDay(midnight, ClaimKind.CLOSING_GAP);
            }
        }
    }

    /**
     * Ends the session properly: frames of all ticks up to a tick, the last of them a closing one.
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
            throw new ProducerException(Fault.NOT_ASCENDING, at, last);
        }
        if (at >= EventTime.LIMIT) {
            throw new ProducerException(Fault.BEYOND_LIMIT, at);
        }
        ticksUntil(at - tick);
        tick(ClaimKind.CLOSING_TICK);
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
        Arrays.fill(plain, 0);
        Arrays.fill(current, 0);
        Arrays.fill(next, 0);
        producer.goOffline();
    }

    private void needsRunning() throws ProducerException {
        if (ended) {
            throw new ProducerException(Fault.ENDED);
        }
    }

    /** Whether there is room for the border after a time. */
    private void roomAfter(long t) throws ProducerException {
        if (t < 0 || t >= EventTime.LIMIT || EventTime.floor(t, tick) + tick >= EventTime.LIMIT) {
            throw new ProducerException(Fault.BEYOND_LIMIT, t);
        }
    }

    /** The first border of the next day, where the session ends at the latest. */
    private long lastBorder() {
        return EventTime.ceiling(EventTime.floor(opened, EventTime.DAY) + EventTime.DAY, tick);
    }

    private void ticksUntil(long t) {
        while (nextBorder() <= t) {
            if (nextBorder() < lastBorder()) {
                tick(ClaimKind.TICK);
            } else {
                beginDay(nextBorder(), ClaimKind.CLOSING_TICK);
            }
        }
    }

    /**
     * Closes the session on a border and opens another there. The opening goes first. Otherwise the stream
     * would look offline between the two, and windows would close without it.
     */
    private void beginDay(long at, ClaimKind closing) {
        TickProducer.Begun begun = producer.begin(at, Optional.of(new Previous(session, at)), random);
        sink.accept(begun.opening());
        if (closing.isGap()) {
            gap(closing, at);
        } else {
            tick(closing);
        }
        run(begun);
    }

    /** Sends the open tick, C = Σ m + K(to) − K(from), and starts the next. */
    private void tick(ClaimKind kind) {
        long to = nextBorder();
        producer.keys().keyVector(session, to, next);
        for (int i = 0; i < cipher.length; i++) {
            cipher[i] = plain[i] + next[i] - current[i];
        }
        Arrays.fill(plain, 0);
        sum.add(cipher, count);
        count = 0;
        send(kind, to, cipher);
    }

    /** Sends that nothing happened since the last border. */
    private void gap(ClaimKind kind, long to) {
        producer.keys().keyVector(session, to, next);
        send(kind, to, new long[0]);
    }

    /**
     * Moves the session to a border, whose K(to) is in {@link #next}, and then releases the frame. No other
     * frame can be made for the same border.
     */
    private void send(ClaimKind kind, long to, long[] words) {
        Claim claim = Claims.make(
                producer.keys(), new Statement(kind, session, border, to, sum.events(), sum.root()));
        if (claim.endsPeriod(anchor)) {
            sum.restart();
        }
        long[] old = current;
        current = next;
        next = old;
        border = to;
        last = to;
        sink.accept(TickFrame.make(claim, words, key));
    }
}
