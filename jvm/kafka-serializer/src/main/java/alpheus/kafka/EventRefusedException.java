// An event that cannot be sent now.
package alpheus.kafka;

import alpheus.AlpheusException;

/** An event that cannot be sent now. */
public final class EventRefusedException extends AlpheusException {
    private static final long serialVersionUID = 1L;

    /** The rule that the record breaks. */
    public enum Fault {
        /** It is too late. */
        LATE("its timestamp is not after the last event's, or is before the session opened: with "
                + "alpheus.time=record events must be in order of time, and at most alpheus.lateness.ms late"),
        /** It is too early. */
        AHEAD("its timestamp is further ahead of this machine's clock than alpheus.skew.ms allows; check which clock "
                + "stamped it"),
        /** The record has no value. */
        NO_VALUE("a record without a value cannot be encrypted; a topic of events cannot have tombstones"),
        /** Another topic than the stream's. */
        OTHER_TOPIC("a stream has one topic; send to the topic of the first record, or create another producer with "
            + "its own device's file"),
        /** The application chose a partition. */
        PARTITION("the id of a stream decides its partition, so that its events stay together; do not set a partition");

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
