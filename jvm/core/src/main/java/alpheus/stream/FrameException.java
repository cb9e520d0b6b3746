// Why bytes are no frame.
package alpheus.stream;

import alpheus.AlpheusException;

/** Why bytes are no frame. Nothing of their content is in it but times and lengths. */
public final class FrameException extends AlpheusException {
    private static final long serialVersionUID = 1L;

    /** The rule that the bytes break. */
    public enum Fault {
        /** No bytes. */
        EMPTY("the frame is empty"),
        /** The first byte names no version and kind of frame that we know. */
        UNKNOWN_KIND("the frame's first byte is %d, not one of 16 to 19; is its writer newer?"),
        /** It ends within its head. */
        TRUNCATED("the frame ends after %d bytes; its head alone has %d"),
        /** An opening frame goes on after its MAC. */
        TRAILING_BYTES("%d bytes follow an opening frame, which has no ciphertext"),
        /** The ciphertext is not a whole number of words. */
        PARTIAL_WORD("the ciphertext's %d bytes are not a whole number of 8-byte words"),
        /** There is no ciphertext where there must be. */
        NO_WORDS("the frame has no ciphertext; even an empty event has its check word"),
        /** There are more words than the cipher can tell apart. */
        TOO_MANY_WORDS("%d words are more than the " + StreamKeys.MOST_WORDS + " that an event can have"),
        /** The time does not fit the cipher's 52 bits. */
        TIME_BEYOND_LIMIT("the time %d µs is not below 2^52"),
        /** The event does not come after the one that it follows. */
        TIMES_NOT_ASCENDING("the time %d µs is not after %d µs, which it follows"),
        /** The vector has another length than the schema's. */
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
