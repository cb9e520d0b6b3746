// Keyed by plan and window: adds parts until both of the window's sums are complete.
package alpheus.flink;

import alpheus.flink.Messages.WindowSum;
import alpheus.flink.Parts.Side;
import alpheus.flink.Parts.Sum;
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
 * Adds the parts of a window, streams and tokens separately. It outputs both sums together once streams and
 * controllers match the opening set by number and digest, and never otherwise. The two meet only here. An
 * incomplete window is removed a week later.
 */
public final class WindowMerge extends KeyedProcessFunction<String, byte[], byte[]> {
    private static final long serialVersionUID = 1L;

    private static final Duration KEPT = Duration.ofDays(7);

    private transient ValueState<byte[]> streams;
    private transient ValueState<byte[]> tokens;

    /** For the job. */
    public WindowMerge() {}

    @Override
    public void open(OpenContext context) {
        streams = state("streams");
        tokens = state("tokens");
    }

    private ValueState<byte[]> state(String name) {
        ValueStateDescriptor<byte[]> sum =
                new ValueStateDescriptor<>(name, PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO);
        sum.enableTimeToLive(StateTtlConfig.newBuilder(KEPT).build());
        return getRuntimeContext().getState(sum);
    }

    @Override
    public void processElement(byte[] element, Context context, Collector<byte[]> out) throws Exception {
        Sum part = Sum.read(element);
        ValueState<byte[]> own = part.side() == Side.STREAMS ? streams : tokens;
        byte[] before = own.value();
        own.update(before == null ? element : merged(Sum.read(before), part).bytes());
        if (streams.value() != null && tokens.value() != null) {
            give(Sum.read(streams.value()), Sum.read(tokens.value()), out);
        }
    }

    private void give(Sum one, Sum other, Collector<byte[]> out) {
        if (isWhole(one) && isWhole(other)) {
            out.collect(new WindowSum(one.plan(), one.start(), one.count(), one.digest(), other.count(),
                    other.digest(), one.rows(), other.rows()).bytes());
            streams.clear();
            tokens.clear();
        }
    }

    private static boolean isWhole(Sum sum) {
        return sum.count() == sum.wanted() && Arrays.equals(sum.digest(), sum.wantedDigest());
    }

    private static Sum merged(Sum one, Sum other) {
        TickSum.add(one.rows(), other.rows());
        TickSum.add(one.digest(), other.digest());
        return new Sum(one.side(), one.plan(), one.start(), one.wanted(), one.wantedDigest(),
                one.count() + other.count(), one.digest(), one.rows());
    }
}
