// Messages between job and policy manager, checked against the vectors shared with Rust: vectors/jvm-job.
package alpheus.flink;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import alpheus.document.Node;
import alpheus.document.Value.Scalar;
import alpheus.flink.Messages.DeviceIs;
import alpheus.flink.Messages.Join;
import alpheus.flink.Messages.Joined;
import alpheus.flink.Messages.Opening;
import alpheus.flink.Messages.PlanEnd;
import alpheus.flink.Messages.PlanStart;
import alpheus.flink.Messages.Progress;
import alpheus.flink.Messages.Token;
import alpheus.flink.Messages.WindowSum;
import alpheus.tick.Claim;
import alpheus.tick.ClaimKind;
import alpheus.tick.Root;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

class JobVectorsTest {
    private static List<Node> cases(String name) throws Exception {
        Path root = Path.of(System.getProperty("alpheus.repository", "../.."));
        List<Node> cases = Node.fromJson(Files.readString(root.resolve("vectors/jvm-job/v1").resolve(name))).list();
        assertFalse(cases.isEmpty());
        return cases;
    }

    private static String text(Node node, String key) throws Exception {
        return node.map().get(key).value() instanceof Scalar scalar ? scalar.text() : "null";
    }

    private static long number(Node node, String key) throws Exception {
        return Long.parseLong(text(node, key));
    }

    private static byte[] encoded(Node node) throws Exception {
        return HexFormat.of().parseHex(text(node, "encoded"));
    }

    private static long[] words(Node node, String key) throws Exception {
        List<Node> digits = node.map().get(key).list();
        return digits.stream().mapToLong(it -> Long.parseUnsignedLong(((Scalar) it.value()).text(), 16)).toArray();
    }

    private static BitSet positions(Node node, String key) throws Exception {
        BitSet positions = new BitSet();
        for (Node at : node.map().get(key).list()) {
            positions.set(Integer.parseInt(((Scalar) at.value()).text()));
        }
        return positions;
    }

    private static void assertView(Node node, PlanView view) throws Exception {
        assertEquals(text(node, "plan"), view.plan());
        assertEquals(number(node, "window"), view.window());
        assertEquals(number(node, "grace"), view.grace());
        assertEquals(number(node, "from"), view.from());
        assertEquals(number(node, "gaps"), view.gaps());
        List<Node> rows = node.map().get("rows").list();
        assertEquals(rows.size(), view.rows().length);
        for (int row = 0; row < rows.size(); row++) {
            List<Node> words = rows.get(row).list();
            for (int at = 0; at < words.size(); at++) {
                assertEquals(((Scalar) words.get(at).value()).text(), String.valueOf(view.rows()[row][at]));
            }
        }
    }

    @Test
    void plans() throws Exception {
        for (Node node : cases("plan_start.json")) {
            PlanStart start = PlanStart.read(encoded(node));
            assertView(node, start.plan());
            assertArrayEquals(encoded(node), start.bytes());
        }
        for (Node node : cases("join.json")) {
            Join join = Join.read(encoded(node));
            assertView(node, join.plan());
            assertEquals(text(node, "stream"), join.stream());
            assertEquals(number(node, "position"), join.position());
            assertArrayEquals(encoded(node), join.bytes());
        }
        for (Node node : cases("plan_end.json")) {
            PlanEnd end = PlanEnd.read(encoded(node));
            assertEquals(text(node, "plan"), end.plan());
            assertArrayEquals(encoded(node), end.bytes());
        }
    }

    /** Digests of the streams and the controllers of a case, recomputed. */
    private static void assertDigests(Node node) throws Exception {
        String plan = text(node, "plan");
        long start = number(node, "start");
        long[] streams = new long[SetDigest.WORDS];
        for (Node member : node.map().get("members").list()) {
            SetDigest.addStream(streams, plan, start, ((Scalar) member.value()).text());
        }
        assertArrayEquals(words(node, "stream_digest"), streams);
        long[] tokens = new long[SetDigest.WORDS];
        positions(node, "controllers").stream().forEach(at -> SetDigest.addToken(tokens, plan, start, at));
        assertArrayEquals(words(node, "token_digest"), tokens);
    }

    @Test
    void openingSets() throws Exception {
        for (Node node : cases("opening.json")) {
            Opening set = Opening.read(encoded(node));
            assertDigests(node);
            assertEquals(text(node, "plan"), set.plan());
            assertEquals(number(node, "start"), set.start());
            assertEquals(positions(node, "streams"), set.streams());
            assertArrayEquals(words(node, "stream_digest"), set.digest());
            assertEquals(positions(node, "controllers"), set.tokens().controllers());
            assertArrayEquals(words(node, "token_digest"), set.tokens().digest());
            assertEquals(text(node, "masked"), String.valueOf(set.tokens().masked()));
            assertEquals(number(node, "rows"), set.tokens().rows());
            assertArrayEquals(encoded(node), set.bytes());
        }
    }

    @Test
    void tokens() throws Exception {
        for (Node node : cases("token.json")) {
            Token token = Token.read(encoded(node));
            assertEquals(text(node, "plan"), token.plan());
            assertEquals(number(node, "start"), token.start());
            assertEquals(number(node, "controller"), token.controller());
            assertEquals(text(node, "opens"), String.valueOf(token.opens()));
            assertArrayEquals(words(node, "rows"), token.rows());
            assertArrayEquals(encoded(node), token.bytes());
        }
    }

