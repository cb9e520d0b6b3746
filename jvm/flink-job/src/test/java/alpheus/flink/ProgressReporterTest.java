// Progress under Flink's harness: after what it covers, with each checkpoint.
package alpheus.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;

import alpheus.flink.Messages.Progress;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.util.OneInputStreamOperatorTestHarness;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class ProgressReporterTest {
    private static final byte[] SUMMARY = Feed.planStart();

    private OneInputStreamOperatorTestHarness<byte[], byte[]> flink;

    @BeforeEach
    void start() throws Exception {
        flink = new OneInputStreamOperatorTestHarness<>(new ProgressReporter(), 8, 3, 2);
        flink.open();
    }

    @AfterEach
    void stop() throws Exception {
        flink.close();
    }

    /** Kinds of the outputs, in order. */
    private List<Integer> kinds() {
        return flink.getOutput().stream().filter(it -> it instanceof StreamRecord<?>)
                .map(it -> Messages.kind((byte[]) ((StreamRecord<?>) it).getValue())).toList();
    }

    private List<Progress> reported() throws Exception {
        List<Progress> reported = new ArrayList<>();
        for (Object record : flink.getOutput()) {
            if (record instanceof StreamRecord<?> found && Messages.kind((byte[]) found.getValue()) == Progress.KIND) {
                reported.add(Progress.read((byte[]) found.getValue()));
            }
        }
        return reported;
    }

    @Test
    void progressIsReportedBeforeTheBarrierAndAfterSummaries() throws Exception {
        flink.processElement(new StreamRecord<>(SUMMARY));
        flink.prepareSnapshotPreBarrier(1);
        assertEquals(List.of(), reported(), "nothing is known before the first watermark");
        flink.processWatermark(new Watermark(1_700_000_000_123L));
        assertEquals(List.of(), reported(), "not with each watermark");
        flink.prepareSnapshotPreBarrier(2);
        assertEquals(List.of(new Progress(2, 3, 1_700_000_000_123_000L)), reported());
        assertEquals(List.of(Messages.kind(SUMMARY), Progress.KIND), kinds());
        assertEquals(1, flink.getOutput().stream().filter(it -> it instanceof Watermark).count());
    }

    /** A rescaled or restored task does not know its progress until it continues to read. */
    @Test
    void progressIsNotRestoredFromACheckpoint() throws Exception {
        flink.processWatermark(new Watermark(5));
        var checkpoint = flink.snapshot(1, 1);
        flink.close();
        flink = new OneInputStreamOperatorTestHarness<>(new ProgressReporter(), 8, 3, 2);
        flink.initializeState(checkpoint);
        flink.open();
        flink.prepareSnapshotPreBarrier(2);
        assertEquals(List.of(), reported());
    }

    @Test
    void theEndOfAllInputIsReportedAsAValidTime() throws Exception {
        flink.processWatermark(Watermark.MAX_WATERMARK);
        flink.endInput();
        assertEquals((1L << 52) / 1000 * 1000, reported().get(0).time());
    }
}
