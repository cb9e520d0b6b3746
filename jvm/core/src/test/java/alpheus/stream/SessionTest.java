// What a session must never do.
package alpheus.stream;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import alpheus.crypto.SecretBytes;
import alpheus.encode.EncodeException;
import alpheus.encode.Encoder;
import alpheus.schema.Schema;
import alpheus.stream.ProducerException.Fault;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

class SessionTest {
    private static final long TICK = 10_000_000L;
    private static final long NOON = 19_675 * EventTime.DAY + EventTime.DAY / 2;
    private static final int WORDS = 3;

    private final List<byte[]> sent = new ArrayList<>();

    private static Producer producer() throws ProducerException {
        byte[] secret = new byte[32];
        new Random(1).nextBytes(secret);
        MasterSecret master = new MasterSecret(SecretBytes.takeOver(secret));
        return new Producer(master, new StreamId(new byte[16]), new SchemaId(new byte[32]), TICK, WORDS);
    }

    private Session open(Producer producer, long now) throws ProducerException {
        return producer.open(new Start.Again(now), producer.nextTick(now), new Random(2), sent::add);
    }

    @Test
    void noTwoFramesShareSessionAndTime() throws Exception {
        Random random = new Random(3);
        Producer producer = producer();
        Set<String> used = new HashSet<>();
        long t = NOON;
        for (int start = 0; start < 50; start++) {
            Session session = open(producer, t);
            for (int i = 0; i < 20; i++) {
                t = session.last() + 1 + random.nextInt((int) TICK);
                long at = t % TICK == 0 ? t + 1 : t;
                session.event(at, vector -> vector[0] = 1);
            }
            session.abandon();
        }
        for (byte[] bytes : sent) {
            Frame frame = Frame.parse(bytes);
            boolean ends = frame.kind() == Frame.Kind.CLOSING;
            assertTrue(ends || used.add(frame.session() + " " + frame.time()), "used twice");
        }
    }

    /** A frame after a rejected one must not be m + K(t) − K(t): plaintext. */
    @Test
    void aRejectedEventChangesNothing() throws Exception {
        Encoder encoder = new Encoder(Schema.fromYaml(
                "name: S\nstreamAttributes: [{name: x, type: integer, min: 0, max: 9, aggregations: [mean]}]"));
        Session refusing = open(producer(), NOON);
        assertThrows(EncodeException.class, () -> refusing.event(
                NOON + 5, vector -> encoder.encode(encoder.row(), new Random(1), vector)));
        assertThrows(IllegalStateException.class, () -> refusing.event(NOON + 5, vector -> vector[2] = 1));
        refusing.event(NOON + 5, vector -> vector[0] = 9);
        List<byte[]> after = List.copyOf(sent);
        sent.clear();
        open(producer(), NOON).event(NOON + 5, vector -> vector[0] = 9);
        assertEquals(after.size(), sent.size());
        for (int i = 0; i < after.size(); i++) {
            assertArrayEquals(sent.get(i), after.get(i));
        }
    }

    @Test
    void noSessionIsResumedOrOpenedTwice() throws Exception {
        Producer producer = producer();
        Session first = open(producer, NOON);
        assertFault(Fault.ENDED, () -> open(producer, NOON));
        first.close(NOON + TICK);
        assertFault(Fault.ENDED, () -> first.event(NOON + TICK + 1, vector -> {}));
        assertFault(Fault.ENDED, () -> first.advance(NOON + 3 * TICK));
        assertFault(Fault.ENDED, () -> first.close(NOON + 3 * TICK));
        assertFault(Fault.NOT_THE_FIRST, () -> producer.open(new Start.First(), NOON, new Random(2), sent::add));
        assertFault(Fault.BACK_DATED, () -> producer.open(
                new Start.Again(NOON + 1), NOON, new Random(2), sent::add));
        first.abandon();
        open(producer, NOON + 1).abandon();
    }

    @Test
    void anAbandonedSessionDoesNotEndItsSuccessor() throws Exception {
        Producer producer = producer();
        Session first = open(producer, NOON);
        first.abandon();
        Session second = open(producer, NOON + 1);
        first.abandon();
        assertFault(Fault.ENDED, () -> open(producer, NOON));
        second.event(NOON + TICK + 1, vector -> {});
        assertEquals(1, second.unclosed());
    }

    @Test
    void silenceIsFilledWithEmptyBorders() throws Exception {
        Session session = open(producer(), NOON);
        session.event(NOON + 1, vector -> vector[0] = 1);
        session.advance(NOON + 5 * TICK);
        assertEquals(1 + 1 + 5, sent.size());
        assertEquals(1, Frame.parse(sent.get(2)).count());
        assertEquals(0, Frame.parse(sent.get(3)).count());
        assertEquals(NOON + 6 * TICK, session.nextBorder());
    }

    /** Each day's session has the next number, and opens where the last one closed. */
    @Test
    void aSessionEndsWithItsDay() throws Exception {
        Session session = open(producer(), NOON);
        long number = session.number();
        session.advance(NOON + 2 * EventTime.DAY);
        assertEquals(number + 2, session.number());
        long opened = 0;
        for (byte[] bytes : sent) {
            Frame frame = Frame.parse(bytes);
            if (frame.kind() == Frame.Kind.OPENING) {
                opened = frame.time();
            } else if (frame.kind() == Frame.Kind.CLOSING) {
                assertEquals(opened, frame.time(), "the opening border goes first, at the same time");
                assertEquals(0, frame.time() % EventTime.DAY);
            } else {
                assertTrue(frame.time() / EventTime.DAY == opened / EventTime.DAY, "no session outlasts its day");
            }
        }
    }

    @Test
    void ticksAndVectorsHaveLimits() {
        MasterSecret master = new MasterSecret(SecretBytes.takeOver(new byte[32]));
        StreamId stream = new StreamId(new byte[16]);
        SchemaId schema = new SchemaId(new byte[32]);
        assertFault(Fault.TICK, () -> new Producer(master, stream, schema, 1, 1));
        assertFault(Fault.TICK, () -> new Producer(master, stream, schema, EventTime.DAY + 1, 1));
        assertFault(Fault.WORDS, () -> new Producer(master, stream, schema, TICK, 0));
        assertFault(Fault.WORDS, () -> new Producer(master, stream, schema, TICK, 8193));
        assertFault(Fault.NOT_A_TICK, () -> producer().open(new Start.First(), 5, new Random(2), sent::add));
        assertFault(Fault.BEYOND_LIMIT, () -> producer()
                .open(new Start.First(), EventTime.floor(EventTime.LIMIT, TICK), new Random(2), sent::add));
    }

    private static void assertFault(Fault fault, org.junit.jupiter.api.function.Executable run) {
        assertEquals(fault, assertThrows(ProducerException.class, run).fault());
    }
}
