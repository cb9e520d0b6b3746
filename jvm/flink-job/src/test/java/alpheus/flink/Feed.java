// Streams, a plan and their expected sums, for tests.
package alpheus.flink;

import alpheus.crypto.SecretBytes;
import alpheus.flink.Messages.FrameIn;
import alpheus.flink.Messages.Join;
import alpheus.flink.Messages.Opening;
import alpheus.flink.Messages.PlanStart;
import alpheus.flink.Messages.Token;
import alpheus.flink.Messages.TokenSet;
import alpheus.stream.MasterSecret;
import alpheus.stream.Producer;
import alpheus.stream.SchemaId;
import alpheus.stream.Session;
import alpheus.stream.Start;
import alpheus.stream.StreamId;
import alpheus.stream.StreamKeys;
import alpheus.stream.TickSum;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Random;

/** Streams of three words, the last of which is the check word, and a plan over windows of three ticks. */
final class Feed {
    static final long TICK = 10_000_000L;
    static final long NOON = 19_675L * 86_400_000_000L + 43_200_000_000L;
    static final int WORDS = 3;
    static final Shape SHAPE = new Shape(WORDS, TICK, 1000, TICK, "5c");
    static final PlanView PLAN =
            new PlanView("ab".repeat(32), 3 * TICK, 5_000_000L, NOON, 0, new int[][] {{0}, {0, 1}, {2}});

    private static final SchemaId SCHEMA = new SchemaId(new byte[32]);

    private Feed() {}

    static StreamId stream(int number) {
        byte[] id = new byte[StreamId.LENGTH];
        id[0] = (byte) number;
        return new StreamId(id);
    }

    private static MasterSecret master() {
        return new MasterSecret(SecretBytes.takeOver(new byte[MasterSecret.LENGTH]));
    }

    /** An open session, with its frames in a list. */
    static Session open(int stream, long at, List<byte[]> frames) throws Exception {
        Producer producer = new Producer(master(), stream(stream), SCHEMA, TICK, WORDS);
        return producer.open(new Start.First(), at, new Random(31L * stream + at), frames::add);
    }

    /** Frames of a stream, from noon on: some events a tick, each with {@code value}. */
    static List<byte[]> frames(int stream, int ticks, int eventsATick, long value) throws Exception {
        List<byte[]> frames = new ArrayList<>();
        Session session = open(stream, NOON, frames);
        for (int tick = 0; tick < ticks; tick++) {
            for (int event = 1; event <= eventsATick; event++) {
                session.event(NOON + tick * TICK + 1000L * event, vector -> {
                    vector[0] += value;
                    vector[1] += 1;
                });
            }
            session.advance(NOON + (tick + 1) * TICK);
        }
        return frames;
    }

    static byte[] input(int stream, byte[] frame) {
        return new FrameIn(stream(stream).toString(), frame).bytes();
    }

    static byte[] join(int stream) {
        return new Join(stream(stream).toString(), PLAN, stream).bytes();
    }

    static byte[] planStart() {
        return new PlanStart(PLAN).bytes();
    }

    /** The opening set of a window over these streams. */
    static Opening opening(int window, int... streams) {
        return opening(window, tokens(window, 1, false), streams);
    }

    /** The controllers of an opening set. */
    static TokenSet tokens(int window, int controllers, boolean masked) {
        BitSet positions = new BitSet();
        long[] digest = new long[SetDigest.WORDS];
        for (int controller = 0; controller < controllers; controller++) {
            positions.set(controller);
            SetDigest.addToken(digest, PLAN.plan(), start(window), controller);
        }
        return new TokenSet(positions, digest, masked, PLAN.rows().length);
    }

    static long start(int window) {
        return NOON + window * PLAN.window();
    }

    static Opening opening(int window, TokenSet tokens, int... streams) {
        long start = start(window);
        BitSet positions = new BitSet();
        long[] digest = new long[SetDigest.WORDS];
        for (int stream : streams) {
            positions.set(stream);
            SetDigest.addStream(digest, PLAN.plan(), start, stream(stream).toString());
        }
        return new Opening(PLAN.plan(), start, positions, digest, tokens);
    }

    /** The answer of a single controller. */
    static byte[] token(int window, int controller, long[] rows) {
        return new Token(PLAN.plan(), start(window), controller, false, rows).bytes();
    }

    /** The opening share that belongs to a masked answer. */
    static byte[] share(int window, int controller, long[] rows) {
        return new Token(PLAN.plan(), start(window), controller, true, rows).bytes();
    }

    /** The released keys of a stream's session over a window, which open its sum. */
    static long[] keys(int stream, long session, long start) {
        long[] released = new long[PLAN.rows().length];
        PLAN.release(difference(stream, session, start, start + PLAN.window()), released);
        return released;
    }

    /** K(from) − K(to) of a stream's session. */
    static long[] difference(int stream, long session, long from, long to) {
        long[] first = new long[WORDS];
        long[] last = new long[WORDS];
        try (StreamKeys keys = new StreamKeys(master(), stream(stream), SCHEMA, WORDS)) {
            keys.keyVector(session, from, first);
            keys.keyVector(session, to, last);
        }
        for (int i = 0; i < WORDS; i++) {
            first[i] -= last[i];
        }
        return first;
    }

    /** Subtracts the keys of a stream's session from a window's rows. */
    static void decrypt(long[] rows, int stream, long session, long start) {
        TickSum.add(rows, keys(stream, session, start));
    }
}
