// Known answers of keys, frames, sessions and window sums.
package alpheus.stream;

import static alpheus.Vectors.at;
import static alpheus.Vectors.bytes;
import static alpheus.Vectors.cases;
import static alpheus.Vectors.frames;
import static alpheus.Vectors.has;
import static alpheus.Vectors.list;
import static alpheus.Vectors.name;
import static alpheus.Vectors.number;
import static alpheus.Vectors.text;
import static alpheus.Vectors.word;
import static alpheus.Vectors.words;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import alpheus.crypto.SecretBytes;
import alpheus.document.Node;
import alpheus.encode.EncodeException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.Test;

class StreamVectorsTest {
    private static MasterSecret master(Node each) {
        return new MasterSecret(SecretBytes.takeOver(bytes(each, "master")));
    }

    private static StreamKeys keys(Node each, int words) {
        return new StreamKeys(
                master(each), StreamId.parse(text(each, "stream")), SchemaId.parse(text(each, "schema")), words);
    }

    @Test
    void keyVectors() {
        for (Node each : cases("encrypted-stream/v1/key_vector.json")) {
            long[] expected = words(each, "words");
            long[] found = new long[expected.length];
            keys(each, found.length).keyVector(word(each, "session"), number(each, "t"), found);
            assertArrayEquals(expected, found);
        }
    }

    @Test
    void borders() {
        for (Node each : cases("encrypted-stream/v1/border.json")) {
            assertTrue(verifies(each));
        }
        for (String kind : "kind session time count stream schema master".split(" ")) {
            for (Node each : cases("encrypted-stream/v1/border_bad_" + kind + ".json")) {
                assertFalse(verifies(each), kind);
            }
        }
    }

    private static boolean verifies(Node each) {
        BorderKind kind = BorderKind.valueOf(text(each, "kind").toUpperCase(Locale.ROOT));
        return keys(each, 1).verifiesBorder(
                bytes(each, "tag"), kind, word(each, "session"), number(each, "t"), number(each, "count"));
    }

    @Test
    void aSessionByteForByte() throws Exception {
        for (Node each : cases("encrypted-stream/v1/session.json")) {
            int words = (int) number(each, "words");
            List<String> sent = new ArrayList<>();
            Producer producer = new Producer(
                    master(each), StreamId.parse(text(each, "stream")), SchemaId.parse(text(each, "schema")),
                    number(each, "tick"), words);
            Session session = producer.open(
                    new Start.First(), number(each, "start"), () -> word(each, "session"),
                    frame -> sent.add(HexFormat.of().formatHex(frame)));
            for (Node event : list(each, "events")) {
                session.event(number(event, "t"), vector -> TickSum.add(vector, words(event, "plain")));
            }
            session.close(number(each, "close"));
            List<String> expected =
                    frames(each, "frames").stream().map(frame -> HexFormat.of().formatHex(frame)).toList();
            assertEquals(expected, sent);
        }
    }

    @Test
    void windowSums() throws FrameException {
        for (Node each : cases("encrypted-stream/v1/window.json")) {
            long from = number(each, "from");
            long to = number(each, "to");
            long[] expected = words(each, "sum");
            TickSum sum = new TickSum(expected.length);
            for (byte[] bytes : frames(each, "frames")) {
                Frame frame = Frame.parse(bytes);
                if (from < frame.time() && frame.time() <= to) {
                    sum.add(frame);
                }
            }
            assertEquals(new TickSum(expected, number(each, "count"), word(each, "link_digest")), sum);
            assertEquals(number(each, "count"), sum.count());
            assertTrue(sum.isComplete(word(each, "session"), from, to));
            checkWordOpens(each, sum, from, to);
        }
    }

    /** The check word opens to zero under the keys at both ends, and the token opens the rest. */
    private static void checkWordOpens(Node each, TickSum sum, long from, long to) {
        int words = sum.words().length;
        StreamKeys keys = keys(each, words);
        long[] first = new long[words];
        long[] last = new long[words];
        keys.keyVector(word(each, "session"), from, first);
        keys.keyVector(word(each, "session"), to, last);
        assertEquals(0, sum.words()[words - 1] + first[words - 1] - last[words - 1]);
        long[] result = words(each, "result");
        assertEquals(result[0], sum.words()[0] + first[0] - last[0]);
    }

    @Test
    void badFramesAreRejectedWithASpecificError() {
        for (String kind : "empty kind truncated trailing partial_word no_words too_many_words time order".split(" ")) {
            for (Node each : cases("encrypted-stream/v1/frame_bad_" + kind + ".json")) {
                byte[] frame = bytes(each, "frame");
                int zeros = has(each, "zeros") ? (int) number(each, "zeros") : 0;
                byte[] whole = Arrays.copyOf(frame, frame.length + zeros);
                FrameException refused = assertThrows(FrameException.class, () -> Frame.parse(whole), kind);
                assertEquals(text(each, "error"), name(refused.fault()), kind);
            }
        }
    }

    @Test
    void badTimesAreRejectedWithASpecificError() throws Exception {
        String kinds = "equal_time backward_time before_opening at_opening before_border on_tick jump beyond_limit "
                + "close_off_tick close_early";
        for (String kind : kinds.split(" ")) {
            for (Node each : cases("encrypted-stream/v1/producer_bad_" + kind + ".json")) {
                ProducerException refused = assertThrows(ProducerException.class, () -> run(each), kind);
                assertEquals(text(each, "error"), name(refused.fault()), kind);
            }
        }
    }

    private static void run(Node each) throws ProducerException, EncodeException {
        long start = number(each, "start");
        MasterSecret master = new MasterSecret(SecretBytes.takeOver(new byte[32]));
        Producer producer = new Producer(
                master, new StreamId(new byte[16]), new SchemaId(new byte[32]), number(each, "tick"), 2);
        Session session = producer.open(new Start.First(), start, () -> 7, frame -> {});
        for (Node offset : list(each, "events")) {
            session.event(start + Long.parseLong(alpheus.Vectors.text(offset)), vector -> {});
        }
        if (!at(each, "close").isNothing()) {
            session.close(start + number(each, "close"));
        }
    }
}
