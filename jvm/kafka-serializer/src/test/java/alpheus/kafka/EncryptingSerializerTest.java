// Encryption by configuration alone: what is sent where, and what is rejected.
package alpheus.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import alpheus.stream.Frame;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class EncryptingSerializerTest {
    private static final long NOON = 19_675 * 86_400_000_000L + 43_200_000_000L;

    @TempDir
    private Path folder;

    private TestDevice device;
    private final MockProducer<byte[], byte[]> borders =
            new MockProducer<>(true, null, new ByteArraySerializer(), new ByteArraySerializer());
    private final TestClock clock = new TestClock(NOON);
    private final Map<String, Object> connected = new HashMap<>();

    @BeforeEach
    void device() throws Exception {
        device = new TestDevice(folder, 1000);
    }

    private EncryptingSerializer<Object> serializer() {
        EncryptingSerializer<Object> serializer = new EncryptingSerializer<>();
        serializer.configure(device.settings, false, own -> {
            connected.putAll(own);
            return borders;
        }, clock);
        return serializer;
    }

    @Test
    void eventsAndBordersSumToTheSentValues() throws Exception {
        List<byte[]> all = new ArrayList<>();
        try (EncryptingSerializer<Object> serializer = serializer()) {
            all.add(serializer.serialize(TestDevice.TOPIC, Map.of("power", 2)));
            assertEquals(Frame.Kind.DATA, Frame.parse(all.get(0)).kind());
            assertTrue(borders.flushed(), "the opening border is there before the first event");
            clock.set(NOON + 2_500_000);
            all.add(serializer.serialize(TestDevice.TOPIC, null, Map.of("power", 3)));
        }
        borders.history().stream().map(ProducerRecord::value).forEach(all::add);
        assertEquals(2, device.opened(all).count());
        assertEquals(50, device.opened(all).words()[0]);
        borders.history().forEach(sent -> assertArrayEquals(device.stream.bytes(), sent.key()));
        assertTrue(borders.closed());
    }

    @Test
    void theBordersConnectionHasTheProducersSettings() {
        device.settings.put("bootstrap.servers", "localhost:1");
        device.settings.put("sasl.mechanism", "PLAIN");
        device.settings.put("value.serializer", EncryptingSerializer.class.getName());
        device.settings.put("interceptor.classes", "x.Y");
        serializer().close();
        assertEquals(
                Map.of("bootstrap.servers", "localhost:1", "sasl.mechanism", "PLAIN", "client.id", "test-borders"),
                connected);
    }

    @Test
    void unsupportedSettingsAreRejected() {
        assertThrows(ConfigException.class, () -> new EncryptingSerializer<>().configure(device.settings, true));
        device.settings.put("alpheus.time", "record");
        assertThrows(ConfigException.class, this::serializer);
        device.settings.put("alpheus.time", "clock");
        device.settings.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        assertTrue(assertThrows(ConfigException.class, this::serializer).getMessage().contains("keys in the clear"));
        device.settings.put("key.serializer", StreamKeySerializer.class);
        serializer().close();
        device.settings.put("transactional.id", "t");
        ConfigException refused = assertThrows(ConfigException.class, this::serializer);
        assertTrue(refused.getMessage().contains("EncryptingProducer"), refused.getMessage());
    }

    @Test
    void aStreamIsInOneTopic() {
        try (EncryptingSerializer<Object> serializer = serializer()) {
            serializer.serialize(TestDevice.TOPIC, Map.of("power", 2));
            assertThrows(SerializationException.class, () -> serializer.serialize("other", Map.of("power", 2)));
        }
    }

    @Test
    void keysAreTheStreams() {
        try (StreamKeySerializer keys = new StreamKeySerializer()) {
            keys.configure(device.settings, true);
            byte[] key = keys.serialize(TestDevice.TOPIC, "alice");
            assertArrayEquals(device.stream.bytes(), key);
            assertFalse(key == keys.serialize(TestDevice.TOPIC, null), "each record has its own");
        }
    }
}
