// Why an event cannot be sent now.
package alpheus.kafka;

import alpheus.AlpheusException;

/** Why an event cannot be sent now. */
public final class EventRefusedException extends AlpheusException {
    private static final long serialVersionUID = 1L;

    /** The rule that the record breaks. */
    public enum Fault {
        /** Its time is over. */
        LATE("its timestamp is not after the last event's, or before the session was opened: with "
                + "alpheus.time=record events come in the order of their times, and at most alpheus.lateness.ms late"),
        /** Its time is yet to come. */
        AHEAD("its timestamp lies further ahead of this machine's clock than alpheus.skew.ms allows; see which clock "
                + "stamped it"),
        /** No event. */
        NO_VALUE("a record without a value cannot be encrypted; tombstones have no place in a topic of events"),
        /** Another topic than the stream's. */
        OTHER_TOPIC("a stream is in one topic; send to the first record's topic, or make another producer with a "
                + "device's file of its own"),
        /** A partition of the application's choice. */
        PARTITION("a stream is in the partition of its id, so that its events stay together; name no partition");

        private final String words;

        Fault(String words) {
            this.words = words;
        }
    }

    private final Fault fault;

    EventRefusedException(Fault fault) {
        super(fault.words);
        this.fault = fault;
    }

    /**
     * The rule that the record breaks.
     *
     * @return the rule
     */
    public Fault fault() {
        return fault;
    }
}
