// The watermark of one partition. Neither a fast clock nor silence can stall it.
package alpheus.flink;

import java.util.function.LongSupplier;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkOutput;

/**
 * The watermark of one partition: the latest time of its frames, minus the allowed disorder, and never
 * beyond the clock. Frames further ahead of the clock than the skew are dead letters and never move it.
 *
 * <p>A partition is idle if nothing moves its watermark for a while. It then does not delay others. Flink's
 * own idleness ends with any record, including dead letters, so one device with a fast clock would stop
 * event time for everybody.
 */
final class PartitionTimes implements WatermarkGenerator<byte[]> {
    /** The time of a record that is not a frame. */
    static final long NONE = Long.MIN_VALUE;

    private final Limits limits;
    private final LongSupplier clockMillis;
    private final LongSupplier activeNanos;
    private long latest = NONE;
    private long reached = NONE;
    private long movedNanos;

    /**
     * Limits on a partition's times, in milliseconds.
     *
     * @param skew how far event time may run ahead of the clock
     * @param disorder how far frames may be out of order
     * @param idle after this time without a later frame the partition is idle
     */
    record Limits(long skew, long disorder, long idle) {}

    /**
     * A new partition.
     *
     * @param limits the limits on its times
     * @param clockMillis the machine's clock
     * @param activeNanos a clock that stops while the job itself pauses the partition
     */
    PartitionTimes(Limits limits, LongSupplier clockMillis, LongSupplier activeNanos) {
        this.limits = limits;
        this.clockMillis = clockMillis;
        this.activeNanos = activeNanos;
        this.movedNanos = activeNanos.getAsLong();
    }

    @Override
    public void onEvent(byte[] frame, long millis, WatermarkOutput output) {
        if (millis > latest && millis - limits.skew() <= clockMillis.getAsLong()) {
            latest = millis;
        }
    }

    @Override
    public void onPeriodicEmit(WatermarkOutput output) {
        // A frame that came early counts when the clock has reached its time.
        long time = Math.min(latest, clockMillis.getAsLong());
        if (time > reached) {
            reached = time;
            movedNanos = activeNanos.getAsLong();
        }
        if (activeNanos.getAsLong() - movedNanos > 1_000_000L * limits.idle()) {
            output.markIdle();
        } else if (reached != NONE) {
            output.emitWatermark(new Watermark(reached - limits.disorder() - 1));
        }
    }
}
