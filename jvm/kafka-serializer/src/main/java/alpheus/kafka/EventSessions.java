// Sessions with a frame for each event, and one at each tick.
package alpheus.kafka;

import alpheus.AlpheusException;
import alpheus.stream.Producer;
import alpheus.stream.ProducerException;
import alpheus.stream.Session;
import alpheus.stream.Start;
import alpheus.stream.StreamId;
import java.util.function.Consumer;
import java.util.random.RandomGenerator;

/** Sessions with a frame for each event, and one at each tick. */
record EventSessions(Producer producer, long tick, RandomGenerator random) implements Sessions {
    /** The maximum number of borders made at once. After a long sleep there may be more than fit in memory. */
    static final int PIECE = 256;

    @Override
    public StreamId stream() {
        return producer.stream();
    }

    @Override
    public boolean hasFramePerEvent() {
        return true;
    }

    @Override
    public Running open(long now, Consumer<byte[]> sink) throws ProducerException {
        return new EventSession(
                producer.open(new Start.Again(now), producer.nextTick(now), random, sink), tick);
    }

    @Override
    public void close() {
        producer.close();
    }

    private record EventSession(Session session, long tick) implements Running {
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
        public void event(long t, Session.Encoding encoding) throws AlpheusException {
            session.event(t, encoding);
        }

        @Override
        public void advance(long until) throws ProducerException {
            session.advance(Math.min(until, session.nextBorder() + (PIECE - 1) * tick));
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
