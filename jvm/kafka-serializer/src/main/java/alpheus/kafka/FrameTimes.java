// What a record says of a frame of ours: its time and kind.
package alpheus.kafka;

import alpheus.stream.EventTime;
import alpheus.stream.Frame;
import alpheus.stream.FrameException;

/** What a record says of a frame of ours. */
final class FrameTimes {
    private FrameTimes() {}

    /** The time of a frame of ours, in milliseconds. */
    static long millis(byte[] frame) {
        return parse(frame).time() / EventTime.MILLISECOND;
    }

    /** Its kind. */
    static Frame.Kind kind(byte[] frame) {
        return parse(frame).kind();
    }

    private static Frame parse(byte[] frame) {
        try {
            return Frame.parse(frame);
        } catch (FrameException impossible) {
            throw new IllegalStateException("a session makes frames", impossible);
        }
    }
}
