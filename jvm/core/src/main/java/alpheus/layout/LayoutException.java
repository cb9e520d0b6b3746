// A schema without a layout.
package alpheus.layout;

import alpheus.AlpheusException;

/** A schema without a layout. */
public final class LayoutException extends AlpheusException {
    private static final long serialVersionUID = 1L;

    /** The rule that the schema breaks. */
    public enum Fault {
        /** A worst-case window sum that does not fit in two words; the number is the attribute's position. */
        SUM_TOO_LARGE("the sum of attribute %d over a window may not fit in two 64-bit words; narrow its bounds, or lower its "
                + "scale or the capacity"),
        /** A vector that is too long for the cipher's block counter; the number is its length in words. */
        TOO_MANY_WORDS("an event would take %d words, at most " + Layout.MAX_WORDS + " fit; use fewer bins");

        private final String words;

        Fault(String words) {
            this.words = words;
        }
    }

    private final Fault fault;
    private final int number;

    LayoutException(Fault fault, int number) {
        super(String.format(fault.words, number));
        this.fault = fault;
        this.number = number;
    }

    /**
     * The rule that the schema breaks.
     *
     * @return the rule
     */
    public Fault fault() {
        return fault;
    }

    /**
     * The number in the message.
     *
     * @return the number
     */
    public int number() {
        return number;
    }
}
