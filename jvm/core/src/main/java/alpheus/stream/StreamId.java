// One person's one stream.
package alpheus.stream;

/** One person's one stream: 16 bytes, random or a hash, so that it names nobody. The key of its records. */
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
