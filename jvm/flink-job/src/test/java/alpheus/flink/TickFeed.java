// Streams with one frame a tick, and their keys, for tests. The identities are those of vectors/ticks.
package alpheus.flink;

import alpheus.crypto.CryptoException;
import alpheus.crypto.SealingKey;
import alpheus.crypto.SealingPublic;
import alpheus.crypto.SecretBytes;
import alpheus.crypto.SigningKey;
import alpheus.crypto.VerifyingKey;
import alpheus.document.DocumentException;
import alpheus.document.Node;
import alpheus.document.Value.Scalar;
import alpheus.flink.Messages.DeviceIs;
import alpheus.flink.Messages.FrameIn;
import alpheus.schema.Schema;
import alpheus.stream.MasterSecret;
import alpheus.stream.SchemaId;
import alpheus.stream.Start;
import alpheus.stream.StreamKeys;
import alpheus.tick.Blocks;
import alpheus.tick.Claim;
import alpheus.tick.Claims;
import alpheus.tick.DeviceIdentity;
import alpheus.tick.Previous;
import alpheus.tick.Statement;
import alpheus.tick.TickFrame;
import alpheus.tick.TickProducer;
import alpheus.tick.TickSession;
import alpheus.tick.TickShape;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;

/** One device with one frame a tick. */
final class TickFeed {
    static final long TICK = Feed.TICK;
    static final long NOON = Feed.NOON;
    static final long ANCHOR = 6 * TICK;
    /** A schema of such words and times. */
    static final String YAML = """
            name: Feed
            frames: ticks
            anchor: 1min
            tick: 10s
            capacity: { population: 10, events: 1000 }
            streamAttributes:
              - {name: x, type: decimal, scale: 0, min: 0, max: 1000000000000, aggregations: [mean]}
            """;
    static final SchemaId SCHEMA = schema();
    static final Shape SHAPE = new Shape(Feed.WORDS, TICK, 1000, TICK, SCHEMA.toString(),
            new TickMode(ANCHOR, ""));
    static final byte[] CERTIFICATE = new byte[32];

    private static final Map<String, Node> VECTOR = map(file("session.json"));
    private static final Map<String, Node> INGEST = map(list(file("certificate.json")).get(1));

    final List<byte[]> frames = new ArrayList<>();
    final TickSession session;

    TickFeed(int stream, long at) throws Exception {
        this(stream, at, 31L * stream + at);
    }

    TickFeed(int stream, long at, long seed) throws Exception {
        this(stream, at, seed, Optional.empty());
    }

    /** A device that remembers a session before. */
    TickFeed(int stream, long at, long seed, Optional<Previous> previous) throws Exception {
        session = producer(stream, "device_seed").open(
                new Start.First(), at, previous, new Random(seed), frames::add);
    }

    /** A producer of a stream whose device has another key, if it is named. */
    static TickProducer producer(int stream, String device) throws Exception {
        DeviceIdentity identity = new DeviceIdentity(
                authority(), new SigningKey(secret(device)), CERTIFICATE,
                new SealingPublic(SealingKey.fromSeed(secret("ingest_seed")).publicHalf()),
                HexFormat.of().parseHex(text(INGEST, "digest")));
        return new TickProducer(master(), Feed.stream(stream), SCHEMA, shape(), identity);
    }

    private static TickShape shape() {
        return new TickShape(TICK, ANCHOR, new Blocks(1, 1, 1));
    }

    private static SchemaId schema() {
        try {
            return Schema.fromYaml(YAML).id();
        } catch (DocumentException broken) {
            throw new IllegalStateException(broken);
        }
    }

    private static Node file(String name) {
        try {
            Path root = Path.of(System.getProperty("alpheus.repository", "../.."));
            return Node.fromJson(Files.readString(root.resolve("vectors/ticks/v1").resolve(name)));
        } catch (IOException | DocumentException missing) {
            throw new IllegalStateException(missing);
        }
    }

    private static Map<String, Node> map(Node node) {
        try {
            return node.map();
        } catch (DocumentException broken) {
            throw new IllegalStateException(broken);
        }
    }

    private static List<Node> list(Node node) {
        try {
            return node.list();
        } catch (DocumentException broken) {
            throw new IllegalStateException(broken);
        }
    }

