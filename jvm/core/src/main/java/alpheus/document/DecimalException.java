// A text that is not a scaled integer.
package alpheus.document;

import alpheus.AlpheusException;

/** A text that is not a scaled integer. The error never contains the text. */
public final class DecimalException extends AlpheusException {
    private static final long serialVersionUID = 1L;

    /** The rule that the text breaks. */
    public enum Fault {
        /** The text is empty. */
        EMPTY("the number is empty; leave the field out, or write digits such as 12.5"),
        /** A character that is not part of a number. */
        MALFORMED("not a number at character %d; write digits such as 12.5, -3 or 1e-9"),
        /** The scaled integer does not fit 64 bits. */
        TOO_LARGE("the number times 10^%d does not fit 64 bits; use a smaller scale or unit"),
        /** Digits beyond the scale, where rounding is not allowed. */
        TOO_FINE("the number has more than %d decimal places; round it, or raise the scale");

        private final String words;

        Fault(String words) {
            this.words = words;
        }
    }

    private final Fault fault;

    DecimalException(Fault fault, int number) {
        super(String.format(fault.words, number));
        this.fault = fault;
    }

    /**
     * The rule that the text breaks.
     *
     * @return the rule
     */
    public Fault fault() {
        return fault;
    }
}
