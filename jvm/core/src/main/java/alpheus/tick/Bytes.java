// Little-endian numbers of a frame.
package alpheus.tick;

import alpheus.stream.EventTime;
import alpheus.tick.TickFrameException.Fault;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/** Reads a frame that is known to be long enough, from its second byte on, and writes one. */
final class Bytes {
    static final VarHandle WORD = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private final ByteBuffer buffer;

    private Bytes(ByteBuffer buffer) {
        this.buffer = buffer.order(ByteOrder.LITTLE_ENDIAN);
    }

    /** Reads what follows the kind of a frame that must have at least this length. */
    static Bytes of(byte[] frame, int least) throws TickFrameException {
        if (frame.length < least) {
            throw new TickFrameException(Fault.TRUNCATED, frame.length, least);
        }
        return new Bytes(ByteBuffer.wrap(frame).position(1));
    }

    long number() {
        return buffer.getLong();
    }

    long time() throws TickFrameException {
        long time = number();
        if (time < 0 || time >= EventTime.LIMIT) {
            throw new TickFrameException(Fault.TIME_BEYOND_LIMIT, Long.toUnsignedString(time));
        }
        return time;
    }

    byte octet() {
        return buffer.get();
    }

    byte[] take(int length) {
        byte[] taken = Arrays.copyOfRange(buffer.array(), buffer.position(), buffer.position() + length);
        buffer.position(buffer.position() + length);
        return taken;
    }

    Root root() {
        ByteBuffer root = ByteBuffer.wrap(take(2 * Long.BYTES));
        return new Root(root.getLong(), root.getLong());
    }

    int position() {
        return buffer.position();
    }
}
