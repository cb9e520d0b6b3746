// Events in a registry's wire format: what is registered and sent, and the error without a registry.
package alpheus.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import alpheus.registry.EventEnvelope;
import alpheus.registry.RegistryException;
import com.sun.net.httpserver.HttpServer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FrameFormatTest {
    private static final long NOON = 19_675 * 86_400_000_000L + 43_200_000_000L;
    private static final int ID = 77;

    @TempDir
    private Path folder;

    private final List<String> asked = Collections.synchronizedList(new ArrayList<>());
    private final MockProducer<byte[], byte[]> kafka =
            new MockProducer<>(true, null, new ByteArraySerializer(), new ByteArraySerializer());
    private TestDevice device;
    private HttpServer registry;

    @BeforeEach
    void start() throws Exception {
        device = new TestDevice(folder, 1000);
        registry = HttpServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0), 0);
        registry.createContext("/", exchange -> {
            asked.add(exchange.getRequestMethod() + " " + exchange.getRequestURI());
            byte[] answer = ("{\"id\":" + ID + "}").getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
            exchange.close();
        });
        registry.start();
        device.settings.put("alpheus.format", "registry");
        device.settings.put("schema.registry.url", "http://127.0.0.1:" + registry.getAddress().getPort());
    }

    @AfterEach
    void stop() {
        registry.stop(0);
    }

    private EncryptingProducer<String, Object> producer() {
        return new EncryptingProducer<>(device.settings, kafka, new TestClock(NOON));
    }

    private static ProducerRecord<String, Object> record() {
        return new ProducerRecord<>(TestDevice.TOPIC, "alice", Map.of("power", 1));
    }

    @Test
    void eventsAndBordersAreInTheWireFormat() throws Exception {
        try (EncryptingProducer<String, Object> producer = producer()) {
            producer.send(record());
            producer.send(record());
        }
        List<byte[]> frames = new ArrayList<>();
        for (ProducerRecord<byte[], byte[]> sent : kafka.history()) {
            frames.add(EventEnvelope.read(ID, sent.value()));
        }
        assertEquals(2, device.opened(frames).count());
        assertEquals(List.of("POST /subjects/events-value/versions"), asked, "registered once");
    }

    @Test
    void subjectsAreNamedAsConfigured() {
        device.settings.put("value.subject.name.strategy", "TopicRecordNameStrategy");
        try (EncryptingProducer<String, Object> producer = producer()) {
            producer.send(record());
        }
        assertEquals(List.of("POST /subjects/events-alpheus.EncryptedEvent/versions"), asked);
        device.settings.put("value.subject.name.strategy", "Mine");
        assertThrows(ConfigException.class, this::producer);
    }

    @Test
    void withoutARegistryNothingIsSent() {
        registry.stop(0);
        try (EncryptingProducer<String, Object> producer = producer()) {
            SerializationException refused =
                    assertThrows(SerializationException.class, () -> producer.send(record()));
            assertInstanceOf(RegistryException.class, refused.getCause());
        }
        assertTrue(kafka.history().isEmpty());
        device.settings.remove("schema.registry.url");
        assertThrows(ConfigException.class, this::producer);
    }
}
