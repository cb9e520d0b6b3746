// What the sender must know of its own frames.
package alpheus.kafka;

import alpheus.stream.EventTime;
import alpheus.stream.Frame;
import alpheus.stream.FrameException;
import alpheus.tick.TickFrame;
import alpheus.tick.TickFrameException;

/** What the sender must know of its own frames. */
final class FrameTimes {
    private FrameTimes() {}

    /** The time of a frame, in milliseconds. */
    static long millis(byte[] frame) {
        return micros(frame) / EventTime.MILLISECOND;
    }

    private static long micros(byte[] frame) {
        try {
            return TickFrame.isOne(frame) ? tick(frame).claim().to() : Frame.parse(frame).time();
        } catch (FrameException impossible) {
            throw new IllegalStateException("a session creates valid frames", impossible);
        }
    }

    /** Whether it opens a session. */
    static boolean opens(byte[] frame) {
        try {
            return !TickFrame.isOne(frame) && Frame.parse(frame).kind() == Frame.Kind.OPENING;
        } catch (FrameException impossible) {
            throw new IllegalStateException("a session creates valid frames", impossible);
        }
    }

    /** Whether it holds the sum of a tick's events. */
    static boolean sumsTick(byte[] frame) {
        return TickFrame.isOne(frame) && tick(frame).words() > 0;
    }

    private static TickFrame tick(byte[] frame) {
        try {
            // The tick does not matter for the frame's end.
            return TickFrame.parse(frame, 1);
        } catch (TickFrameException impossible) {
            throw new IllegalStateException("a session creates valid frames", impossible);
        }
    }
}