    @Test
    void summaries() throws Exception {
        for (Node node : cases("summary.json")) {
            Summary summary = Summary.read(encoded(node));
            assertEquals(text(node, "stream"), summary.stream());
            assertEquals(number(node, "position"), summary.position());
            assertEquals(Long.parseUnsignedLong(text(node, "check_sum"), 16), summary.checkSum());
            Judgement judgement = summary.judgement();
            assertEquals(node.map().get("why").isNothing(), judgement.isComplete());
            if (!judgement.isComplete()) {
                String why = judgement.why().name().toLowerCase(Locale.ROOT).replace('_', '-');
                assertEquals(text(node, "why"), why);
            }
            assertEquals(node.map().get("segments").list().size(), judgement.segments().size());
            assertArrayEquals(encoded(node), summary.bytes());
        }
    }

    @Test
    void summariesOfTicks() throws Exception {
        for (Node node : cases("tick_summary.json")) {
            Summary summary = Summary.read(encoded(node));
            assertEquals(text(node, "stream"), summary.stream());
            assertEquals(Long.parseUnsignedLong(text(node, "check_sum"), 16), summary.checkSum());
            Judgement judgement = summary.judgement();
            assertEquals(node.map().get("why").isNothing(), judgement.isComplete());
            List<Node> segments = node.map().get("claims").list();
            for (int at = 0; at < segments.size(); at++) {
                assertEquals(claims(segments.get(at)), judgement.claims().get(at));
            }
            assertEquals(claims(node.map().get("conflict")), judgement.conflict());
            assertArrayEquals(encoded(node), summary.bytes());
        }
        for (Node node : cases("tick_summary_bad_bytes.json")) {
            byte[] bytes = encoded(node);
            assertThrows(IOException.class, () -> Summary.read(bytes), text(node, "error"));
        }
    }

    private static List<Claim> claims(Node list) throws Exception {
        List<Claim> claims = new ArrayList<>();
        for (Node node : list.list()) {
            ByteBuffer root = ByteBuffer.wrap(HexFormat.of().parseHex(text(node, "root")));
            claims.add(new Claim(
                    ClaimKind.valueOf(text(node, "kind").toUpperCase(Locale.ROOT)),
                    Long.parseUnsignedLong(text(node, "session"), 16), number(node, "from"), number(node, "to"),
                    Long.parseUnsignedLong(text(node, "masked_count"), 16), new Root(root.getLong(), root.getLong()),
                    HexFormat.of().parseHex(text(node, "tag"))));
        }
        return claims;
    }

    @Test
    void devices() throws Exception {
        for (Node node : cases("device.json")) {
            DeviceIs device = DeviceIs.read(encoded(node));
            assertEquals(text(node, "stream"), device.stream());
            assertEquals(text(node, "certificate"), HexFormat.of().formatHex(device.device().certificate()));
            assertEquals(text(node, "key"), HexFormat.of().formatHex(device.device().key()));
            assertArrayEquals(encoded(node), device.bytes());
        }
    }

    @Test
    void progress() throws Exception {
        for (Node node : cases("progress.json")) {
            Progress progress = Progress.read(encoded(node));
            assertEquals(number(node, "task"), progress.task());
            assertEquals(number(node, "tasks"), progress.tasks());
            assertEquals(number(node, "time"), progress.time());
            assertArrayEquals(encoded(node), progress.bytes());
        }
        for (Node node : cases("joined.json")) {
            Joined joined = Joined.read(encoded(node));
            assertEquals(text(node, "stream"), joined.stream());
            assertEquals(text(node, "plan"), joined.plan());
            assertEquals(number(node, "position"), joined.position());
            assertArrayEquals(encoded(node), joined.bytes());
        }
    }

    @Test
    void windowSums() throws Exception {
        for (Node node : cases("window_sum.json")) {
            WindowSum sum = WindowSum.read(encoded(node));
            assertDigests(node);
            assertEquals(node.map().get("members").list().size(), sum.streams());
            assertEquals(positions(node, "controllers").cardinality(), sum.controllers());
            assertArrayEquals(words(node, "stream_digest"), sum.streamDigest());
            assertArrayEquals(words(node, "token_digest"), sum.tokenDigest());
            assertArrayEquals(words(node, "ciphertexts"), sum.ciphertexts());
            assertArrayEquals(words(node, "tokens"), sum.tokens());
            assertArrayEquals(encoded(node), sum.bytes());
        }
    }

    @Test
    void invalidMessagesAreRejected() throws Exception {
        for (String name : List.of("version", "kind", "truncated", "too_long")) {
            for (Node node : cases("messages_bad_" + name + ".json")) {
                byte[] bytes = encoded(node);
                Executable read = switch (text(node, "message")) {
                    case "plan_end" -> () -> PlanEnd.read(bytes);
                    case "opening" -> () -> Opening.read(bytes);
                    case "token" -> () -> Token.read(bytes);
                    case "summary" -> () -> Summary.read(bytes);
                    default -> () -> WindowSum.read(bytes);
                };
                assertThrows(IOException.class, read, () -> name);
            }
        }
    }
}
