// Why a value is no row of the schema.
package alpheus.kafka;

import alpheus.AlpheusException;

/** Why a value is no row of the schema. It names the attribute, never the value. */
public final class RowException extends AlpheusException {
    private static final long serialVersionUID = 1L;

    /** The rule that the value breaks. */
    public enum Fault {
        /** Of a type that the reader does not know; the name is the type's. */
        UNKNOWN_TYPE("values of %s are not read; send a map, or a JSON object as text or bytes, or name a class in "
                + AlpheusConfig.ROW_READER),
        /** No JSON object. */
        NOT_AN_OBJECT("the value is no JSON object%s; send one with the attributes' names"),
        /** The attribute's value has parts. */
        NESTED("`%s` is an object or a list; send a number, a text or a truth value"),
        /** The attribute's value is no number. */
        NOT_A_NUMBER("`%s` is no number; send digits such as 12.5, -3 or 1e-9"),
        /** The attribute's value is no truth value. */
        NOT_A_BOOLEAN("`%s` is no truth value; send true, false, 1 or 0");

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
     * @param name what it speaks of: an attribute or a type
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
