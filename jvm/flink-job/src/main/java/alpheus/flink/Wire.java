// The elements of messages and state: big-endian numbers, lists after their length.
package alpheus.flink;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;

/** The elements of messages and state. */
final class Wire {
    /** The maximum number of elements of a list. Invalid bytes must not allocate more. */
    private static final int MAX = 1 << 20;
    private static final int MAX_BYTES = 1 << 26;

    private Wire() {}

    static void writeLongs(DataOutput out, long[] longs) throws IOException {
        out.writeInt(longs.length);
        for (long each : longs) {
            out.writeLong(each);
        }
    }

    static long[] readLongs(DataInput in) throws IOException {
        long[] longs = new long[length(in)];
        for (int i = 0; i < longs.length; i++) {
            longs[i] = in.readLong();
        }
        return longs;
    }

    static void writeBytes(DataOutput out, byte[] bytes) throws IOException {
        out.writeInt(bytes.length);
        out.write(bytes);
    }

    static byte[] readBytes(DataInput in) throws IOException {
        byte[] bytes = new byte[length(in, MAX_BYTES)];
        in.readFully(bytes);
        return bytes;
    }

    /** A length that no message of ours exceeds. */
    static int length(DataInput in) throws IOException {
        return length(in, MAX);
    }

    private static int length(DataInput in, int most) throws IOException {
        int length = in.readInt();
        if (length < 0 || length > most) {
            throw new IOException("the length " + length + " is out of range");
        }
        return length;
    }
}
