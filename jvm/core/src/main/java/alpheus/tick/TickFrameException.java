// Bytes that are not a tick frame.
package alpheus.tick;

import alpheus.AlpheusException;
import alpheus.stream.StreamKeys;

/** Bytes that are not a tick frame. The error contains nothing of them but times and lengths. */
public final class TickFrameException extends AlpheusException {
    private static final long serialVersionUID = 1L;

    /** The rule that the bytes break. */
    public enum Fault {
        /** No bytes. */
        EMPTY("the frame is empty"),
        /** The first byte is not a known version and kind of frame. */
        UNKNOWN_KIND("unknown frame kind 0x%02x, expected 0x20 to 0x24; the sender may run another version"),
        /** The frame ends too early. */
        TRUNCATED("the frame has %d bytes; this kind has at least %d"),
        /** The frame continues after its end. */
        TOO_LONG("the frame has %d bytes; this kind has %d"),
        /** The ciphertext is not a whole number of words. */
        PARTIAL_WORD("the ciphertext has %d bytes, which is not a whole number of 8-byte words"),
        /** The ciphertext is missing. */
        NO_WORDS("the frame has no ciphertext; even an empty tick has a check word"),
        /** There are more words than the cipher supports. */
        TOO_MANY_WORDS("the tick has %d words; the maximum is " + StreamKeys.MAX_WORDS),
        /** The time does not fit the cipher's 52 bits. */
        TIME_BEYOND_LIMIT("the time %s µs is not below 2^52"),
        /** The time that it covers ends before it starts. */
        ORDER("the frame covers no time: it ends at %d µs and starts at %d µs"),
        /** The flag is neither 0 nor 1, or 0 and followed by a session. */
        PREVIOUS_FLAG("the flag of the previous session is %d; expected 1, or 0 with zeros after it"),
        /** The length is not that of the schema. */
        WRONG_LENGTH("the tick has %d words; its schema has %d");

        private final String words;

        Fault(String words) {
            this.words = words;
        }
    }

    private final Fault fault;

    TickFrameException(Fault fault, Object... numbers) {
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
