// A tick of a session that is not complete yet.
package alpheus.flink;

import alpheus.stream.Frame;
import alpheus.stream.FrameException;
import alpheus.stream.TickSum;
import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;

/** A tick of a session that is not complete yet. */
final class OpenTick {
    private final long end;
    /** It has no words until a frame is accepted, so a bad frame costs no memory. */
    private TickSum sum;
    private TickMark border;
    private Incomplete trouble;

    OpenTick(long end) {
        this(end, new TickSum(0), null, null);
    }

    private OpenTick(long end, TickSum sum, TickMark border, Incomplete trouble) {
        this.end = end;
        this.sum = sum;
        this.border = border;
        this.trouble = trouble;
    }

    long end() {
        return end;
    }

    long[] words() {
        return sum.words();
    }

    TickMark border() {
        return border;
    }

    void add(Shape shape, Frame frame) throws RefusedException {
        if (frame.words() != shape.words()) {
            trouble = Incomplete.WRONG_LENGTH;
            throw new RefusedException(Refusal.MALFORMED);
        }
        if (frame.previous() < end - shape.tick()) {
            trouble = Incomplete.MISSING_BORDER;
            throw new RefusedException(Refusal.CROSSES_TICK);
        }
        if (!frame.endsTick() && sum.count() >= shape.events()) {
            trouble = Incomplete.OVER_CAPACITY;
            throw new RefusedException(Refusal.OVER_CAPACITY);
        }
        if (sum.words().length == 0) {
            sum = new TickSum(shape.words());
        }
        try {
            sum.add(frame);
        } catch (FrameException impossible) {
            throw new RefusedException(Refusal.MALFORMED);
        }
        if (frame.endsTick()) {
            border = TickMark.of(frame);
        }
    }

    /** Whether every event is there once, and their number is that of the border. */
    boolean completes(Shape shape) {
        return border != null && sum.isComplete(border.session(), end - shape.tick(), end)
                && border.events() == sum.count();
    }

    Incomplete why() {
        if (trouble != null) {
            return trouble;
        }
        if (border == null) {
            return Incomplete.MISSING_BORDER;
        }
        int order = Long.compareUnsigned(sum.count(), border.events());
        return order < 0 ? Incomplete.GAP : order > 0 ? Incomplete.DUPLICATE : Incomplete.BROKEN_CHAIN;
    }

    void write(DataOutput out) throws IOException {
        out.writeLong(end);
        Wire.writeLongs(out, sum.words());
        out.writeLong(sum.count());
        out.writeLong(sum.digest());
        out.writeByte(trouble == null ? -1 : trouble.ordinal());
        out.writeBoolean(border != null);
        if (border != null) {
            border.write(out);
        }
    }

    static OpenTick read(DataInput in) throws IOException {
        long end = in.readLong();
        TickSum sum = new TickSum(Wire.readLongs(in), in.readLong(), in.readLong());
        int trouble = in.readByte();
        TickMark border = in.readBoolean() ? TickMark.read(in) : null;
        return new OpenTick(end, sum, border, trouble < 0 ? null : Incomplete.values()[trouble]);
    }
}
