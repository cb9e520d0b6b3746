// One of the paper's applications: its schema, and events that are the same in every job.
package alpheus.flink;

import alpheus.AlpheusException;
import alpheus.encode.Encoder;
import alpheus.encode.Row;
import alpheus.schema.Attribute;
import alpheus.schema.AttributeKind;
import alpheus.schema.Schema;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;

/** An application. Values of events are drawn from a seed and used in turn. */
final class BenchApplication {
    /** The number of different events. */
    private static final int POOL = 64;
    /** What stands behind a schema's attributes. */
    private static final String OPTIONS = "streamPolicyOptions:";
    private final String name;
    private final Path file;
    private final Schema schema;
    private final Encoder encoder;
    private final long[][] pool = new long[POOL][];

    private BenchApplication(String name, Path file, Schema schema, int width) throws AlpheusException {
        this.name = name;
        this.file = file;
        this.schema = schema;
        this.encoder = new Encoder(schema);
        Random random = new Random(5);
        for (int i = 0; i < POOL; i++) {
            pool[i] = schema.attributes().stream().limit(width).mapToLong(each -> value(each, random)).toArray();
        }
    }

    /** An example as it is, but with a frame for each event. */
    static BenchApplication example(Path examples, String name, Path folder) throws IOException, AlpheusException {
        String text = "frames: events\n" + Files.readString(examples.resolve(name).resolve("schema.yaml"));
        Path file = Files.writeString(folder.resolve(name + ".yaml"), text);
        Schema schema = Schema.fromYaml(text);
        return new BenchApplication(name, file, schema, schema.attributes().size());
    }

    /** The same, padded to as many words as in the paper, because ours packs several statistics into one word. */
    static BenchApplication padded(Path examples, String name, int words, Path folder)
            throws IOException, AlpheusException {
        BenchApplication packed = example(examples, name, folder);
        StringBuilder pads = new StringBuilder();
        for (int pad = packed.words(); pad < words; pad++) {
            pads.append("  - {name: pad").append(pad)
                    .append(", type: [integer, optional], min: 0, max: 10, aggregations: [count]}\n");
        }
        String text = Files.readString(packed.file).replace(OPTIONS, pads + OPTIONS);
        Path file = Files.writeString(folder.resolve(name + "-" + words + ".yaml"), text);
        BenchApplication padded = new BenchApplication(name, file, Schema.fromYaml(text), packed.width());
        if (padded.words() != words) {
            throw new IllegalStateException(name + " has " + padded.words() + " words, not " + words);
        }
        return padded;
    }

    /** Mostly where histograms have bins. */
    private static long value(Attribute attribute, Random random) {
        if (attribute.kind() instanceof AttributeKind.Numeric number) {
            long low = Math.max(number.min(), 0);
            long range = Math.max((number.max() - low) / 16, Math.min(number.max() - low, 60));
            return low + (random.nextLong() >>> 1) % Math.max(range, 1);
        }
        return random.nextInt(2);
    }

    String name() {
        return name;
    }

    Path file() {
        return file;
    }

    Schema schema() {
        return schema;
    }

    Encoder encoder() {
        return encoder;
    }

    int words() {
        return encoder.words();
    }

    /** Attributes that have values. */
    private int width() {
        return pool[0].length;
    }

    /** The values of a stream's event, as numbers. */
    long[] values(int stream, int event) {
        return pool[Math.floorMod(stream * 7 + event * 13, POOL)];
    }

    /** Puts values into a row; attributes behind them are absent. */
    static void fill(List<Attribute> attributes, long[] values, Row row) {
        for (int i = 0; i < values.length; i++) {
            if (attributes.get(i).kind() instanceof AttributeKind.Numeric) {
                row.number(i, values[i]);
            } else if (attributes.get(i).kind() instanceof AttributeKind.Text) {
                row.text(i, "text".getBytes(StandardCharsets.UTF_8));
            } else {
                row.truth(i, values[i] != 0);
            }
        }
    }
}
