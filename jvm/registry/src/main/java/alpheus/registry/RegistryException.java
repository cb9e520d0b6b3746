// Why a registry did not give or take a schema.
package alpheus.registry;

import alpheus.AlpheusException;

/** Why a registry did not give or take a schema. It names subjects and numbers, never a password. */
public final class RegistryException extends AlpheusException {
    private static final long serialVersionUID = 1L;

    /** What went wrong. */
    public enum Fault {
        /** No answer. */
        UNREACHABLE("the schema registry does not answer at %s; check schema.registry.url, which is one address, or name a file instead"),
        /** The registry wants another identity. */
        UNAUTHORISED("the schema registry refuses this client for %s; check basic.auth.user.info"),
        /** There is no such subject, version or schema. */
        NOT_FOUND("the schema registry has no %s; register the schema first"),
        /** The registry's own rules of Avro refuse the schema. */
        INCOMPATIBLE("the schema registry finds the schema incompatible with what %s has; choose another subject, or "
                + "change its compatibility level"),
        /** The registry does not take the schema as Avro. */
        INVALID("the schema registry does not take the schema for %s as Avro"),
        /** The answer is none that the API knows. */
        MALFORMED("what answers at %s does not speak the Confluent API; check schema.registry.url"),
        /** The schema there has no Alpheus properties, or wrong ones. */
        NO_ALPHEUS_SCHEMA("the schema of %s"),
        /** Alpheus's own rules of change refuse the schema. */
        CHANGED("the schema does not follow what %s"),
        /** No record in the wire format. */
        NO_WIRE_FORMAT("the record is not in a registry's wire format: %s"),
        /** The record's schema is not that of encrypted events. */
        OTHER_SCHEMA("the record's schema is number %s, which is not that of encrypted events");

        private final String words;

        Fault(String words) {
            this.words = words;
        }
    }

    private final Fault fault;

    RegistryException(Fault fault, String detail) {
        super(String.format(fault.words, detail));
        this.fault = fault;
    }

    /**
     * What went wrong.
     *
     * @return the fault
     */
    public Fault fault() {
        return fault;
    }
}
