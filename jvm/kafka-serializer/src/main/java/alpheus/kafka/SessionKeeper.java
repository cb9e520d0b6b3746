// Keeps one stream's session going: opens it, waits for it, sends its borders, ends it.
package alpheus.kafka;

import alpheus.AlpheusException;
import alpheus.kafka.StreamCounters.Count;
import java.util.List;
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
 * Keeps one stream's session going. It is safe for threads: frames are made and handed on under one
 * lock, so that they go in order. Who hands on may wait for the broker with the lock in hand, the timer of
 * borders too; so nobody waits for the lock longer than for the broker. A session of which a frame was not
 * delivered is given up, and the next opens at the next tick.
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

    /** Whether a thread runs a callback: it may be Kafka's own, without which nothing is sent or acknowledged. */
    private final ThreadLocal<Boolean> callsBack = ThreadLocal.withInitial(() -> false);

    /** Whether anything was sent: only then is it known whither. */
    private boolean begun;

    private volatile boolean closed;
    /** Closed while a frame waited for the broker: whoever hands it on wipes the keys. */
    private volatile boolean abandoned;
    /** Which session ran when the transaction began, and how many of its events were closed. */
    private long beganIn;

    private long closedBefore;
    /** The latest session of which a frame was not delivered. */
    private volatile long broken;

    /** Takes frames other than an event's own, in order; called under the lock. */
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
        this.timer = new BorderTimer(this::borders);
    }

    /** Encrypts an event and hands its frame to {@code send}, after all that stand before it. */
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
            handOver(encryptor.left());
            throw new SerializationException(refused.getMessage(), refused);
        } finally {
            unlock();
        }
    }

    /** Whoever sends from a callback does not wait: what it waited for would wait for it. */
    private long deadline() {
        return clock.now() + (callsBack.get() ? 0 : maxBlockMicros);
    }

    private TimeoutException late(String words) {
        return new TimeoutException(
                callsBack.get() ? "nothing may wait in a callback, which Kafka's own thread runs: send from another" : words);
    }

    /** After a long sleep, borders go out in pieces. */
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

    /** What throws while it takes frames may have lost them. */
    private <R> R handOver(Supplier<R> send) {
        try {
            return send.get();
        } catch (RuntimeException failure) {
            failed(encryptor.generation(), failure);
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
                        + "allows to wait for; raise it, or shorten the schema's tick");
            }
            unlockedWait(ready, deadline);
        }
    }

    private void reopen() throws AlpheusException {
        if (broken == encryptor.generation()) {
            encryptor.giveUp();
        }
        handOver(encryptor.open());
    }

    private void unlockedWait(long until, long deadline) {
        lock.unlock();
        try {
            clock.waitUntil(until);
        } catch (InterruptedException interrupted) {
            throw new InterruptException(interrupted);
        }
        lockUntil(deadline);
    }

    private void lockUntil(long deadline) {
        if (!locks(deadline - clock.now())) {
            throw late("another frame of this producer waits for the broker, for longer than "
                    + "max.block.ms allows to wait; see that the broker takes records");
        }
    }

    private boolean locks(long micros) {
        try {
            return lock.tryLock(Math.max(micros, 0), TimeUnit.MICROSECONDS);
        } catch (InterruptedException interrupted) {
            throw new InterruptException(interrupted);
        }
    }

    /** Who waited in vain for the lock does not have it. */
    private void unlock() {
        if (lock.isHeldByCurrentThread()) {
            if (abandoned) {
                encryptor.close();
            }
            lock.unlock();
        }
    }

    /** Sends the borders that are due; a stream that has begun is kept online. */
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

    /** Does something while no frame is made. */
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

    /** The transaction is aborted, and all borders in it: gives the session up; under the lock. */
    void abort() {
        encryptor.giveUpAllAfter(beganIn == encryptor.generation() ? closedBefore : 0);
    }

    /** Notes a failure of a frame that is made now, before the application hears of it. */
    Callback watched(Callback callback) {
        long generation = encryptor.generation();
        return (metadata, failure) -> {
            if (failure != null) {
                failed(generation, failure);
            }
            if (callback != null) {
                callBack(callback, metadata, failure);
            }
        };
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

    /** The first frame that fails says why; those behind it fail for the same reason. */
    private void failed(long generation, Exception failure) {
        counters.add(Count.FAILED, 1);
        String why = BrokerRefusal.words(failure);
        synchronized (timer) {
            if (generation > broken) {
                broken = generation;
                counters.fail(why);
                LOG.error("a session ends, and events of its open tick are lost: {}", why);
            }
        }
    }

    /**
     * Ends the session in order, if the end of its tick comes within so many milliseconds, and wipes the keys;
     * where a frame waits for the broker all that time, they are wiped when it has gone or failed.
     *
     * @param waitMillis how long it may take
     * @param first what is done before, while no frame is made
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
        // Who had the lock may have let it go just before.
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
