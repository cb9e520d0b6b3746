// A partition's watermark: what moves it, how far, and when it is idle.
package alpheus.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkOutput;
import org.junit.jupiter.api.Test;

class PartitionTimesTest {
    private static final long SKEW = 5_000;
    private static final long IDLE = 60_000;

    private long now = 1_700_000_000_000L;
    private long watermark = Long.MIN_VALUE;
    private boolean idle;
    private final PartitionTimes times =
            new PartitionTimes(new PartitionTimes.Limits(SKEW, 0, IDLE), () -> now, () -> 1_000_000L * now);

    private final WatermarkOutput output = new WatermarkOutput() {
        @Override
        public void emitWatermark(Watermark next) {
            watermark = next.getTimestamp();
            idle = false;
        }

        @Override
        public void markIdle() {
            idle = true;
        }

        @Override
        public void markActive() {
            idle = false;
        }
    };

    private void frame(long millis) {
        times.onEvent(new byte[0], millis, output);
        times.onPeriodicEmit(output);
    }

    @Test
    void aPartitionOfRejectedFramesIsIdle() {
        for (int i = 0; i < 20; i++) {
            now += IDLE / 10;
            frame(now + SKEW + 1);
            frame(PartitionTimes.NONE);
        }
        assertTrue(idle, "one device's fast clock, or garbage, does not stop others");
        assertEquals(Long.MIN_VALUE, watermark);
        frame(now);
        assertFalse(idle);
        assertEquals(now - 1, watermark);
    }

    @Test
    void aFastClockMovesTheWatermarkToTheClockAtMost() {
        frame(now + SKEW);
        assertEquals(now - 1, watermark, "it ends nobody's window early");
        long before = now;
        now += 1_000;
        times.onPeriodicEmit(output);
        assertEquals(before + 999, watermark, "it follows the clock without another frame");
        frame(before + 100);
        assertEquals(before + 999, watermark, "it never goes back");
        now += SKEW;
        times.onPeriodicEmit(output);
        assertEquals(before + SKEW - 1, watermark, "to the frame's time, and no further");
    }

    @Test
    void aPartitionThatFallsSilentIsIdleAfterAWhile() {
        frame(now);
        now += IDLE;
        times.onPeriodicEmit(output);
        assertFalse(idle);
        now++;
        times.onPeriodicEmit(output);
        assertTrue(idle);
    }
}
