// The values of an attribute.
package alpheus.schema;

/** What values an attribute takes. */
public sealed interface AttributeKind {
    /**
     * A fixed-point number: the integer value × 10^scale in min..=max.
     *
     * @param scale decimal places
     * @param min least scaled value
     * @param max greatest scaled value
     */
    record Numeric(int scale, long min, long max) implements AttributeKind {}

    /** True or false. */
    record Truth() implements AttributeKind {}

    /**
     * Text; only sketches take it.
     *
     * @param maxBytes the longest value in bytes
     */
    record Text(int maxBytes) implements AttributeKind {}
}
