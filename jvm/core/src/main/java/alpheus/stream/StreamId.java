// The id of a stream.
package alpheus.stream;

/**
 * The id of one stream of one person: 16 bytes, random or a hash, so it identifies nobody. It is the key of
 * the stream's records.
 */
public final class StreamId extends Identifier {
    /** Bytes of an id. */
    public static final int LENGTH = 16;

    /**
     * Of bytes.
     *
     * @param bytes {@link #LENGTH} of them
     */
    public StreamId(byte[] bytes) {
        super(bytes, LENGTH);
    }

    /**
     * Of hexadecimal digits.
     *
     * @param hex the digits
     * @return the id
     * @throws IllegalArgumentException if it is no such text
     */
    public static StreamId parse(String hex) {
        return new StreamId(parse(hex, LENGTH));
    }
}
