// A device's file: the key of one stream, as `alpheus owner add` writes it.
package alpheus.stream;

import alpheus.crypto.SecretBytes;
import alpheus.stream.DeviceFileException.Fault;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;

/**
 * A device's file, which {@code alpheus produce} reads too. Its holder can read what the stream sends. The
 * secret is never in a {@code String}. The buffers that we pass to the JSON reader are overwritten.
 */
public final class DeviceFile implements AutoCloseable {
    private static final JsonFactory FACTORY = new JsonFactory();
    private static final int VERSION = 1;

    private long version = -1;
    private StreamId stream;
    private SchemaId schema;
    private SecretBytes secret;

    private DeviceFile() {}

    /**
     * Parses a file's text. It must be for this schema.
     *
     * @param text the text, which is overwritten
     * @param schema the schema's id
     * @return the stream's name and secret
     * @throws DeviceFileException if it is invalid, or for another schema
     */
    public static DeviceFile read(char[] text, SchemaId schema) throws DeviceFileException {
        DeviceFile file = new DeviceFile();
        try (JsonParser json = FACTORY.createParser(text)) {
            file.fields(json);
        } catch (IOException | IllegalArgumentException refused) {
            file.close();
            // Drops the parser's message and cause: they may quote the secret.
            throw new DeviceFileException(Fault.NOT_A_DEVICE_FILE);
        } catch (DeviceFileException refused) {
            file.close();
            throw refused;
        } finally {
            Arrays.fill(text, '\0');
        }
        file.check(schema);
        return file;
    }

    private void fields(JsonParser json) throws IOException, DeviceFileException {
        Set<String> seen = new HashSet<>();
        expect(json.nextToken() == JsonToken.START_OBJECT);
        while (json.nextToken() != JsonToken.END_OBJECT) {
            String name = json.currentName();
            expect(seen.add(name));
            JsonToken value = json.nextToken();
            switch (name) {
                case "version" -> {
                    expect(value == JsonToken.VALUE_NUMBER_INT);
                    version = json.getIntValue();
                }
                case "stream" -> stream = StreamId.parse(text(json));
                case "schema" -> schema = SchemaId.parse(text(json));
                case "secret" -> {
                    text(json, value);
                    secret = secret(json.getTextCharacters(), json.getTextOffset(), json.getTextLength());
                }
                default -> expect(false);
            }
        }
        expect(json.nextToken() == null && version >= 0 && stream != null && schema != null && secret != null);
    }

    private static String text(JsonParser json) throws IOException, DeviceFileException {
        text(json, json.currentToken());
        return json.getText();
    }

    private static void text(JsonParser json, JsonToken value) throws IOException, DeviceFileException {
        expect(value == JsonToken.VALUE_STRING && json.currentName() != null);
    }

    private static void expect(boolean good) throws DeviceFileException {
        if (!good) {
            throw new DeviceFileException(Fault.NOT_A_DEVICE_FILE);
        }
    }

    private static SecretBytes secret(char[] text, int offset, int length) throws DeviceFileException {
        if (length != 2 * MasterSecret.LENGTH) {
            throw new DeviceFileException(Fault.BAD_SECRET);
        }
        byte[] bytes = new byte[MasterSecret.LENGTH];
        boolean good = true;
        for (int i = 0; i < bytes.length; i++) {
            int high = Character.digit(text[offset + 2 * i], 16);
            int low = Character.digit(text[offset + 2 * i + 1], 16);
            good &= text[offset + 2 * i] < 128 && text[offset + 2 * i + 1] < 128 && high >= 0 && low >= 0;
            bytes[i] = (byte) (high << 4 | low);
        }
        // Jackson may have used an array of its own.
        Arrays.fill(text, offset, offset + length, '0');
        if (!good) {
            Arrays.fill(bytes, (byte) 0);
            throw new DeviceFileException(Fault.BAD_SECRET);
        }
        return SecretBytes.takeOver(bytes);
    }

    private void check(SchemaId wanted) throws DeviceFileException {
        if (version != VERSION) {
            close();
            throw new DeviceFileException(Fault.OTHER_FORMAT, version);
        }
        if (!schema.equals(wanted)) {
            close();
            throw new DeviceFileException(Fault.OTHER_SCHEMA);
        }
    }

    /**
     * The stream.
     *
     * @return its id
     */
    public StreamId stream() {
        return stream;
    }

    /**
     * A copy of the stream's secret, which the caller must close.
     *
     * @return the secret
     */
    public MasterSecret master() {
        return new MasterSecret(secret.duplicate());
    }

    /** Wipes the secret. */
    @Override
    public void close() {
        if (secret != null) {
            secret.close();
        }
    }
}
