// Why a producer refuses.
package alpheus.stream;

import alpheus.AlpheusException;

/** Why a producer refuses. It holds times and limits, never a value of an event. */
public final class ProducerException extends AlpheusException {
    private static final long serialVersionUID = 1L;

    /** The rule that the request breaks. Nothing was encrypted for it. */
    public enum Fault {
        /** A border or session asked for between ticks. */
        NOT_A_TICK("%d µs is no multiple of the tick of %d µs"),
        /** No border after it would fit in 52 bits. */
        BEYOND_LIMIT("%d µs leaves no room below 2^52; check the clock and its unit"),
        /** Only a stream without any session may be back-dated. */
        NOT_THE_FIRST("this stream has had a session; open with `Start.Again`"),
        /** Earlier than the next tick of the producer's clock. */
        BACK_DATED("%d µs is before the next tick of the clock, %d µs"),
        /** Equal, repeated or backward: it would use a pad again or send the plaintext in the clear. */
        NOT_ASCENDING("%d µs is not after %d µs, the session's last; give an equal time the next free "
                + "microsecond, and after a clock that stepped back open a new session"),
        /** A data event on a tick, where only a border stands. */
        ON_A_TICK("%d µs is a tick, where only a border stands; use the next microsecond"),
        /** So far ahead that the clock has rather jumped. */
        JUMPED_AHEAD("%d ticks passed without an event, over the limit of %d: open a new session if the clock "
                + "jumped, `advance` if the stream was silent"),
        /** No word, or more than a block number can count. */
        WORDS("an event of %d words cannot be encrypted; it has 1 to " + StreamKeys.MOST_WORDS),
        /** No time lies strictly between two ticks, or a session would hold a whole day between two others. */
        TICK("a tick of %d µs cannot be; it is 2 µs to a day, 86400000000 µs"),
        /** Every state is used once. */
        ENDED("this session has ended, or its producer is online; open another");

        private final String words;

        Fault(String words) {
            this.words = words;
        }
    }

    private final Fault fault;

    ProducerException(Fault fault, Object... numbers) {
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
