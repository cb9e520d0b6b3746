// A value that is not a row of the schema.
package alpheus.kafka;

import alpheus.AlpheusException;

/** A value that is not a row of the schema. The error names the attribute, never the value. */
public final class RowException extends AlpheusException {
    private static final long serialVersionUID = 1L;

    /** The rule that the value breaks. */
    public enum Fault {
        /** The reader does not know the type; the name is that of the type. */
        UNKNOWN_TYPE("values of type %s are not supported; send a map, or a JSON object as text or bytes, or name a class in "
                + AlpheusConfig.ROW_READER),
        /** The value is not a JSON object. */
        NOT_AN_OBJECT("the value is not a JSON object%s; send one with the attributes' names"),
        /** The attribute's value is an object or a list. */
        NESTED("`%s` is an object or a list; send a number, a text or a boolean"),
        /** The attribute's value is not a number. */
        NOT_A_NUMBER("`%s` is not a number; send digits such as 12.5, -3 or 1e-9"),
        /** The attribute's value is not a boolean. */
        NOT_A_BOOLEAN("`%s` is not a boolean; send true, false, 1 or 0");

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
     * @param name the attribute or type in the message
     */
    public RowException(Fault fault, String name) {
        super(String.format(fault.words, name));
        this.fault = fault;
    }

    /**
     * The rule that the value breaks.
     *
     * @return the rule
     */
    public Fault fault() {
        return fault;
    }
}
