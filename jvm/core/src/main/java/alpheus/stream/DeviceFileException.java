// A device's file that cannot be used.
package alpheus.stream;

import alpheus.AlpheusException;

/** A device's file that cannot be used. The error contains nothing of the file but its format number. */
public final class DeviceFileException extends AlpheusException {
    private static final long serialVersionUID = 1L;

    /** The rule that the file breaks. */
    public enum Fault {
        /** The text is not a device's file. */
        NOT_A_DEVICE_FILE("it is not a device's file; use the one that `alpheus owner add` wrote"),
        /** Its format is not one that this version reads. */
        OTHER_FORMAT("the device's file has format %d, but this version reads format 1: use the version that "
                + "wrote it, or recreate the stream with `alpheus owner add`"),
        /** The file was created for another schema. */
        OTHER_SCHEMA("it was created for another schema, or another version of it; use the schema that "
            + "`alpheus owner add` used"),
        /** The secret is not 64 hexadecimal digits. */
        BAD_SECRET("the secret is not 64 hexadecimal digits; restore the file, or recreate the stream with "
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
