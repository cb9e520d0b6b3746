// Reports the progress of a task, after its summaries.
package alpheus.flink;

import alpheus.flink.Messages.Progress;
import alpheus.stream.EventTime;
import org.apache.flink.api.common.TaskInfo;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.BoundedOneInput;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;

/**
 * Passes summaries on, and reports the progress of their task after them. It does so with each checkpoint,
 * so progress is committed with the summaries that it covers. Summaries come from timers, which fire before
 * the watermark advances.
 */
final class ProgressReporter extends AbstractStreamOperator<byte[]>
        implements OneInputStreamOperator<byte[], byte[]>, BoundedOneInput {
    private static final long serialVersionUID = 1L;
    private static final long NONE = Long.MIN_VALUE;

    private transient long reached;

    @Override
    public void open() throws Exception {
        super.open();
        reached = NONE;
    }

    @Override
    public void processElement(StreamRecord<byte[]> summary) {
        output.collect(summary);
    }

    @Override
    public void processWatermark(Watermark mark) throws Exception {
        reached = mark.getTimestamp();
        super.processWatermark(mark);
    }

    @Override
    public void prepareSnapshotPreBarrier(long checkpoint) {
        tell();
    }

    @Override
    public void endInput() {
        tell();
    }

    private void tell() {
        if (reached == NONE) {
            return;
        }
        TaskInfo task = getRuntimeContext().getTaskInfo();
        long millis = Math.max(0, Math.min(reached, EventTime.LIMIT / EventTime.MILLISECOND));
        output.collect(new StreamRecord<>(new Progress(task.getIndexOfThisSubtask(),
                task.getNumberOfParallelSubtasks(), millis * EventTime.MILLISECOND).bytes()));
    }
}
