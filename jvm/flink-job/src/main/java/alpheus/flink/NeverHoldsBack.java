// A watermark for instructions, which have no event time.
package alpheus.flink;

import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkOutput;

/** Instructions have no event time: they never hold back that of events. */
final class NeverHoldsBack implements WatermarkGenerator<byte[]> {
    @Override
    public void onEvent(byte[] instruction, long timestamp, WatermarkOutput output) {
        output.emitWatermark(Watermark.MAX_WATERMARK);
    }

    @Override
    public void onPeriodicEmit(WatermarkOutput output) {
        output.emitWatermark(Watermark.MAX_WATERMARK);
    }
}