    private static String text(Map<String, Node> vector, String key) {
        return ((Scalar) vector.get(key).value()).text();
    }

    static byte[] bytes(String key) {
        return HexFormat.of().parseHex(text(VECTOR, key));
    }

    /** Writes the folder of the service's ingest keys. */
    static Path identity(Path folder) throws IOException {
        Files.writeString(folder.resolve("deployment.json"), "{\"version\": 1, \"authority\": \""
                + text(VECTOR, "authority") + "\", \"ingest\": [\"" + text(INGEST, "certificate") + "\"]}");
        Files.writeString(folder.resolve("ingest.seed"), text(VECTOR, "ingest_seed") + "\n");
        return folder;
    }

    private static SecretBytes secret(String key) {
        return SecretBytes.takeOver(bytes(key));
    }

    private static MasterSecret master() {
        return new MasterSecret(SecretBytes.takeOver(new byte[MasterSecret.LENGTH]));
    }

    private static VerifyingKey authority() throws CryptoException {
        return new VerifyingKey(bytes("authority"));
    }

    /** The service's checks. */
    static Ingest ingest(Shape shape) {
        try {
            Map<String, SealingKey> keys =
                    Map.of(text(INGEST, "digest"), SealingKey.fromSeed(secret("ingest_seed")));
            return new Ingest(authority(), SCHEMA, shape.tick(), keys);
        } catch (CryptoException broken) {
            throw new IllegalStateException(broken);
        }
    }

    static Device device() {
        return new Device(CERTIFICATE, bytes("device"));
    }

    static byte[] deviceOf(int stream) {
        return new DeviceIs(Feed.stream(stream).toString(), device()).bytes();
    }

    /** Ticks with some events each, of the value and one. */
    TickFeed ticks(int ticks, int events, long value) throws Exception {
        for (int tick = 0; tick < ticks; tick++) {
            for (int event = 0; event < events; event++) {
                session.event(session.last() + 1, vector -> {
                    vector[0] += value;
                    vector[1] += 1;
                });
            }
            session.advance(session.nextBorder());
        }
        return this;
    }

    TickFeed sleep(int ticks) throws Exception {
        session.sleepUntil(session.nextBorder() + (ticks - 1) * TICK);
        return this;
    }

    static List<byte[]> inputs(int stream, List<byte[]> frames) {
        String id = Feed.stream(stream).toString();
        return frames.stream().map(frame -> new FrameIn(id, frame).bytes()).toList();
    }

    /**
     * What a controller computes from claims: Σ K(x) − K(y) over the ticks between them, as released. It
     * fails if a claim is not the device's or does not follow.
     */
    static long[] keyPart(int stream, List<Claim> claims, long start) {
        long[] rows = new long[Feed.PLAN.rows().length];
        try (StreamKeys keys = new StreamKeys(master(), Feed.stream(stream), SCHEMA, Feed.WORDS)) {
            long at = Math.max(claims.get(0).to(), start);
            for (Claim claim : claims) {
                Statement stated = Claims.open(keys, claim).orElseThrow();
                if (claim != claims.get(0)) {
                    long end = stated.kind().isGap() ? stated.from() : stated.to();
                    Feed.PLAN.release(difference(keys, stated.session(), at, end), rows);
                    at = stated.to();
                }
            }
        }
        return rows;
    }

    /** The number of events that claims state. */
    static long events(int stream, List<Claim> claims) {
        try (StreamKeys keys = new StreamKeys(master(), Feed.stream(stream), SCHEMA, Feed.WORDS)) {
            long events = 0;
            long before = 0;
            for (Claim claim : claims) {
                long count = Claims.open(keys, claim).orElseThrow().count();
                events += claim == claims.get(0) ? 0 : count - before;
                before = claim.endsPeriod(ANCHOR) ? 0 : count;
            }
            return events;
        }
    }

    private static long[] difference(StreamKeys keys, long session, long from, long to) {
        long[] first = new long[Feed.WORDS];
        long[] last = new long[Feed.WORDS];
        keys.keyVector(session, from, first);
        keys.keyVector(session, to, last);
        for (int i = 0; i < Feed.WORDS; i++) {
            first[i] -= last[i];
        }
        return first;
    }

    static TickFrame parse(byte[] frame) throws Exception {
        return TickFrame.parse(frame, TICK);
    }
}
