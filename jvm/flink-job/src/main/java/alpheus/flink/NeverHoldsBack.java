// No watermark for instructions and tokens, which have no event time.
package alpheus.flink;

import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkOutput;

/**
 * Instructions and tokens have no event time: they are always idle, and so never hold back that of events. The end of
 * all time would not hold it back either; but once all events' partitions were idle it would be the only one left, and
 * event time never comes back from there.
 */
final class NeverHoldsBack implements WatermarkGenerator<byte[]> {
    @Override
    public void onEvent(byte[] instruction, long timestamp, WatermarkOutput output) {
        output.markIdle();
    }

    @Override
    public void onPeriodicEmit(WatermarkOutput output) {
        output.markIdle();
    }
}
