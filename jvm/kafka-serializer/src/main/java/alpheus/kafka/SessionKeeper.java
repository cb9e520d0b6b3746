// Manages one stream's session: opens it, waits for it, sends its borders, closes it.
package alpheus.kafka;

import alpheus.AlpheusException;
import alpheus.kafka.StreamCounters.Count;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.errors.TimeoutException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Manages one stream's session. It is safe for concurrent use: frames are created and sent under one lock,
 * so they stay in order. The sender may wait for the broker while it holds the lock, and so may the border
 * timer. So nobody waits for the lock longer than for the broker. A session with an undelivered frame is
 * abandoned, and the next opens at the next tick.
 */
final class SessionKeeper {
    private static final Logger LOG = LoggerFactory.getLogger(SessionKeeper.class);

    private final StreamEncryptor encryptor;
    private final MicroClock clock;
    private final StreamCounters counters;
    private final Lane lane;
    private final long maxBlockMicros;
    private final BorderTimer timer;
    private final ReentrantLock lock = new ReentrantLock(true);

    /**
     * Whether the thread runs a callback. It may be Kafka's own thread, which sends and acknowledges
     * everything.
     */
    private final ThreadLocal<Boolean> callsBack = ThreadLocal.withInitial(() -> false);

    /** Whether anything was sent. Before that the topic is unknown. */
    private boolean begun;

    private volatile boolean closed;
    /** Closed while a frame waited for the broker. Its sender wipes the keys. */
    private volatile boolean abandoned;
    /** The session at the start of the transaction, and the number of its closed events. */
    private long beganIn;

    private long closedBefore;
    /** The events of the open tick, if each tick has a frame. */
    private TickOutcome openTick;
    /** Those of the last frame that was handed over. */
    private TickOutcome handedOver;
    /** What waits until the lock is released: an application's callbacks may send. */
    private final List<Runnable> afterwards = new ArrayList<>();
    /** The latest session with an undelivered frame. */
    private volatile long broken;

    /** Receives frames other than an event's own, in order. Called under the lock. */
    @FunctionalInterface
    interface Lane {
        void send(List<byte[]> frames);
    }

    SessionKeeper(
            StreamEncryptor encryptor, MicroClock clock, StreamCounters counters, long maxBlockMillis, Lane lane) {
        this.encryptor = encryptor;
        this.clock = clock;
        this.counters = counters;
        this.lane = lane;
        this.maxBlockMicros = AlpheusConfig.micros(maxBlockMillis);
        encryptor.onLoss(this::lost);
        this.timer = new BorderTimer(this::borders);
    }

    /** Encrypts an event and passes its frame to {@code send}, after all frames before it. */
    <V, R> R event(RowReader<V> reader, V value, Long millis, Function<byte[], R> send) {
        long deadline = deadline();
        lockUntil(deadline);
        try {
            begun = true;
            awaitSession(deadline);
            catchUp(millis);
            List<byte[]> frames = encryptor.event(reader, value, millis);
            byte[] event = frames.remove(frames.size() - 1);
            return handOver(() -> {
                deliver(frames);
                return send.apply(event);
            });
        } catch (AlpheusException refused) {
            throw refused(refused);
        } finally {
            unlock();
        }
    }

    /** Adds an event to the open tick. The result is that of the tick's frame, which is sent at its end. */
    <V> Future<RecordMetadata> tickEvent(RowReader<V> reader, V value, Long millis, Callback callback) {
        long deadline = deadline();
        lockUntil(deadline);
        try {
            begun = true;
            awaitSession(deadline);
            long at = encryptor.place(millis);
            // First the frames of earlier ticks, for the results of their events.
            handOver(encryptor.ticksBefore(at));
            encryptor.add(reader, value, at);
            openTick = openTick == null ? new TickOutcome() : openTick;
            return openTick.add(callback);
        } catch (AlpheusException refused) {
            throw refused(refused);
        } finally {
            unlock();
        }
    }

    private SerializationException refused(AlpheusException refused) {
        handOver(encryptor.left());
        return new SerializationException(refused.getMessage(), refused);
    }

