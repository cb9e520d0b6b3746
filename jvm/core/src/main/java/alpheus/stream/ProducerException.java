// An error of a producer.
package alpheus.stream;

import alpheus.AlpheusException;

/** An error of a producer. It contains times and limits, never a value of an event. */
public final class ProducerException extends AlpheusException {
    private static final long serialVersionUID = 1L;

    /** The rule that the request breaks. Nothing was encrypted for it. */
    public enum Fault {
        /** A border or session was requested between ticks. */
        NOT_A_TICK("%d µs is not a multiple of the tick of %d µs"),
        /** No border after this time would fit in 52 bits. */
        BEYOND_LIMIT("%d µs leaves no room below 2^52; check the clock and its unit"),
        /** Only a stream without any session may be back-dated. */
        NOT_THE_FIRST("this stream already had a session; open it with `Start.Again`"),
        /** Earlier than the next tick of the producer's clock. */
        BACK_DATED("%d µs is before the next tick of the clock, %d µs"),
        /** The time is equal or earlier: it would reuse a pad or send plaintext. */
        NOT_ASCENDING("%d µs is not after %d µs, the session's last; give an equal time the next free "
                + "microsecond, and after a clock that stepped back open a new session"),
        /** A data event at a tick, which is for borders only. */
        ON_A_TICK("%d µs is a tick, which only a border may have; use the next microsecond"),
        /** The event is of a later tick than the open one. */
        TICK_OVER("%d µs is after the end of the open tick, %d µs; call `advance` first"),
        /** So far ahead that the clock has probably jumped. */
        JUMPED_AHEAD("%d ticks passed at once, over the limit of %d: the clock jumped, or the device slept for very "
                + "long; open a new session, or call `advance` in parts if the stream was silent"),
        /** The number of words is out of range. */
        WORDS("an event of %d words cannot be encrypted; it must have 1 to " + StreamKeys.MAX_WORDS),
        /** The tick is out of range. */
        TICK("a tick of %d µs is not allowed; it must be 2 µs to one day, 86400000000 µs"),
        /** The session or producer was used already. */
        ENDED("this session has ended, or its producer is online; open another");

        private final String words;

        Fault(String words) {
            this.words = words;
        }
    }

    private final Fault fault;

    /**
     * A refusal.
     *
     * @param fault the rule
     * @param numbers the times and limits that its words name
     */
    public ProducerException(Fault fault, Object... numbers) {
        super(String.format(fault.words, numbers));
        this.fault = fault;
    }

    /**
     * The rule that the request breaks.
     *
     * @return the rule
     */
    public Fault fault() {
        return fault;
    }
}
