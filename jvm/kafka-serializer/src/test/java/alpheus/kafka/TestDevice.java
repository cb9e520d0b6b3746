// A device's file and schema for tests, and a reader of what it sent.
package alpheus.kafka;

import alpheus.crypto.SecretBytes;
import alpheus.schema.Schema;
import alpheus.stream.Frame;
import alpheus.stream.MasterSecret;
import alpheus.stream.StreamId;
import alpheus.stream.StreamKeys;
import alpheus.stream.TickSum;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;

/** A device's file and schema, written into a folder. */
final class TestDevice {
    static final long TICK = 1_000_000L;
    static final String TOPIC = "events";

    private static final String SECRET = "0123456789abcdef".repeat(4);
    private static final String YAML = """
            name: Household
            frames: %s
            tick: %dms
            capacity: { population: 10, events: 1000 }
            streamAttributes:
              - {name: power, type: decimal, scale: 1, min: 0, max: 20000, aggregations: [variance]}
              - {name: on, type: [boolean, optional], aggregations: [count]}
              - {name: room, type: [string, optional], maxBytes: 8, aggregations: [count]}
            """;

    final Schema schema;
    final StreamId stream = StreamId.parse("aa".repeat(16));
    final Map<String, Object> settings = new HashMap<>();

    final TestIdentity identity = new TestIdentity();

    /** A device with a frame for each event. */
    TestDevice(Path folder, long tickMillis) throws Exception {
        this(folder, tickMillis, "events");
    }

    TestDevice(Path folder, long tickMillis, String frames) throws Exception {
        String yaml = String.format(YAML, frames, tickMillis);
        schema = Schema.fromYaml(yaml);
        Path schemaFile = Files.writeString(folder.resolve("schema.yaml"), yaml);
        Path device = Files.writeString(folder.resolve("device.json"), "{\"version\": 1, \"stream\": \"" + stream
                + "\", \"schema\": \"" + schema.id() + "\", \"secret\": \"" + SECRET + "\"}");
        settings.put("alpheus.schema", schemaFile.toString());
        settings.put("alpheus.device.file", device.toString());
        settings.put("client.id", "test");
        identity.write(folder, settings);
    }

    StreamKeys keys(int words) {
        MasterSecret master = new MasterSecret(SecretBytes.takeOver(HexFormat.of().parseHex(SECRET)));
        return new StreamKeys(master, stream, schema.id(), words);
    }

    /** The sum of a session's complete ticks, opened: word by word, with the number of events. */
    TickSum opened(List<byte[]> frames) throws Exception {
        int words = 0;
        Map<String, TickSum> ticks = new HashMap<>();
        List<Frame> borders = new ArrayList<>();
        for (byte[] bytes : frames) {
            Frame frame = Frame.parse(bytes);
            if (frame.kind() != Frame.Kind.OPENING) {
                words = frame.words();
                int length = words;
                ticks.computeIfAbsent(nameOf(frame), name -> new TickSum(length)).add(frame);
            }
            if (frame.endsTick()) {
                borders.add(frame);
            }
        }
        TickSum all = new TickSum(words);
        for (Frame border : borders) {
            TickSum tick = ticks.get(nameOf(border));
            long from = border.time() - schema.tick();
            if (tick.isComplete(border.session(), from, border.time()) && tick.count() == border.count()) {
                TickSum.add(tick.words(), difference(border.session(), from, border.time(), words));
                all.merge(tick);
            }
        }
        return all;
    }

    private String nameOf(Frame frame) {
        return frame.session() + " " + (frame.time() + schema.tick() - 1) / schema.tick();
    }

    private long[] difference(long session, long from, long to, int words) {
        long[] first = new long[words];
        long[] last = new long[words];
        try (StreamKeys keys = keys(words)) {
            keys.keyVector(session, from, first);
            keys.keyVector(session, to, last);
        }
        for (int i = 0; i < words; i++) {
            first[i] -= last[i];
        }
        return first;
    }
}
