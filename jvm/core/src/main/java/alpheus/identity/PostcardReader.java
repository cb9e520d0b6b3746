// Reads what Rust wrote as postcard.
package alpheus.identity;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;

/** Reads postcard: numbers in seven bits a byte, and lengths before what they count. */
final class PostcardReader {
    private static final int SEVEN = 7;

    private final ByteBuffer in;

    PostcardReader(byte[] bytes) {
        this.in = ByteBuffer.wrap(bytes);
    }

    /** A number of up to 64 bits. */
    long number() {
        long value = 0;
        for (int shift = 0; shift < Long.SIZE; shift += SEVEN) {
            byte next = in.get();
            value |= (long) (next & 0x7f) << shift;
            if (next >= 0) {
                return value;
            }
        }
        throw new BufferUnderflowException();
    }

    byte[] raw(int length) {
        byte[] bytes = new byte[length];
        in.get(bytes);
        return bytes;
    }

    byte[] bytes() {
        long length = number();
        if (length < 0 || length > in.remaining()) {
            throw new BufferUnderflowException();
        }
        return raw((int) length);
    }

    /** Whether an option is there. */
    boolean some() {
        byte flag = in.get();
        if (flag != 0 && flag != 1) {
            throw new BufferUnderflowException();
        }
        return flag == 1;
    }

    boolean isAtEnd() {
        return !in.hasRemaining();
    }
}
