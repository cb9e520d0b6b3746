// No watermark for instructions and tokens, which have no event time.
package alpheus.flink;

import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkOutput;

/**
 * Instructions and tokens have no event time. They are always idle, so they never delay the event time of
 * events. A watermark at the end of time would not delay it either. But once all partitions of events are
 * idle it would be the only one left, and event time could never go back.
 */
final class AlwaysIdle implements WatermarkGenerator<byte[]> {
    @Override
    public void onEvent(byte[] instruction, long timestamp, WatermarkOutput output) {
        output.markIdle();
    }

    @Override
    public void onPeriodicEmit(WatermarkOutput output) {
        output.markIdle();
    }
}
