// Reads the files of the ingest keys, on the task that uses them.
package alpheus.flink;

import alpheus.AlpheusException;
import alpheus.crypto.SealingKey;
import alpheus.crypto.SecretBytes;
import alpheus.crypto.VerifyingKey;
import alpheus.identity.Certificate;
import alpheus.identity.Certificate.Role;
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

/** Reads the files of the ingest keys. Task managers need them, under the same paths as the submitting machine. */
final class IngestFiles {
    private IngestFiles() {}

    static Ingest read(Shape shape) {
        TickMode mode = shape.ticks();
        String at = mode.deployment();
        try {
            VerifyingKey authority = Deployment.authority(new String(text(at)));
            Map<String, SealingKey> keys = new HashMap<>();
            for (int i = 0; i < mode.certificates().size(); i++) {
                at = mode.certificates().get(i);
                Certificate certificate = Certificate.readWhenever(new String(text(at)), authority, Role.INGEST);
                at = mode.seeds().get(i);
                try (SecretBytes seed = Seeds.read(text(at))) {
                    keys.put(HexFormat.of().formatHex(certificate.digest()), certificate.sealingKey(seed));
                }
            }
            return new Ingest(authority, SchemaId.parse(shape.schema()), shape.tick(), keys);
        } catch (AlpheusException refused) {
            throw new IllegalArgumentException(at + ": " + refused.getMessage());
        } catch (IOException unreadable) {
            throw new IllegalArgumentException(at + " cannot be read; check that it exists on every task manager");
        }
    }

    /** A file's text, for a reader that overwrites it if it is a secret. */
    private static char[] text(String path) throws IOException {
        byte[] bytes = Files.readAllBytes(Path.of(path));
        CharBuffer decoded = StandardCharsets.UTF_8.decode(ByteBuffer.wrap(bytes));
        char[] text = new char[decoded.remaining()];
        decoded.get(text);
        Arrays.fill(bytes, (byte) 0);
        Arrays.fill(decoded.array(), '\0');
        return text;
    }
}
