// What a session of tick frames must never do, and what it adds up to.
package alpheus.tick;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import alpheus.crypto.CryptoException;
import alpheus.crypto.SealingKey;
import alpheus.crypto.SealingPublic;
import alpheus.crypto.SecretBytes;
import alpheus.crypto.SigningKey;
import alpheus.crypto.VerifyingKey;
import alpheus.stream.EventTime;
import alpheus.stream.MasterSecret;
import alpheus.stream.ProducerException;
import alpheus.stream.ProducerException.Fault;
import alpheus.stream.SchemaId;
import alpheus.stream.Start;
import alpheus.stream.StreamId;
import alpheus.stream.StreamKeys;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

class TickSessionTest {
    private static final long TICK = 10_000_000L;
    private static final long ANCHOR = 6 * TICK;
    private static final long NOON = 19_675 * EventTime.DAY + EventTime.DAY / 2;
    private static final int WORDS = 3;
    private static final StreamId STREAM = new StreamId(new byte[16]);
    private static final SchemaId SCHEMA = new SchemaId(new byte[32]);

    private final List<byte[]> sent = new ArrayList<>();
    private final Random random = new Random(2);

    private static MasterSecret master() {
        byte[] secret = new byte[32];
        new Random(1).nextBytes(secret);
        return new MasterSecret(SecretBytes.takeOver(secret));
    }

    private static TickProducer producer() throws ProducerException, CryptoException {
        byte[] ingest = SealingKey.fromSeed(SecretBytes.takeOver(new byte[32])).publicHalf();
        // The base point: its sign is even and its order large.
        VerifyingKey authority = new VerifyingKey(HexFormat.of().parseHex("58" + "66".repeat(31)));
        DeviceIdentity device = new DeviceIdentity(
                authority, new SigningKey(SecretBytes.takeOver(new byte[32])), new byte[32], new SealingPublic(ingest),
                new byte[32]);
        return new TickProducer(master(), STREAM, SCHEMA, new TickShape(TICK, ANCHOR, new Blocks(1, 1, 1)), device);
    }

    private TickSession open(TickProducer producer, long now) throws ProducerException {
        return producer.open(new Start.Again(now), producer.nextTick(now), Optional.empty(), random, sent::add);
    }

    private List<TickFrame> frames() throws TickFrameException {
        List<TickFrame> frames = new ArrayList<>();
        for (byte[] each : sent) {
            frames.add(TickFrame.parse(each, TICK));
        }
        return frames;
    }

    /** Random events, sleeps, midnights and restarts: claims and sums are those of the plaintext. */
    @Test
    void sumsAreThoseOfThePlaintext() throws Exception {
        for (int seed = 0; seed < 40; seed++) {
            sent.clear();
            Random drawn = new Random(seed);
            Map<Long, Long> events = new HashMap<>();
            Map<Long, Long> values = new HashMap<>();
            TickProducer producer = producer();
            long now = NOON + EventTime.DAY / 2 - 50 * TICK;
            TickSession session = open(producer, now);
            now = session.last();
            for (int step = 0; step < 120; step++) {
                int what = drawn.nextInt(20);
                if (what == 0) {
                    session.advance(now = Math.max(now, session.nextBorder()));
                    session.abandon();
                    session = open(producer, now);
                    now = session.last();
                } else if (what < 3) {
                    now += (1 + drawn.nextInt(12)) * TICK;
                    session.sleepUntil(now);
                } else {
                    now += 1 + drawn.nextInt((int) TICK);
                    now += now % TICK == 0 ? 1 : 0;
                    session.advance(now);
                    long value = drawn.nextInt(1000);
                    session.event(now, vector -> vector[0] = value);
                    events.merge(EventTime.ceiling(now, TICK), 1L, Long::sum);
                    values.merge(EventTime.ceiling(now, TICK), value, Long::sum);
                }
            }
            session.close(session.nextBorder());
            assertFollow(frames(), events, values);
        }
    }

    private static void assertFollow(List<TickFrame> frames, Map<Long, Long> events, Map<Long, Long> values)
            throws Exception {
        StreamKeys keys = new StreamKeys(master(), STREAM, SCHEMA, WORDS);
        Map<Long, Long> borders = new HashMap<>();
        Map<Long, Long> counts = new HashMap<>();
        Map<Long, long[]> sums = new HashMap<>();
        Set<String> used = new HashSet<>();
        long found = 0;
        for (TickFrame frame : frames) {
            Statement stated = Claims.open(keys, frame.claim()).orElseThrow();
            long session = stated.session();
            assertTrue(used.add(session + " " + stated.to()), "two frames for one border");
            if (stated.kind() == ClaimKind.OPENING) {
                borders.put(session, stated.to());
                counts.put(session, 0L);
                sums.put(session, new long[WORDS]);
                continue;
            }
            assertEquals(borders.put(session, stated.to()), stated.from(), "frames follow each other");
            long inTick = 0;
            if (!stated.kind().isGap()) {
                inTick = events.getOrDefault(stated.to(), 0L);
                long[] words = frame.ciphertext(WORDS);
                alpheus.stream.TickSum.add(sums.get(session), words);
                long[] from = new long[WORDS];
                long[] to = new long[WORDS];
                keys.keyVector(session, stated.from(), from);
                keys.keyVector(session, stated.to(), to);
                assertEquals(values.getOrDefault(stated.to(), 0L), words[0] + from[0] - to[0]);
                assertEquals(0, words[2] + from[2] - to[2], "the check word");
                assertNotEquals(0, words[1], "an unused word is encrypted too");
                found += inTick;
            }
            assertEquals(counts.get(session) + inTick, stated.count());
            assertEquals(new Blocks(1, 1, 1).prefix(sums.get(session)), stated.root());
            boolean restarts = frame.claim().endsPeriod(ANCHOR);
            counts.put(session, restarts ? 0 : stated.count());
            if (restarts) {
                sums.put(session, new long[WORDS]);
            }
        }
        assertEquals(events.values().stream().mapToLong(Long::longValue).sum(), found);
    }

