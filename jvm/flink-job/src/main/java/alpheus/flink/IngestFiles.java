// Reads the files of the ingest keys, on the task that uses them.
package alpheus.flink;

import alpheus.AlpheusException;
import alpheus.crypto.SealingKey;
import alpheus.crypto.SecretBytes;
import alpheus.identity.Certificate;
import alpheus.identity.Deployment;
import alpheus.identity.Seeds;
import alpheus.stream.SchemaId;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;

/** Reads the files of the ingest keys. Every task manager needs them, under the same path. */
final class IngestFiles {
    private IngestFiles() {}

    static Ingest read(Shape shape) {
        Path folder = Path.of(shape.ticks().identity());
        Path at = folder.resolve("deployment.json");
        try {
            Deployment deployment = Deployment.read(new String(text(at)));
            Map<String, SealingKey> keys = new HashMap<>();
            at = folder.resolve("ingest.seed");
            for (int retired = 1; retired == 1 || Files.exists(at); retired++) {
                try (SecretBytes seed = Seeds.read(text(at))) {
                    Certificate own = Certificate.ofKey(deployment.ingest(), seed);
                    keys.put(HexFormat.of().formatHex(own.digest()), SealingKey.fromSeed(seed));
                }
                at = folder.resolve("ingest." + retired + ".seed");
            }
            return new Ingest(deployment.authority(), SchemaId.parse(shape.schema()), shape.tick(), keys);
        } catch (AlpheusException refused) {
            throw new IllegalArgumentException(at + ": " + refused.getMessage());
        } catch (IOException unreadable) {
            throw new IllegalArgumentException(at + " cannot be read; check that it exists on every task manager");
        }
    }

    /** A file's text, for a reader that overwrites it if it is a secret. */
    private static char[] text(Path path) throws IOException {
        byte[] bytes = Files.readAllBytes(path);
        CharBuffer decoded = StandardCharsets.UTF_8.decode(ByteBuffer.wrap(bytes));
        char[] text = new char[decoded.remaining()];
        decoded.get(text);
        Arrays.fill(bytes, (byte) 0);
        Arrays.fill(decoded.array(), '\0');
        return text;
    }
}
