// Sessions of one stream, as its schema wants its frames.
package alpheus.kafka;

import alpheus.AlpheusException;
import alpheus.stream.ProducerException;
import alpheus.stream.Session.Encoding;
import alpheus.stream.StreamId;
import java.util.function.Consumer;

/** Sessions of one stream, as its schema wants its frames. One runs at a time. */
interface Sessions extends AutoCloseable {
    /** The stream. */
    StreamId stream();

    /** Whether each event has a frame; otherwise each tick has. */
    boolean hasFramePerEvent();

    /** Opens a session at the first tick from now on. The sink takes its frames, in order. */
    Running open(long now, Consumer<byte[]> sink) throws ProducerException;

    /** Wipes the keys. */
    @Override
    void close();

    /** A session that is online. */
    interface Running {
        /** Time of the last event or border. */
        long last();

        /** The time of the next border. */
        long nextBorder();

        /** Events of the open tick. */
        long unclosed();

        /** Adds an event. If it has a frame, those of all borders before it come first. */
        void event(long t, Encoding encoding) throws AlpheusException;

        /** Makes frames of borders up to a time, but not more than fit in memory. */
        void advance(long until) throws ProducerException;

        /** Ends the session properly at a tick. */
        void close(long at) throws ProducerException;

        /** Drops the session. */
        void abandon();
    }
}
