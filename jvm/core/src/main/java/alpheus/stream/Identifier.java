// Ids of streams and schemas: bytes on the wire, hexadecimal for people.
package alpheus.stream;

import java.util.Arrays;
import java.util.HexFormat;

/** A public id of fixed length: bytes on the wire, hexadecimal for people. */
public abstract class Identifier {
    private final byte[] bytes;

    Identifier(byte[] bytes, int length) {
        if (bytes.length != length) {
            throw new IllegalArgumentException("an id of " + length + " bytes is expected");
        }
        this.bytes = bytes.clone();
    }

    static byte[] parse(String hex, int length) {
        if (hex.length() != 2 * length) {
            throw new IllegalArgumentException("an id of " + 2 * length + " hexadecimal digits is expected");
        }
        return HexFormat.of().parseHex(hex);
    }

    /**
     * Its bytes.
     *
     * @return a copy
     */
    public final byte[] bytes() {
        return bytes.clone();
    }

    @Override
    public final boolean equals(Object other) {
        return other != null && other.getClass() == getClass() && Arrays.equals(bytes, ((Identifier) other).bytes);
    }

    @Override
    public final int hashCode() {
        return Arrays.hashCode(bytes);
    }

    @Override
    public final String toString() {
        return HexFormat.of().formatHex(bytes);
    }
}
