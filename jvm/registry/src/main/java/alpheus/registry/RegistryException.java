// An error of a schema registry.
package alpheus.registry;

import alpheus.AlpheusException;

/** An error of a schema registry. It names subjects and numbers, never a password. */
public final class RegistryException extends AlpheusException {
    private static final long serialVersionUID = 1L;

    /** What went wrong. */
    public enum Fault {
        /** The registry does not answer. */
        UNREACHABLE("the schema registry does not answer at %s; check schema.registry.url, which is one address, or name a file instead"),
        /** The registry does not accept the credentials. */
        UNAUTHORISED("the schema registry rejects this client for %s; check basic.auth.user.info"),
        /** There is no such subject, version or schema. */
        NOT_FOUND("the schema registry has no %s; register the schema first"),
        /** The registry's compatibility rules reject the schema. */
        INCOMPATIBLE("the schema registry rejects the schema as incompatible with %s; choose another subject, or "
                + "change its compatibility level"),
        /** The registry rejects the schema as Avro. */
        INVALID("the schema registry does not accept the schema for %s as Avro"),
        /** The answer does not follow the API. */
        MALFORMED("the server at %s does not speak the Confluent API; check schema.registry.url"),
        /** The schema there has no Alpheus properties, or wrong ones. */
        NO_ALPHEUS_SCHEMA("the schema of %s"),
        /** Alpheus's own compatibility rules reject the schema. */
        CHANGED("the schema cannot follow that of %s"),
        /** The record is not in the wire format. */
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