    /** Sending from a callback never waits: it would deadlock. */
    private long deadline() {
        return clock.now() + (callsBack.get() ? 0 : maxBlockMicros);
    }

    private TimeoutException late(String words) {
        return new TimeoutException(
                callsBack.get() ? "a callback runs on Kafka's own thread and must not wait: send from another thread" : words);
    }

    /** After a long sleep, borders are sent in batches. */
    private void catchUp(Long millis) throws AlpheusException {
        List<byte[]> piece = encryptor.bordersBefore(millis);
        while (!piece.isEmpty()) {
            handOver(piece);
            piece = encryptor.bordersBefore(millis);
        }
    }

    private void handOver(List<byte[]> frames) {
        handOver(() -> {
            deliver(frames);
            return null;
        });
    }

    /** A receiver that throws may have lost its frames. */
    private <R> R handOver(Supplier<R> send) {
        handedOver = null;
        try {
            return send.get();
        } catch (RuntimeException failure) {
            failed(encryptor.generation(), failure);
            if (handedOver != null) {
                settle(handedOver, null, failure);
            } else if (!encryptor.hasOpenEvents()) {
                // A frame before the tick's failed, so that it was not sent.
                loseOpenTick();
            }
            throw failure;
        }
    }

    private void deliver(List<byte[]> frames) {
        if (!frames.isEmpty()) {
            lane.send(frames);
        }
    }

    /** Opens a session if none runs or the last one broke, and waits until it has begun. */
    private void awaitSession(long deadline) throws AlpheusException {
        while (true) {
            if (closed) {
                throw new IllegalStateException("this producer is closed");
            }
            reopen();
            long ready = encryptor.readyAt();
            if (encryptor.hasBegun() && clock.now() >= ready) {
                return;
            }
            if (ready > deadline) {
                throw late("the session opens at the next tick, which is later than max.block.ms "
                    + "allows; raise it, or shorten the schema's tick");
            }
            unlockedWait(ready, deadline);
        }
    }

    private void reopen() throws AlpheusException {
        if (broken == encryptor.generation()) {
            encryptor.giveUp();
        } else if (encryptor.isAheadOfClock()) {
            LOG.warn("the clock went back: the session ends, and another opens at the next tick of the clock");
            encryptor.giveUp();
        }
        handOver(encryptor.open());
    }

    private void unlockedWait(long until, long deadline) {
        release();
        try {
            clock.waitUntil(until);
        } catch (InterruptedException interrupted) {
            throw new InterruptException(interrupted);
        }
        lockUntil(deadline);
    }

    private void lockUntil(long deadline) {
        if (!locks(deadline - clock.now())) {
            throw late("another frame of this producer has waited for the broker for longer than "
                    + "max.block.ms; check that the broker accepts records");
        }
    }

    private boolean locks(long micros) {
        try {
            return lock.tryLock(Math.max(micros, 0), TimeUnit.MICROSECONDS);
        } catch (InterruptedException interrupted) {
            throw new InterruptException(interrupted);
        }
    }

    /** A thread whose wait timed out does not have the lock. */
    private void unlock() {
        if (!lock.isHeldByCurrentThread()) {
            return;
        }
        if (abandoned) {
            encryptor.close();
        }
        release();
    }

    /** Releases the lock, and then notifies the application of what happened under it. */
    private void release() {
        List<Runnable> run = List.copyOf(afterwards);
        afterwards.clear();
        lock.unlock();
        run.forEach(Runnable::run);
    }

    /** A session was abandoned. Under the lock. */
    private void lost(long number) {
        if (encryptor.hasFramePerEvent()) {
            counters.add(Count.LOST, number);
        } else {
            loseOpenTick();
        }
    }

    private void loseOpenTick() {
        TickOutcome lost = openTick;
        openTick = null;
        if (lost != null) {
            settle(lost, null, new TickLostException(counters.lastFailure()));
        }
    }

    /** Sends the borders that are due. This keeps a started stream online. */
    void borders() {
        lock.lock();
        try {
            if (!closed && begun) {
                reopen();
                handOver(encryptor.borders());
            }
        } catch (AlpheusException refused) {
            encryptor.giveUp();
        } finally {
            unlock();
        }
    }

