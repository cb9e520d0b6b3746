// Time and kind of a frame in a record.
package alpheus.kafka;

import alpheus.stream.EventTime;
import alpheus.stream.Frame;
import alpheus.stream.FrameException;

/** Time and kind of a frame in a record. */
final class FrameTimes {
    private FrameTimes() {}

    /** The time of a frame, in milliseconds. */
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
            throw new IllegalStateException("a session creates valid frames", impossible);
        }
    }
}
