// The id of a schema.
package alpheus.stream;

/** A schema: the hash of its resolved content. */
public final class SchemaId extends Identifier {
    /** Bytes of an id. */
    public static final int LENGTH = 32;

    /**
     * Of bytes.
     *
     * @param bytes {@link #LENGTH} of them
     */
    public SchemaId(byte[] bytes) {
        super(bytes, LENGTH);
    }

    /**
     * Of hexadecimal digits.
     *
     * @param hex the digits
     * @return the id
     * @throws IllegalArgumentException if it is no such text
     */
    public static SchemaId parse(String hex) {
        return new SchemaId(parse(hex, LENGTH));
    }
}