    /** Runs an action while no frame is made. */
    void exclusively(Runnable run) {
        lockUntil(deadline());
        try {
            run.run();
        } finally {
            unlock();
        }
    }

    /** A transaction begins; under the lock. */
    void begin() {
        beganIn = encryptor.generation();
        closedBefore = encryptor.closed();
    }

    /** The transaction is aborted, with all borders in it. Abandons the session; under the lock. */
    void abort() {
        encryptor.giveUpAllAfter(beganIn == encryptor.generation() ? closedBefore : 0);
    }

    /**
     * Records the failure of a frame, before the application is notified. If the frame is a tick's, its
     * events get its result. Under the lock.
     */
    Callback watched(byte[] frame, Callback callback) {
        long generation = encryptor.generation();
        TickOutcome own = FrameTimes.sumsTick(frame) ? openTick : null;
        openTick = own == null ? openTick : null;
        handedOver = own;
        return (metadata, failure) -> {
            if (failure != null) {
                failed(generation, failure);
            }
            if (callback != null) {
                callBack(callback, metadata, failure);
            }
            if (own != null) {
                settle(own, metadata, failure);
            }
        };
    }

    /**
     * Counts a tick's events and tells them what became of its frame. Kafka calls back at once where it
     * refuses at once. Frames of the same batch are still to be sent then, so applications wait.
     */
    private void settle(TickOutcome tick, RecordMetadata metadata, Exception failure) {
        if (!tick.isFirst()) {
            return;
        }
        counters.add(Count.LOST, failure == null ? 0 : tick.events());
        Runnable tell = () -> callBack(tick::complete, metadata, failure);
        if (lock.isHeldByCurrentThread()) {
            afterwards.add(tell);
        } else {
            tell.run();
        }
    }

    /** Waits until the frame of the open tick, if it has events, was sent. A callback never waits. */
    void awaitTick() {
        if (callsBack.get()) {
            return;
        }
        long deadline = deadline();
        lockUntil(deadline);
        try {
            while (openTick != null && !closed) {
                long end = encryptor.tickEndsAt();
                unlockedWait(end, end + maxBlockMicros);
                reopen();
                handOver(encryptor.borders());
            }
        } catch (AlpheusException refused) {
            encryptor.giveUp();
        } finally {
            unlock();
        }
    }

    private void callBack(Callback callback, RecordMetadata metadata, Exception failure) {
        boolean before = callsBack.get();
        callsBack.set(true);
        try {
            callback.onCompletion(metadata, failure);
        } finally {
            callsBack.set(before);
        }
    }

    /** The first failed frame has the reason. Those behind it fail for the same one. */
    private void failed(long generation, Exception failure) {
        counters.add(Count.FAILED, 1);
        String why = BrokerRefusal.words(failure);
        synchronized (timer) {
            if (generation > broken) {
                broken = generation;
                counters.fail(why);
                LOG.error("the session ends, and the events of its open tick are lost: {}", why);
            }
        }
    }

    /**
     * Closes the session, if its tick ends within the timeout, and wipes the keys. If a frame waits for the
     * broker all that time, they are wiped when it is sent or fails.
     *
     * @param waitMillis the timeout
     * @param first an action to run first, while no frame is made
     */
    void close(long waitMillis, Runnable first) {
        timer.close();
        long wait = AlpheusConfig.micros(waitMillis);
        long deadline = clock.now() + wait;
        if (!locks(wait)) {
            abandon();
            return;
        }
        try {
            if (!closed) {
                closed = true;
                first.run();
                end(deadline);
                encryptor.close();
            }
        } catch (TimeoutException anotherFrameWaits) {
            abandon();
        } finally {
            unlock();
        }
    }

    private void abandon() {
        closed = true;
        abandoned = true;
        // The holder may have released the lock just before.
        if (lock.tryLock()) {
            unlock();
        }
    }

    private void end(long deadline) {
        long at = encryptor.closesAt();
        boolean whole = at != 0 && broken != encryptor.generation();
        if (!whole || at > deadline) {
            return;
        }
        unlockedWait(at, deadline);
        try {
            deliver(encryptor.finish());
        } catch (AlpheusException refused) {
            encryptor.giveUp();
        }
    }
}
