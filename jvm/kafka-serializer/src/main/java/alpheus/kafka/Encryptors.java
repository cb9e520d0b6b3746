// Creates an encryptor from settings. Only this class reads files.
package alpheus.kafka;

import alpheus.AlpheusException;
import alpheus.crypto.SigningKey;
import alpheus.identity.Certificate;
import alpheus.identity.Certificate.Role;
import alpheus.identity.CertificateException;
import alpheus.identity.Deployment;
import alpheus.identity.Seeds;
import alpheus.layout.Layout;
import alpheus.layout.LayoutException;
import alpheus.registry.Schemas;
import alpheus.schema.Schema;
import alpheus.stream.DeviceFile;
import alpheus.stream.MasterSecret;
import alpheus.stream.Producer;
import alpheus.stream.ProducerException;
import alpheus.stream.StreamId;
import alpheus.tick.DeviceIdentity;
import alpheus.tick.TickProducer;
import alpheus.tick.TickShape;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.Optional;
import org.apache.kafka.common.config.ConfigException;

/** Creates an encryptor from settings. */
final class Encryptors {
    private Encryptors() {}

    static StreamEncryptor open(AlpheusConfig config, MicroClock clock, StreamCounters counters) {
        Schema schema = schema(config);
        SecureRandom random = new SecureRandom();
        String path = config.getString(AlpheusConfig.DEVICE_FILE);
        try (DeviceFile device = DeviceFile.read(text(AlpheusConfig.DEVICE_FILE, path), schema.id());
                MasterSecret master = device.master()) {
            Sessions sessions = sessions(config, schema, device.stream(), master, random);
            return new StreamEncryptor(schema, sessions, config, random, clock, counters);
        } catch (AlpheusException refused) {
            throw new ConfigException(AlpheusConfig.DEVICE_FILE, path, refused.getMessage());
        }
    }

    private static Sessions sessions(
            AlpheusConfig config, Schema schema, StreamId stream, MasterSecret master, SecureRandom random)
            throws LayoutException, ProducerException {
        Optional<TickShape> shape = TickShape.of(schema);
        if (shape.isEmpty()) {
            Producer producer = new Producer(master, stream, schema.id(), schema.tick(), Layout.of(schema).words());
            return new EventSessions(producer, schema.tick(), random);
        }
        DeviceIdentity device = identity(config);
        return new TickSessions(
                new TickProducer(master, stream, schema.id(), shape.get(), device), schema.tick(), random);
    }

    /** Who the device is to the service, by the files of an identity folder. */
    private static DeviceIdentity identity(AlpheusConfig config) {
        String folder = config.getString(AlpheusConfig.IDENTITY);
        if (folder == null) {
            throw new ConfigException(AlpheusConfig.IDENTITY, null,
                    "with `frames: ticks`, the default, a device signs its sessions; set the folder that `alpheus ca issue` wrote for it");
        }
        Deployment deployment = read(folder, "deployment.json", text -> Deployment.read(new String(text)));
        Certificate device = read(folder, "device.txt",
                text -> Certificate.read(new String(text), deployment.authority(), Role.DEVICE));
        SigningKey key = read(folder, "device.seed", text -> device.signingKey(Seeds.read(text)));
        Certificate ingest = deployment.ingest().get(0);
        return new DeviceIdentity(
                deployment.authority(), key, device.digest(), ingest.sealing().orElseThrow(), ingest.digest());
    }

    /** Reads a file's text. */
    @FunctionalInterface
    private interface Reader<T> {
        T read(char[] text) throws CertificateException;
    }

    private static <T> T read(String folder, String name, Reader<T> reader) {
        String path = Path.of(folder, name).toString();
        try {
            return reader.read(text(AlpheusConfig.IDENTITY, path));
        } catch (CertificateException refused) {
            throw new ConfigException(AlpheusConfig.IDENTITY, path, refused.getMessage());
        }
    }

    /** The stream of the device's file. */
    static StreamId stream(AlpheusConfig config) {
        String path = config.getString(AlpheusConfig.DEVICE_FILE);
        try (DeviceFile device =
                DeviceFile.read(text(AlpheusConfig.DEVICE_FILE, path), schema(config).id())) {
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
    private static char[] text(String setting, String path) {
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
                    setting, path, "cannot be read; check that the file exists and that you may read it");
        }
    }
}
