// Keyed by plan and window: adds parts up until the window's sum is whole.
package alpheus.flink;

import alpheus.flink.Messages.Sum;
import alpheus.stream.TickSum;
import java.time.Duration;
import java.util.Arrays;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/**
 * Adds the parts of a window up, and gives the sum once its streams are those of the opening set, by
 * number and digest; never another, and never before. What never becomes whole is forgotten a week later.
 */
public final class WindowMerge extends KeyedProcessFunction<String, byte[], byte[]> {
    private static final long serialVersionUID = 1L;

    private static final Duration KEPT = Duration.ofDays(7);

    private transient ValueState<byte[]> sums;

    /** For the job. */
    public WindowMerge() {}

    @Override
    public void open(OpenContext context) {
        ValueStateDescriptor<byte[]> sum =
                new ValueStateDescriptor<>("sum", PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO);
        sum.enableTimeToLive(StateTtlConfig.newBuilder(KEPT).build());
        sums = getRuntimeContext().getState(sum);
    }

    @Override
    public void processElement(byte[] element, Context context, Collector<byte[]> out) throws Exception {
        Sum part = Sum.read(element);
        byte[] before = sums.value();
        Sum whole = before == null ? part : merged(Sum.read(before), part);
        if (whole.count() == whole.wanted() && Arrays.equals(whole.digest(), whole.wantedDigest())) {
            out.collect(whole.bytes());
            sums.clear();
        } else {
            sums.update(whole.bytes());
        }
    }

    private static Sum merged(Sum one, Sum other) {
        TickSum.add(one.rows(), other.rows());
        TickSum.add(one.digest(), other.digest());
        return new Sum(one.plan(), one.start(), one.wanted(), one.wantedDigest(), one.count() + other.count(),
                one.digest(), one.rows());
    }
}
