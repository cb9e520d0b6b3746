// Creates an encryptor from settings. Only this class reads files.
package alpheus.kafka;

import alpheus.AlpheusException;
import alpheus.registry.Schemas;
import alpheus.schema.Schema;
import alpheus.stream.DeviceFile;
import alpheus.stream.MasterSecret;
import alpheus.stream.StreamId;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.Arrays;
import org.apache.kafka.common.config.ConfigException;

/** Creates an encryptor from settings. */
final class Encryptors {
    private Encryptors() {}

    static StreamEncryptor open(AlpheusConfig config, MicroClock clock, StreamCounters counters) {
        Schema schema = schema(config);
        String path = config.getString(AlpheusConfig.DEVICE_FILE);
        try (DeviceFile device = DeviceFile.read(text(path), schema.id());
                MasterSecret master = device.master()) {
            return new StreamEncryptor(
                    schema, device.stream(), master, config, new SecureRandom(), clock, counters);
        } catch (AlpheusException refused) {
            throw new ConfigException(AlpheusConfig.DEVICE_FILE, path, refused.getMessage());
        }
    }

    /** The stream of the device's file. */
    static StreamId stream(AlpheusConfig config) {
        String path = config.getString(AlpheusConfig.DEVICE_FILE);
        try (DeviceFile device =
                DeviceFile.read(text(path), schema(config).id())) {
            return device.stream();
        } catch (AlpheusException refused) {
            throw new ConfigException(AlpheusConfig.DEVICE_FILE, path, refused.getMessage());
        }
    }

    /** The class is named in settings. Whether it accepts these values shows with the first one. */
    @SuppressWarnings("unchecked")
    static <V> RowReader<V> reader(AlpheusConfig config) {
        return (RowReader<V>) config.rowReader();
    }

    private static Schema schema(AlpheusConfig config) {
        String path = config.getString(AlpheusConfig.SCHEMA);
        String fallback = config.getString(AlpheusConfig.SCHEMA_FALLBACK);
        try {
            return new Schemas(config.registry().orElse(null), fallback == null ? null : Path.of(fallback)).read(path);
        } catch (AlpheusException refused) {
            throw new ConfigException(AlpheusConfig.SCHEMA, path, refused.getMessage());
        } catch (IOException unreadable) {
            throw new ConfigException(AlpheusConfig.SCHEMA, path, "cannot be read; check that the file exists and is readable");
        }
    }

    /** A file's text, which the caller overwrites. */
    private static char[] text(String path) {
        try {
            byte[] bytes = Files.readAllBytes(Path.of(path));
            CharBuffer decoded = StandardCharsets.UTF_8.decode(ByteBuffer.wrap(bytes));
            char[] text = new char[decoded.remaining()];
            decoded.get(text);
            Arrays.fill(bytes, (byte) 0);
            Arrays.fill(decoded.array(), '\0');
            return text;
        } catch (IOException unreadable) {
            throw new ConfigException(
                    AlpheusConfig.DEVICE_FILE, path, "cannot be read; check that the file exists and that you may read it");
        }
    }
}