    @Test
    void aSessionEndsWithItsDayAwakeOrAsleep() throws Exception {
        for (boolean asleep : new boolean[] {false, true}) {
            sent.clear();
            TickSession session = open(producer(), NOON);
            long first = session.number();
            if (asleep) {
                session.sleepUntil(NOON + 2 * EventTime.DAY);
            } else {
                session.advance(NOON + 2 * EventTime.DAY);
            }
            List<Opening> openings = frames().stream().map(TickFrame::opening).flatMap(Optional::stream).toList();
            assertEquals(3, openings.size());
            long midnight = NOON + EventTime.DAY / 2;
            assertEquals(Optional.of(new Previous(first, midnight)), openings.get(1).previous());
            assertEquals(midnight + EventTime.DAY, openings.get(2).claim().to());
            assertEquals(session.number(), openings.get(2).claim().session());
            assertNotEquals(first + 1, openings.get(1).claim().session(), "drawn afresh");
            List<ClaimKind> closed = frames().stream().map(frame -> frame.claim().kind()).filter(ClaimKind::isClosing).toList();
            ClaimKind closing = asleep ? ClaimKind.CLOSING_GAP : ClaimKind.CLOSING_TICK;
            assertEquals(List.of(closing, closing), closed);
            assertEquals(asleep, sent.size() == 6, sent.size() + " frames");
        }
    }

    /** The events of a device that falls asleep are in a tick of their own, before the gap. */
    @Test
    void aGapHoldsNoEvent() throws Exception {
        TickSession session = open(producer(), NOON);
        session.event(NOON + 1, vector -> vector[0] = 1);
        session.sleepUntil(NOON + TICK - 1);
        assertEquals(1, sent.size(), "the tick is not over");
        session.sleepUntil(NOON + 5 * TICK + 1);
        assertEquals(
                List.of(ClaimKind.OPENING, ClaimKind.TICK, ClaimKind.GAP),
                frames().stream().map(frame -> frame.claim().kind()).toList());
        assertEquals(NOON + 5 * TICK, session.reached().last());
    }

    @Test
    void aRejectedEventLeavesNoTrace() throws Exception {
        TickSession refusing = open(producer(), NOON);
        assertThrows(IllegalStateException.class, () -> refusing.event(NOON + 5, vector -> vector[2] = 1));
        assertFault(Fault.TICK_OVER, () -> refusing.event(NOON + TICK + 1, vector -> vector[0] = 1));
        assertFault(Fault.ON_A_TICK, () -> refusing.event(NOON + TICK, vector -> vector[0] = 1));
        refusing.event(NOON + 5, vector -> vector[0] = 9);
        assertFault(Fault.NOT_ASCENDING, () -> refusing.event(NOON + 5, vector -> vector[0] = 1));
        refusing.advance(NOON + TICK);
        assertFault(Fault.NOT_ASCENDING, () -> refusing.event(NOON + 6, vector -> vector[0] = 1));
        List<byte[]> after = List.copyOf(sent);
        sent.clear();
        random.setSeed(2);
        TickSession plain = open(producer(), NOON);
        plain.event(NOON + 5, vector -> vector[0] = 9);
        plain.advance(NOON + TICK);
        assertArrayEquals(sent.get(1), after.get(1));
    }

    @Test
    void noSessionIsResumedOrOpenedTwice() throws Exception {
        TickProducer producer = producer();
        TickSession first = open(producer, NOON);
        assertFault(Fault.ENDED, () -> open(producer, NOON));
        assertFault(Fault.NOT_ASCENDING, () -> first.close(NOON));
        assertFault(Fault.NOT_A_TICK, () -> first.close(NOON + 1));
        first.close(NOON + TICK);
        assertFault(Fault.ENDED, () -> first.event(NOON + TICK + 1, vector -> {}));
        assertFault(Fault.ENDED, () -> first.advance(NOON + 3 * TICK));
        assertFault(Fault.ENDED, () -> first.sleepUntil(NOON + 3 * TICK));
        assertFault(Fault.ENDED, () -> first.close(NOON + 3 * TICK));
        assertFault(Fault.NOT_THE_FIRST, () -> producer.open(
                new Start.First(), NOON, Optional.empty(), random, sent::add));
        assertFault(Fault.BACK_DATED, () -> producer.open(
                new Start.Again(NOON + 1), NOON, Optional.empty(), random, sent::add));
        first.abandon();
        open(producer, NOON + 1).abandon();
    }

    /** The service sees neither times within a tick nor numbers of events. */
    @Test
    void ticksWithAndWithoutEventsLookAlike() throws Exception {
        TickSession session = open(producer(), NOON);
        session.advance(NOON + TICK);
        for (int i = 1; i < 50; i++) {
            session.event(NOON + TICK + i, vector -> vector[0] = 1);
        }
        session.advance(NOON + 2 * TICK);
        assertEquals(sent.get(1).length, sent.get(2).length);
        long empty = frames().get(1).claim().maskedCount();
        long full = frames().get(2).claim().maskedCount();
        assertFalse(Math.abs(empty) < 1L << 40 || Math.abs(full) < 1L << 40, "a number of events in the clear");
    }

    private static void assertFault(Fault fault, org.junit.jupiter.api.function.Executable run) {
        assertEquals(fault, assertThrows(ProducerException.class, run).fault());
    }
}
