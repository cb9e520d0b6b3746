// One partition's watermark, which neither a clock that is ahead nor silence can hold.
package alpheus.flink;

import java.util.function.LongSupplier;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkOutput;

/**
 * One partition's watermark: the latest time of its frames, less what they may come out of order, and never
 * beyond the clock. Frames whose time lies further ahead of the clock than the skew are dead letters, and never
 * move it.
 *
 * <p>A partition in which nothing moves it for a while is idle, and holds no other back. Flink's own idleness
 * ends with any record, dead letters too: one device whose clock is fast would stop event time for everybody.
 */
final class PartitionTimes implements WatermarkGenerator<byte[]> {
    /** The time of a record that is no frame. */
    static final long NONE = Long.MIN_VALUE;

    private final Limits limits;
    private final LongSupplier clockMillis;
    private final LongSupplier activeNanos;
    private long latest = NONE;
    private long reached = NONE;
    private long movedNanos;

    /**
     * How far a partition's times may stray, in milliseconds.
     *
     * @param skew how far event time may run ahead of the clock
     * @param disorder how much frames may be out of order
     * @param idle after so long without a later frame the partition is idle
     */
    record Limits(long skew, long disorder, long idle) {}

    /**
     * A partition of which nothing is known.
     *
     * @param limits how far its times may stray
     * @param clockMillis the machine's clock
     * @param activeNanos a clock that stands still while the job itself holds the partition back
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
