// The Rust implementation's serialization: postcard 1.x.
package alpheus.schema;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** Writes postcard: numbers as variable-length integers, signed ones zigzag, lists after their length. */
final class Postcard {
    private final ByteArrayOutputStream out = new ByteArrayOutputStream();

    /** Writes one item. */
    @FunctionalInterface
    interface Writer<T> {
        void write(T item);
    }

    byte[] bytes() {
        return out.toByteArray();
    }

    Postcard octet(int value) {
        out.write(value);
        return this;
    }

    Postcard bool(boolean value) {
        return octet(value ? 1 : 0);
    }

    /** An unsigned number of 16 to 64 bits, or the number of an enumeration's variant. */
    Postcard unsigned(long value) {
        long rest = value;
        while ((rest & ~0x7fL) != 0) {
            out.write((int) (rest & 0x7f) | 0x80);
            rest >>>= 7;
        }
        out.write((int) rest);
        return this;
    }

    Postcard signed(long value) {
        return unsigned((value << 1) ^ (value >> 63));
    }

    Postcard text(String value) {
        byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
        unsigned(bytes.length);
        out.writeBytes(bytes);
        return this;
    }

    Postcard raw(byte[] bytes) {
        out.writeBytes(bytes);
        return this;
    }

    <T> Postcard list(List<T> items, Writer<T> writer) {
        unsigned(items.size());
        items.forEach(writer::write);
        return this;
    }
}
