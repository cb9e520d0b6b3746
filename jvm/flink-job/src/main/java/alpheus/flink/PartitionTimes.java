// One partition's watermark, which a clock that is ahead cannot move.
package alpheus.flink;

import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkOutput;

/**
 * One partition's watermark: the latest time of its frames, less what they may come out of order. Frames
 * whose time lies further ahead of the clock than the skew are dead letters, and never move it.
 */
final class PartitionTimes implements WatermarkGenerator<byte[]> {
    /** The time of a record that is no frame. */
    static final long NONE = Long.MIN_VALUE;

    private final long skewMillis;
    private final long disorderMillis;
    private long latest = NONE;

    PartitionTimes(long skewMillis, long disorderMillis) {
        this.skewMillis = skewMillis;
        this.disorderMillis = disorderMillis;
    }

    @Override
    public void onEvent(byte[] frame, long millis, WatermarkOutput output) {
        if (millis > latest && millis <= System.currentTimeMillis() + skewMillis) {
            latest = millis;
        }
    }

    @Override
    public void onPeriodicEmit(WatermarkOutput output) {
        if (latest != NONE) {
            output.emitWatermark(new Watermark(latest - disorderMillis - 1));
        }
    }
}
