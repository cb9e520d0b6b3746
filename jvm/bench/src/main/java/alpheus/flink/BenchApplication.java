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

/** An application: values of events are drawn from a seed, and take turns. */
final class BenchApplication {
    /** Different events. */
    private static final int POOL = 64;
    /** Room for sums of so many streams that no two statistics share a word, as in the paper. */
    private static final String UNPACKED = "capacity: { population: 4000000000, eventsPerSecond: 2, window: 1hr }";

    private final String name;
    private final Path file;
    private final Schema schema;
    private final Encoder encoder;
    private final long[][] pool = new long[POOL][];

    private BenchApplication(String name, Path file, Schema schema) throws AlpheusException {
        this.name = name;
        this.file = file;
        this.schema = schema;
        this.encoder = new Encoder(schema);
        Random random = new Random(5);
        for (int i = 0; i < POOL; i++) {
            pool[i] = schema.attributes().stream().mapToLong(each -> value(each, random)).toArray();
        }
    }

    /** An example as it is. */
    static BenchApplication example(Path examples, String name) throws IOException, AlpheusException {
        Path file = examples.resolve(name).resolve("schema.yaml");
        return new BenchApplication(name, file, Schema.fromYaml(Files.readString(file)));
    }

    /** The same with room in every word, so that it has as many words as the paper's: none is packed. */
    static BenchApplication unpacked(Path examples, String name, Path folder) throws IOException, AlpheusException {
        List<String> lines = Files.readAllLines(examples.resolve(name).resolve("schema.yaml")).stream()
                .map(line -> line.startsWith("capacity:") ? UNPACKED : line).toList();
        Path file = Files.write(folder.resolve(name + "-unpacked.yaml"), lines);
        return new BenchApplication(name + ", unpacked", file, Schema.fromYaml(Files.readString(file)));
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

    /** The values of a stream's event, as numbers. */
    long[] values(int stream, int event) {
        return pool[Math.floorMod(stream * 7 + event * 13, POOL)];
    }

    /** Puts values into a row. */
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
