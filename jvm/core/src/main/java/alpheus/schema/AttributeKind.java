// The values of an attribute.
package alpheus.schema;

/** The kind of values of an attribute. */
public sealed interface AttributeKind {
    /**
     * A fixed-point number: the integer value × 10^scale in min..=max.
     *
     * @param scale decimal places
     * @param min minimum scaled value
     * @param max maximum scaled value
     */
    record Numeric(int scale, long min, long max) implements AttributeKind {}

    /** True or false. */
    record Truth() implements AttributeKind {}

    /**
     * Text, which only sketches support.
     *
     * @param maxBytes the longest value in bytes
     */
    record Text(int maxBytes) implements AttributeKind {}
}
