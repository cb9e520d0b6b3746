// Known answers of tick frames: roots, claims, a session, and bytes that are no frame.
package alpheus.tick;

import static alpheus.Vectors.bytes;
import static alpheus.Vectors.cases;
import static alpheus.Vectors.frames;
import static alpheus.Vectors.list;
import static alpheus.Vectors.name;
import static alpheus.Vectors.number;
import static alpheus.Vectors.one;
import static alpheus.Vectors.text;
import static alpheus.Vectors.word;
import static alpheus.Vectors.words;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import alpheus.Vectors;
import alpheus.crypto.CryptoException;
import alpheus.crypto.SealingKey;
import alpheus.crypto.SealingPublic;
import alpheus.crypto.SecretBytes;
import alpheus.crypto.SigningKey;
import alpheus.crypto.VerifyingKey;
import alpheus.document.Node;
import alpheus.layout.Layout;
import alpheus.schema.Schema;
import alpheus.stream.MasterSecret;
import alpheus.stream.SchemaId;
import alpheus.stream.Start;
import alpheus.stream.StreamId;
import alpheus.stream.StreamKeys;
import alpheus.stream.TickSum;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class TickVectorsTest {
    /** What a device sends over an anchor, with gaps, until it closes. */
    private static final Node SESSION = one("ticks/v1/session.json");

    private static StreamKeys keys(Node each) {
        MasterSecret master = new MasterSecret(SecretBytes.takeOver(bytes(each, "master")));
        return new StreamKeys(master, StreamId.parse(text(each, "stream")), SchemaId.parse(text(each, "schema")), 1);
    }

    private static Blocks blocks(Node each) {
        return new Blocks(list(each, "blocks").stream().mapToInt(it -> Integer.parseInt(Vectors.text(it))).toArray());
    }

    private static ClaimKind kind(Node each) {
        return ClaimKind.valueOf(text(each, "kind").toUpperCase(Locale.ROOT));
    }

    private static Root root(Node each) {
        ByteBuffer root = ByteBuffer.wrap(bytes(each, "root"));
        return new Root(root.getLong(), root.getLong());
    }

    private static Statement statement(Node each) {
        return new Statement(
                kind(each), word(each, "session"), number(each, "from"), number(each, "to"), number(each, "count"),
                root(each));
    }

    private static Claim claim(Node each) {
        return new Claim(
                kind(each), word(each, "session"), number(each, "from"), number(each, "to"),
                word(each, "masked_count"), root(each), bytes(each, "tag"));
    }

    @Test
    void roots() {
        for (Node each : cases("ticks/v1/root.json")) {
            assertArrayEquals(bytes(each, "root"), blocks(each).root(words(each, "words")));
        }
        for (String kind : "word blocks order".split(" ")) {
            for (Node each : cases("ticks/v1/root_bad_" + kind + ".json")) {
                byte[] found = blocks(each).root(words(each, "words"));
                assertFalse(Arrays.equals(bytes(each, "root"), found), kind);
            }
        }
    }

    @Test
    void claims() {
        for (Node each : cases("ticks/v1/claim.json")) {
            assertEquals(claim(each), Claims.make(keys(each), statement(each)));
            assertEquals(Optional.of(statement(each)), Claims.open(keys(each), claim(each)));
        }
        for (String part : "kind session from to root stream schema master".split(" ")) {
            for (Node each : cases("ticks/v1/claim_bad_" + part + ".json")) {
                assertEquals(Optional.empty(), Claims.open(keys(each), claim(each)), part);
            }
        }
        for (Node each : cases("ticks/v1/claim_bad_count.json")) {
            assertNotEquals(claim(each), Claims.make(keys(each), statement(each)));
        }
    }

    private static DeviceIdentity device() throws CryptoException {
        SealingKey ingest = SealingKey.fromSeed(SecretBytes.takeOver(bytes(SESSION, "ingest_seed")));
        return new DeviceIdentity(
                new VerifyingKey(bytes(SESSION, "authority")),
                new SigningKey(SecretBytes.takeOver(bytes(SESSION, "device_seed"))),
                bytes(SESSION, "certificate"), new SealingPublic(ingest.publicHalf()),
                bytes(SESSION, "ingest_key"));
    }

    /** Words of the generator's event of this number. */
    private static void addTo(long[] vector, int number) {
        for (int i = 0; i < vector.length - 1; i++) {
            vector[i] += (number * 31 + i) % 97;
        }
    }

    /** The session of the script, from the device's keys and events. */
    @Test
    void aSessionByteForByte() throws Exception {
        long tick = number(SESSION, "tick");
        long anchor = number(SESSION, "anchor");
        long opened = number(SESSION, "opened");
        MasterSecret master = new MasterSecret(SecretBytes.takeOver(bytes(SESSION, "master")));
        TickProducer producer = new TickProducer(
                master, StreamId.parse(text(SESSION, "stream")), SchemaId.parse(text(SESSION, "schema")),
                new TickShape(tick, anchor, blocks(SESSION)), device());
        List<String> sent = new ArrayList<>();
        Previous before = new Previous(word(SESSION, "session") - 1, opened - 4 * tick);
        TickSession session = producer.open(
                new Start.First(), opened, Optional.of(before),
                new Drawn(word(SESSION, "session"), bytes(SESSION, "session_key"), bytes(SESSION, "ephemeral")),
                frame -> sent.add(HexFormat.of().formatHex(frame)));
        int[][] ticks = {{1, 2}, {3}, {}};
        for (int[] events : ticks) {
            tick(session, tick, events);
        }
        session.sleepUntil(session.nextBorder() + tick);
        tick(session, tick, 4);
        session.sleepUntil(session.nextBorder() + 7 * tick);
        tick(session, tick, 5, 6, 7);
        session.close(session.nextBorder());
        assertEquals(frames(SESSION, "frames").stream().map(HexFormat.of()::formatHex).toList(), sent);
    }

    private static void tick(TickSession session, long tick, int... events) throws Exception {
        for (int event : events) {
            session.event(session.last() + 1, vector -> addTo(vector, event));
        }
        session.advance(session.nextBorder());
    }

    /** Gives the number, and then the bytes, that the script drew. */
    private static final class Drawn extends java.util.Random {
        private static final long serialVersionUID = 1L;
        private final long number;
        private final List<byte[]> bytes;

        Drawn(long number, byte[]... bytes) {
            this.number = number;
            this.bytes = new ArrayList<>(List.of(bytes));
        }

        @Override
        public long nextLong() {
            return number;
        }

        @Override
        public void nextBytes(byte[] out) {
            byte[] next = bytes.remove(0);
            System.arraycopy(next, 0, out, 0, out.length);
        }
    }

    @Test
    void framesSayWhatTheScriptSays() throws Exception {
        long tick = number(SESSION, "tick");
        List<Node> claims = list(SESSION, "claims");
        SessionKey key =
                new SessionKey(SecretBytes.takeOver(bytes(SESSION, "session_key")), StreamId.parse(text(SESSION, "stream")));
        long[] sum = new long[(int) number(SESSION, "words")];
        for (int i = 0; i < claims.size(); i++) {
            byte[] bytes = frames(SESSION, "frames").get(i);
            assertTrue(key.verifies(bytes));
            TickFrame frame = TickFrame.parse(bytes, tick);
            assertEquals(claim(claims.get(i)), frame.claim());
            assertEquals(i == 0, frame.opening().isPresent());
            if (frame.words() > 0) {
                TickSum.add(sum, frame.ciphertext(sum.length));
                assertEquals(frame.claim().root(), blocks(SESSION).prefix(sum));
                assertThrows(TickFrameException.class, () -> frame.ciphertext(sum.length + 1));
            }
            if (frame.claim().endsPeriod(number(SESSION, "anchor"))) {
                Arrays.fill(sum, 0);
            }
        }
    }

    private static Opening opening(byte[] frame) throws TickFrameException {
        return TickFrame.parse(frame, 1).opening().orElseThrow();
    }

    @Test
    void anOpeningIsItsDevicesForOneStreamOfOneDeployment() throws Exception {
        byte[] frame = frames(SESSION, "frames").get(0);
        Opening opening = opening(frame);
        VerifyingKey authority = new VerifyingKey(bytes(SESSION, "authority"));
        VerifyingKey device = new VerifyingKey(bytes(SESSION, "device"));
        StreamId stream = StreamId.parse(text(SESSION, "stream"));
        SchemaId schema = SchemaId.parse(text(SESSION, "schema"));
        OpeningContext here = new OpeningContext(authority, stream, schema);
        SealingKey ingest = SealingKey.fromSeed(SecretBytes.takeOver(bytes(SESSION, "ingest_seed")));
        opening.verify(here, device);
        assertTrue(opening.openKey(ingest, here).verifies(frame));
        assertArrayEquals(bytes(SESSION, "certificate"), opening.certificate());
        assertArrayEquals(bytes(SESSION, "ingest_key"), opening.ingestId());
        assertThrows(CryptoException.class, () -> opening.verify(here, authority), "another device");
        OpeningContext[] elsewhere = {
            new OpeningContext(device, stream, schema),
            new OpeningContext(authority, new StreamId(new byte[16]), schema),
            new OpeningContext(authority, stream, new SchemaId(new byte[32]))
        };
        for (OpeningContext other : elsewhere) {
            assertThrows(CryptoException.class, () -> opening.verify(other, device));
            assertThrows(CryptoException.class, () -> opening.openKey(ingest, other));
        }
        SealingKey another = SealingKey.fromSeed(SecretBytes.takeOver(new byte[32]));
        assertThrows(CryptoException.class, () -> opening.openKey(another, here));
    }

    /** Every byte before the signature is signed, and so is the signature itself. */
    @Test
    void noByteOfAnOpeningCanBeChanged() throws Exception {
        byte[] frame = frames(SESSION, "frames").get(0);
        OpeningContext here = new OpeningContext(
                new VerifyingKey(bytes(SESSION, "authority")), StreamId.parse(text(SESSION, "stream")),
                SchemaId.parse(text(SESSION, "schema")));
        VerifyingKey device = new VerifyingKey(bytes(SESSION, "device"));
        for (int at = 1; at < frame.length - 16; at++) {
            byte[] changed = frame.clone();
            changed[at] ^= 1;
            Exception refused = assertThrows(Exception.class, () -> opening(changed).verify(here, device), "byte " + at);
            assertTrue(refused instanceof CryptoException || refused instanceof TickFrameException, "byte " + at);
        }
    }

    @Test
    void aFrameCountsForNothingWithoutTheSessionsKey() {
        for (Node each : cases("ticks/v1/frame_bad_mac.json")) {
            SecretBytes key = SecretBytes.takeOver(bytes(each, "session_key"));
            assertFalse(new SessionKey(key, StreamId.parse(text(each, "stream"))).verifies(bytes(each, "frame")),
                    text(each, "part"));
        }
        byte[] frame = frames(SESSION, "frames").get(1);
        SecretBytes key = SecretBytes.takeOver(bytes(SESSION, "session_key"));
        assertFalse(new SessionKey(key, new StreamId(new byte[16])).verifies(frame), "another stream");
        assertFalse(new SessionKey(key, StreamId.parse(text(SESSION, "stream"))).verifies(new byte[15]));
    }

    @Test
    void bytesThatAreNoFrameAreRejectedWithASpecificError() {
        String kinds = "empty kind old_kind truncated_opening long_opening truncated_tick no_words partial_word long_gap "
                + "truncated_gap gap_back time previous_flag";
        for (String kind : kinds.split(" ")) {
            Node each = one("ticks/v1/frame_bad_" + kind + ".json");
            TickFrameException refused = assertThrows(
                    TickFrameException.class, () -> TickFrame.parse(bytes(each, "frame"), 10_000_000L), kind);
            assertEquals(text(each, "error"), name(refused.fault()), kind);
        }
    }

    /** A proof about one attribute shows nothing of another. */
    @Test
    void blocksHoldWordsOfOneAttributeAndCoverEveryWord() throws Exception {
        Schema schema = Schema.fromYaml("""
                name: Blocks
                frames: ticks
                tick: 1s
                capacity: {population: 1000, events: 100}
                streamAttributes:
                  - name: a
                    type: integer
                    min: 0
                    max: 99
                    aggregations: [variance, {histogram: {lo: 0, width: 5, bins: 20}}]
                  - {name: b, type: integer, min: 0, max: 99, aggregations: [sum]}
                """);
        TickShape shape = TickShape.of(schema).orElseThrow();
        assertEquals(3_600_000_000L, shape.anchor());
        Layout layout = Layout.of(schema);
        assertEquals(layout.words(), shape.blocks().words());
        int[] lengths = shape.blocks().lengths();
        assertEquals(1, lengths[lengths.length - 1], "the check word");
        assertEquals(1, lengths[lengths.length - 2], "the event count");
        assertEquals(1, lengths[lengths.length - 3], "b");
        List<List<Integer>> owners = new ArrayList<>();
        layout.fields().forEach(field -> {
            for (int i = 0; i < field.words(); i++) {
                owners.add(field.statistic().attributes());
            }
        });
        int at = 0;
        for (int length : lengths) {
            assertTrue(length >= 1 && length <= Blocks.MAX);
            if (at < owners.size()) {
                assertEquals(1, owners.subList(at, at + length).stream().distinct().count(), "block at word " + at);
            }
            at += length;
        }
    }
}
