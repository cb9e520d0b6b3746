// The start of a Merkle root, as it is on the wire.
package alpheus.tick;

/**
 * The first 16 bytes of the root of a session's sum, as two big-endian numbers. Finding another sum with
 * the same bytes takes about 2^128 hashes.
 *
 * @param high the first eight bytes
 * @param low the last eight
 */
public record Root(long high, long low) {
    /** Of an opening. */
    public static final Root NONE = new Root(0, 0);
}
