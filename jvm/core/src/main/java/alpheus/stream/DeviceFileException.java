// Why a device's file cannot be used.
package alpheus.stream;

import alpheus.AlpheusException;

/** Why a device's file cannot be used. Nothing of it is said but its format's number. */
public final class DeviceFileException extends AlpheusException {
    private static final long serialVersionUID = 1L;

    /** The rule that the file breaks. */
    public enum Fault {
        /** The text is none. */
        NOT_A_DEVICE_FILE("it is not a device's file; take the one that `alpheus owner add` wrote"),
        /** It is of a format that this version does not read. */
        OTHER_FORMAT("the device's file has format %d, and this version reads format 1: use the version that "
                + "wrote it, or make the stream anew with `alpheus owner add`"),
        /** It was made for another schema. */
        OTHER_SCHEMA("it is of another schema, or another version of it; give the schema that `alpheus owner "
                + "add` was given"),
        /** The secret is not 64 hexadecimal digits. */
        BAD_SECRET("the secret is not 64 hexadecimal digits; restore the file, or make the stream anew with "
                + "`alpheus owner add`");

        private final String words;

        Fault(String words) {
            this.words = words;
        }
    }

    private final Fault fault;

    DeviceFileException(Fault fault, Object... numbers) {
        super(String.format(fault.words, numbers));
        this.fault = fault;
    }

    /**
     * The rule that the file breaks.
     *
     * @return the rule
     */
    public Fault fault() {
        return fault;
    }
}
