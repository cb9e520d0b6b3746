// Why a schema has no layout.
package alpheus.layout;

import alpheus.AlpheusException;

/** Why a schema has no layout. */
public final class LayoutException extends AlpheusException {
    private static final long serialVersionUID = 1L;

    /** The rule that the schema breaks. */
    public enum Fault {
        /** A worst-case window sum that two words do not hold; the number is the attribute's position. */
        SUM_TOO_LARGE("a window's sum over attribute %d may not fit two words; narrow its bounds, or lower its "
                + "scale or the capacity"),
        /** A vector that the cipher's block counter does not reach through; the number is of its words. */
        TOO_MANY_WORDS("an event would take %d words, at most " + Layout.MOST_WORDS + " fit; use fewer bins");

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
     * The number that the rule speaks of.
     *
     * @return the number
     */
    public int number() {
        return number;
    }
}
