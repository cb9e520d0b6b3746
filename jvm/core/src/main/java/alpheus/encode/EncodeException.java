// An event that cannot be encoded.
package alpheus.encode;

import alpheus.AlpheusException;

/**
 * An event that cannot be encoded. The error names the attribute and what is allowed, never the value, so
 * it can be logged.
 */
public final class EncodeException extends AlpheusException {
    private static final long serialVersionUID = 1L;

    /** The rule that the event breaks. */
    public enum Fault {
        /** A required attribute is missing. */
        MISSING("`%s` is missing and not optional"),
        /** The value does not have the type that the schema declares. */
        WRONG_TYPE("`%s` takes a %s"),
        /** The number is outside its declared bounds. It is never wrapped or clamped. */
        OUT_OF_BOUNDS("`%s` is outside its bounds %s; correct the source or widen the schema's bounds"),
        /** The text is longer than the schema declares. */
        TOO_LONG("`%s` is longer than %s bytes");

        private final String words;

        Fault(String words) {
            this.words = words;
        }
    }

    private final Fault fault;
    private final String attribute;

    EncodeException(Fault fault, String attribute, Object allowed) {
        super(String.format(fault.words, attribute, allowed));
        this.fault = fault;
        this.attribute = attribute;
    }

    /**
     * The rule that the event breaks.
     *
     * @return the rule
     */
    public Fault fault() {
        return fault;
    }

    /**
     * The attribute.
     *
     * @return its name
     */
    public String attribute() {
        return attribute;
    }
}
