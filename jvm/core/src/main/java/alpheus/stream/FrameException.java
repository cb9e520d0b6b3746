// Bytes that are not a frame.
package alpheus.stream;

import alpheus.AlpheusException;

/** Bytes that are not a frame. The error contains nothing of them but times and lengths. */
public final class FrameException extends AlpheusException {
    private static final long serialVersionUID = 1L;

    /** The rule that the bytes break. */
    public enum Fault {
        /** No bytes. */
        EMPTY("the frame is empty"),
        /** The first byte is not a known version and kind of frame. */
        UNKNOWN_KIND("unknown frame kind %d, expected 16 to 19; the sender may run a newer version"),
        /** The frame ends within its header. */
        TRUNCATED("the frame ends after %d bytes, within its header of %d bytes"),
        /** An opening frame continues after its MAC. */
        TRAILING_BYTES("%d bytes follow an opening frame, which has no ciphertext"),
        /** The ciphertext is not a whole number of words. */
        PARTIAL_WORD("the ciphertext has %d bytes, which is not a whole number of 8-byte words"),
        /** The ciphertext is missing. */
        NO_WORDS("the frame has no ciphertext; even an empty event has a check word"),
        /** There are more words than the cipher supports. */
        TOO_MANY_WORDS("the event has %d words; the maximum is " + StreamKeys.MAX_WORDS),
        /** The time does not fit the cipher's 52 bits. */
        TIME_BEYOND_LIMIT("the time %d µs is not below 2^52"),
        /** The event is not after its predecessor. */
        TIMES_NOT_ASCENDING("the event's time %d µs is not after its predecessor's, %d µs"),
        /** The length is not that of the schema. */
        WRONG_LENGTH("the event has %d words; its schema has %d");

        private final String words;

        Fault(String words) {
            this.words = words;
        }
    }

    private final Fault fault;

    FrameException(Fault fault, Object... numbers) {
        super(String.format(fault.words, numbers));
        this.fault = fault;
    }

    /**
     * The rule that the bytes break.
     *
     * @return the rule
     */
    public Fault fault() {
        return fault;
    }
}
