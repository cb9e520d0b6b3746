// A complete tick's border, as the controller checks it.
package alpheus.flink;

import alpheus.stream.Frame;
import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.nio.ByteBuffer;

/**
 * A tick's border, as the controller checks it.
 *
 * @param session the session
 * @param end the time of the border
 * @param closing whether the session closed here
 * @param events number of data events of the tick, from the border
 * @param tagHigh first half of the border's MAC
 * @param tagLow second half
 */
record TickMark(long session, long end, boolean closing, long events, long tagHigh, long tagLow) {
    /** The size of a mark in a message. */
    static final int LENGTH = 5 * Long.BYTES + 1;

    static TickMark of(Frame frame) {
        ByteBuffer tag = ByteBuffer.wrap(frame.tag());
        boolean closing = frame.kind() == Frame.Kind.CLOSING;
        return new TickMark(frame.session(), frame.time(), closing, frame.count(), tag.getLong(), tag.getLong());
    }

    void write(DataOutput out) throws IOException {
        out.writeLong(session);
        out.writeLong(end);
        out.writeBoolean(closing);
        out.writeLong(events);
        out.writeLong(tagHigh);
        out.writeLong(tagLow);
    }

    static TickMark read(DataInput in) throws IOException {
        return new TickMark(
                in.readLong(), in.readLong(), in.readBoolean(), in.readLong(), in.readLong(), in.readLong());
    }
}
