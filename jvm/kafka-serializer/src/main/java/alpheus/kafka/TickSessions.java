// Sessions with one frame a tick.
package alpheus.kafka;

import alpheus.AlpheusException;
import alpheus.stream.ProducerException;
import alpheus.stream.Session.Encoding;
import alpheus.stream.Start;
import alpheus.stream.StreamId;
import alpheus.tick.Previous;
import alpheus.tick.TickProducer;
import alpheus.tick.TickSession;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.random.RandomGenerator;

/**
 * Sessions with one frame a tick. It remembers the last session of this process, which the next one's
 * opening names.
 */
final class TickSessions implements Sessions {
    /**
     * A process that is later than this many ticks was asleep: it sends one frame for that time, which
     * shows that it counted no event. A shorter delay, as of a busy machine, shows nothing.
     */
    static final int LONGEST_DELAY = 8;

    private final TickProducer producer;
    private final long tick;
    private final RandomGenerator random;
    private TickSession last;

    TickSessions(TickProducer producer, long tick, RandomGenerator random) {
        this.producer = producer;
        this.tick = tick;
        this.random = random;
    }

    @Override
    public StreamId stream() {
        return producer.stream();
    }

    @Override
    public boolean hasFramePerEvent() {
        return false;
    }

    @Override
    public Running open(long now, Consumer<byte[]> sink) throws ProducerException {
        Optional<Previous> previous = Optional.ofNullable(last).map(TickSession::reached);
        last = producer.open(new Start.Again(now), producer.nextTick(now), previous, random, sink);
        return new Ticking(last, tick);
    }

    @Override
    public void close() {
        producer.close();
    }

    private record Ticking(TickSession session, long tick) implements Running {
        @Override
        public long last() {
            return session.last();
        }

        @Override
        public long nextBorder() {
            return session.nextBorder();
        }

        @Override
        public long unclosed() {
            return session.unclosed();
        }

        @Override
        public void event(long t, Encoding encoding) throws AlpheusException {
            session.event(t, encoding);
        }

        @Override
        public void advance(long until) throws ProducerException {
            if (until >= session.nextBorder() + LONGEST_DELAY * tick) {
                session.sleepUntil(until);
            } else {
                session.advance(until);
            }
        }

        @Override
        public void close(long at) throws ProducerException {
            session.close(at);
        }

        @Override
        public void abandon() {
            session.abandon();
        }
    }
}
