// Every record of a topic becomes a message or a dead letter, and never stops the job.
package alpheus.flink;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import alpheus.flink.Messages.DeadLetter;
import alpheus.flink.Messages.FrameIn;
import alpheus.flink.Messages.PlanEnd;
import alpheus.flink.Messages.PlanStart;
import alpheus.registry.EventEnvelope;
import alpheus.stream.Frame;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.apache.flink.api.common.functions.util.ListCollector;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.junit.jupiter.api.Test;

class FrameReaderTest {
    private static final int ENVELOPE = 5;
    private static final byte[] STREAM = Feed.stream(1).bytes();
    private static final Instructions CHECK = new Instructions(Feed.SHAPE);

    private static byte[] read(KafkaRecordDeserializationSchema<byte[]> reader, byte[] key, byte[] value)
            throws Exception {
        List<byte[]> out = new ArrayList<>();
        reader.deserialize(new ConsumerRecord<>("t", 0, 0, key, value), new ListCollector<>(out));
        assertEquals(1, out.size());
        return out.get(0);
    }

    private static byte[] frame(int at) throws Exception {
        return Feed.frames(1, 2, 2, 7).get(at);
    }

    @Test
    void framesAreReadUnchangedAndInTheWireFormat() throws Exception {
        byte[] wire = EventEnvelope.write(ENVELOPE, Frame.parse(frame(1)));
        for (byte[] value : List.of(frame(1), wire)) {
            byte[] message = read(new FrameReader(ENVELOPE, Feed.SHAPE), STREAM, value);
            assertArrayEquals(frame(1), FrameIn.read(message).frame());
            assertEquals(Feed.stream(1).toString(), FrameIn.streamOf(message));
            assertEquals(Frame.parse(frame(1)).time() / 1000, FrameReader.millisOf(message));
        }
        assertMalformed(new FrameReader(null, Feed.SHAPE), STREAM, wire);
        assertMalformed(new FrameReader(ENVELOPE + 1, Feed.SHAPE), STREAM, wire);
    }

    private static void assertMalformed(FrameReader reader, byte[] key, byte[] value) throws Exception {
        byte[] message = read(reader, key, value);
        assertEquals("malformed", DeadLetter.read(message).reason());
        assertEquals(PartitionTimes.NONE, FrameReader.millisOf(message));
        assertTrue(message.length < 200_000, "a dead letter fits its topic");
    }

    @Test
    void poisonIsADeadLetter() throws Exception {
        FrameReader reader = new FrameReader(ENVELOPE, Feed.SHAPE);
        for (byte[] key : new byte[][] {null, {}, new byte[15], new byte[17], new byte[100_000]}) {
            assertMalformed(reader, key, frame(1));
        }
        for (byte[] value : new byte[][] {null, {}, {0}, {0, 0, 0, 0, ENVELOPE}, {16}, new byte[5_000_000]}) {
            assertMalformed(reader, STREAM, value);
        }
    }

    /**
     * Truncated, flipped and extended instructions are processed or rejected. None throws, and none takes
     * much memory.
     */
    @Test
    void noInstructionBreaksTheCheck() throws Exception {
        List<byte[]> good = List.of(Feed.planStart(), Feed.join(3), Feed.opening(1, 0, 2).bytes(),
                new PlanEnd(Feed.PLAN.plan()).bytes());
        Random random = new Random(3);
        for (byte[] message : good) {
            assertTrue(CHECK.isInstruction(message));
            assertFalse(Instructions.isToken(message));
            for (int length = 0; length < message.length; length++) {
                assertFalse(CHECK.isInstruction(Arrays.copyOf(message, length)), "cut at " + length);
            }
            for (int i = 0; i < 3_000; i++) {
                byte[] bad = message.clone();
                bad[random.nextInt(bad.length)] = (byte) random.nextInt();
                CHECK.isInstruction(bad);
            }
        }
        byte[] token = Feed.token(0, 3, new long[] {1, 2, 3});
        assertTrue(Instructions.isToken(token));
        assertFalse(Instructions.isToken(Feed.token(0, -1, new long[3])));
        assertFalse(CHECK.isInstruction(token));
    }

    @Test
    void plansThatCannotRunAreRejected() {
        String plan = Feed.PLAN.plan();
        int[][] rows = Feed.PLAN.rows();
        long window = Feed.PLAN.window();
        for (PlanView bad : List.of(
                new PlanView("ab", window, 0, 0, 0, rows),
                new PlanView(plan, 0, 0, 0, 0, rows),
                new PlanView(plan, window + 1, 0, 0, 0, rows),
                new PlanView(plan, window, -1, 0, 0, rows),
                new PlanView(plan, window, 0, 1, 0, rows),
                new PlanView(plan, window, 0, 0, -1, rows),
                new PlanView(plan, window, Long.MAX_VALUE, 0, 0, rows),
                new PlanView(plan, window, 1L << 52, 0, 0, rows),
                new PlanView(plan, window, 0, (1L << 52) / window * window + window, 0, rows),
                new PlanView(plan, 25_000 * Feed.TICK, 0, 0, 0, rows),
                new PlanView(plan, Long.MAX_VALUE / Feed.TICK * Feed.TICK, 0, 0, 0, rows),
                new PlanView(plan, window, 0, 0, 0, new int[0][]),
                new PlanView(plan, window, 0, 0, 0, new int[][] {{Feed.WORDS}}))) {
            assertFalse(CHECK.isInstruction(new PlanStart(bad).bytes()), bad.toString());
        }
        assertTrue(CHECK.isInstruction(new PlanStart(new PlanView(plan, window, 0, 0, 0, rows)).bytes()));
        assertFalse(CHECK.isInstruction(new byte[] {1, Summary.KIND}));
    }

    /** The summaries of the windows rejected above exceed a record. That of the longest accepted window fits. */
    @Test
    void theLongestWindowsSummaryFitsInARecord() {
        long longest = 20_000 * Feed.TICK;
        PlanView plan = new PlanView(Feed.PLAN.plan(), longest, 0, 0, 0, Feed.PLAN.rows());
        assertTrue(CHECK.isInstruction(new PlanStart(plan).bytes()));
        List<Judgement.Segment> segments = new ArrayList<>();
        for (int session = 0; session < StreamState.MAX_SESSIONS + 3; session++) {
            segments.add(new Judgement.Segment(session, 0, true, 1, 2, new ArrayList<>()));
        }
        for (int tick = 0; tick < 20_000; tick++) {
            segments.get(tick % segments.size()).marks().add(new TickMark(1, tick, false, 3, 4, 5));
        }
        Judgement complete = new Judgement(null, 1, segments);
        int length = new Summary("00".repeat(16), plan.plan(), 0, 0, 0, complete).bytes().length;
        assertTrue(length < 1_000_000, length + " bytes");
        assertEquals(TickMark.LENGTH * 20_000, length - new Summary("00".repeat(16), plan.plan(), 0, 0, 0,
                new Judgement(null, 1, segments.stream().map(it -> new Judgement.Segment(
                        it.session(), 0, true, 1, 2, List.of())).toList())).bytes().length);
    }
}
