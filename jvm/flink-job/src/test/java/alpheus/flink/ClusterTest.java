// The whole job on a cluster in this process, with a failure and a restore.
package alpheus.flink;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import alpheus.flink.Messages.FrameIn;
import alpheus.flink.Messages.Join;
import alpheus.flink.Messages.WindowSum;
import alpheus.stream.Frame;
import alpheus.stream.TickSum;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.CloseableIterator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class ClusterTest {
    private static final int STREAMS = 8;
    private static final int WINDOWS = 3;
    private static final int[] ALL = new int[STREAMS];

    static {
        for (int i = 0; i < STREAMS; i++) {
            ALL[i] = i;
        }
    }

    /** Passes everything on, and fails once after a checkpoint. */
    static final class FailsOnce implements MapFunction<byte[], byte[]>, CheckpointListener {
        private static final long serialVersionUID = 1L;
        private static final AtomicBoolean FAILED = new AtomicBoolean();

        private transient volatile boolean saved;
        private transient int since;

        @Override
        public byte[] map(byte[] element) throws Exception {
            // However long the first checkpoint takes, there is much to come after it.
            Thread.sleep(saved || FAILED.get() ? 1 : 50);
            since += saved ? 1 : 0;
            if (since > 50 && FAILED.compareAndSet(false, true)) {
                throw new IllegalStateException("a task manager is lost");
            }
            return element;
        }

        @Override
        public void notifyCheckpointComplete(long checkpoint) {
            saved = true;
        }
    }

    @Test
    @Timeout(300)
    void sumsAreCorrectAndUniqueOverAFailure() throws Exception {
        List<byte[]> inputs = new ArrayList<>();
        Map<Integer, Long> sessions = new HashMap<>();
        List<List<byte[]>> frames = new ArrayList<>();
        for (int stream : ALL) {
            inputs.add(Feed.join(stream));
            frames.add(Feed.frames(stream, 3 * WINDOWS, 4, stream));
            sessions.put(stream, Frame.parse(frames.get(stream).get(0)).session());
        }
        for (int i = 0; i < frames.get(0).size(); i++) {
            for (int stream : ALL) {
                inputs.add(Feed.input(stream, frames.get(stream).get(i)));
            }
        }
        List<byte[]> instructions = new ArrayList<>(List.of(Feed.planStart()));
        for (int window = 0; window < WINDOWS; window++) {
            instructions.add(Feed.opening(window, ALL).bytes());
        }
        List<byte[]> tokens = new ArrayList<>();
        for (int window = 0; window < WINDOWS; window++) {
            long[] rows = new long[Feed.PLAN.rows().length];
            for (int stream : ALL) {
                TickSum.add(rows, Feed.keys(stream, sessions.get(stream), Feed.start(window)));
            }
            tokens.add(Feed.token(window, 0, rows));
        }
        Map<Long, WindowSum> opened = new HashMap<>();
        for (byte[] bytes : run(inputs, tokens, instructions)) {
            WindowSum sum = WindowSum.read(bytes);
            assertEquals(null, opened.put(sum.start(), sum), "once each");
        }
        assertTrue(FailsOnce.FAILED.get(), "it has failed during the run");
        assertEquals(WINDOWS, opened.size());
        opened.forEach((start, sum) -> {
            long[] rows = sum.ciphertexts().clone();
            TickSum.add(rows, sum.tokens());
            long values = 12L * STREAMS * (STREAMS - 1) / 2;
            assertArrayEquals(new long[] {values, values + 12L * STREAMS, 0}, rows);
        });
    }

    private static List<byte[]> run(List<byte[]> inputs, List<byte[]> tokens, List<byte[]> instructions) throws Exception {
        Configuration settings = new Configuration();
        settings.set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
        settings.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS, 3);
        StreamExecutionEnvironment flink = StreamExecutionEnvironment.createLocalEnvironment(2, settings);
        flink.enableCheckpointing(100);
        DataStream<byte[]> events = flink
                .fromData(inputs, PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO)
                .map(new FailsOnce()).setParallelism(1)
                .returns(PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO)
                .assignTimestampsAndWatermarks(WatermarkStrategy.<byte[]>forMonotonousTimestamps()
                        .withTimestampAssigner((element, before) -> millis(element)))
                .setParallelism(1);
        DataStream<byte[]> commands =
                flink.fromData(instructions, PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO);
        DataStream<byte[]> answered = flink.fromData(tokens, PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO);
        List<byte[]> sums = new ArrayList<>();
        CloseableIterator<byte[]> out = WindowSums.of(events, answered, commands, Feed.SHAPE).sums().executeAndCollect();
        out.forEachRemaining(sums::add);
        out.close();
        return sums;
    }

    private static long millis(byte[] element) {
        try {
            boolean joins = Messages.kind(element) == Join.KIND;
            return joins ? Feed.NOON / 1000 : Frame.parse(FrameIn.read(element).frame()).time() / 1000;
        } catch (Exception broken) {
            throw new IllegalStateException(broken);
        }
    }
}
