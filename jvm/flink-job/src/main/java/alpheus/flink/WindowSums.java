// Connects the job's parts, independent of how topics are read and written.
package alpheus.flink;

import alpheus.flink.Messages.DeviceIs;
import alpheus.flink.Messages.FrameIn;
import alpheus.flink.Messages.Join;
import alpheus.flink.Parts.Sum;
import java.io.IOException;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;

/**
 * The job's streams.
 *
 * @param sums one record with both sums for each plan and window that opened
 * @param summaries which streams are complete, and the progress of the job, for the policy manager
 * @param deadLetters rejected records, with the reason
 */
public record WindowSums(DataStream<byte[]> sums, DataStream<byte[]> summaries, DataStream<byte[]> deadLetters) {
    private static final TypeInformation<byte[]> BYTES = PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO;

    /**
     * Connects the parts of the job.
     *
     * @param inputs frames and joins, with timestamps and a watermark for each partition
     * @param tokens answers of controllers
     * @param instructions plans and opening sets
     * @param shape the part of the schema that the job needs
     * @return its outputs
     */
    public static WindowSums of(
            DataStream<byte[]> inputs, DataStream<byte[]> tokens, DataStream<byte[]> instructions, Shape shape) {
        DataStream<byte[]> commands = untimed(instructions);
        SingleOutputStreamOperator<byte[]> parts = inputs
                .keyBy(WindowSums::streamOf, Types.STRING)
                .connect(commands.broadcast(StreamSums.INSTRUCTIONS))
                .process(new StreamSums(shape), BYTES)
                .name("stream sums").uid("stream-sums");
        DataStream<byte[]> shares = commands.flatMap((FlatMapFunction<byte[], byte[]>) TokenSums::deal, BYTES)
                .name("token shares").uid("token-shares");
        DataStream<byte[]> tokenParts = tokens.union(shares)
                .keyBy(TokenSums::keyOf, Types.STRING)
                .process(new TokenSums(), BYTES)
                .name("token sums").uid("token-sums");
        SingleOutputStreamOperator<byte[]> sums = parts.union(tokenParts)
                .keyBy(WindowSums::windowOf, Types.STRING)
                .process(new WindowMerge(), BYTES)
                .name("window sums").uid("window-sums");
        DataStream<byte[]> summaries = parts.getSideOutput(StreamSums.SUMMARIES)
                .transform("progress", BYTES, new ProgressReporter())
                .uid("progress");
        return new WindowSums(sums, summaries, parts.getSideOutput(StreamSums.DEAD_LETTERS));
    }

    private static DataStream<byte[]> untimed(DataStream<byte[]> instructions) {
        return instructions.assignTimestampsAndWatermarks(
                WatermarkStrategy.forGenerator(context -> new AlwaysIdle()));
    }

    /** The key of a frame, a join or a device. */
    static String streamOf(byte[] input) throws IOException {
        return switch (Messages.kind(input)) {
            case Join.KIND -> Join.read(input).stream();
            case DeviceIs.KIND -> DeviceIs.read(input).stream();
            default -> FrameIn.streamOf(input);
        };
    }

    /** The key of a part of a window's sum. */
    static String windowOf(byte[] part) throws IOException {
        Sum sum = Sum.read(part);
        return sum.plan() + "/" + sum.start();
    }
}
