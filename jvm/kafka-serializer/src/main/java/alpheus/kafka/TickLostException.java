// The events of a tick that are in no frame.
package alpheus.kafka;

import org.apache.kafka.common.KafkaException;

/**
 * The events of a tick are lost: its session was abandoned before the tick's end, or the producer was
 * closed.
 */
public final class TickLostException extends KafkaException {
    private static final long serialVersionUID = 1L;

    TickLostException(String why) {
        super("the events of this tick are lost: its session ended before the tick did"
                + (why.isEmpty() ? "" : "; the last failure was: " + why));
    }
}
