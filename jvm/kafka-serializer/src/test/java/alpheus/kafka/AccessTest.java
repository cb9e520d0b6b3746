// A broker that refuses: the application hears of it, and what mends it is said.
package alpheus.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import alpheus.broker.Broker;
import alpheus.broker.Topics;
import alpheus.kafka.StreamCounters.Count;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.errors.SaslAuthenticationException;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.errors.TransactionalIdAuthorizationException;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(300)
class AccessTest {
    @TempDir
    private Path folder;

    private final Broker broker = Broker.shared();
    private TestDevice device;
    private String topic;

    @BeforeEach
    void topic(TestInfo test) throws Exception {
        topic = test.getTestMethod().orElseThrow().getName();
        broker.createTopics(1, topic);
        device = new TestDevice(folder, 200);
        device.settings.putAll(broker.secured(Broker.USER));
    }

    private ProducerRecord<String, Object> record() {
        return new ProducerRecord<>(topic, "alice", Map.of("power", 1));
    }

    private void allowWriting() throws Exception {
        AccessControlEntry may = new AccessControlEntry(
                "User:" + Broker.USER, "*", AclOperation.WRITE, AclPermissionType.ALLOW);
        broker.allow(new AclBinding(new ResourcePattern(ResourceType.TOPIC, topic, PatternType.LITERAL), may));
    }

    /** The application's own event fails with Kafka's exception, and the metric says what mends it. */
    private void assertRefused(Class<? extends Exception> expected, String mends) {
        try (EncryptingProducer<String, Object> producer = new EncryptingProducer<>(device.settings)) {
            ExecutionException refused =
                    assertThrows(ExecutionException.class, () -> producer.send(record()).get());
            assertInstanceOf(expected, refused.getCause());
            Object said = producer.metrics().entrySet().stream()
                    .filter(it -> it.getKey().name().equals(StreamCounters.LAST_FAILURE))
                    .findFirst().orElseThrow().getValue().metricValue();
            assertTrue(said.toString().contains(mends), said.toString());
            assertFalse(said.toString().contains("wrong"), "no password");
            assertTrue(producer.counters().get(Count.FAILED) > 0);
        }
        assertEquals(0, Topics.everything(broker, topic).size());
    }

    @Test
    void aWrongPasswordIsSaid() {
        device.settings.putAll(broker.secured("wrong"));
        assertRefused(SaslAuthenticationException.class, "check security.protocol, sasl.*");
    }

    @Test
    void aMissingAccessListIsSaid() {
        assertRefused(TopicAuthorizationException.class, "WRITE and DESCRIBE on it: [" + topic + "]");
    }

    @Test
    void aTransactionalIdIsNotEverybodys() throws Exception {
        allowWriting();
        device.settings.put("transactional.id", topic);
        try (EncryptingProducer<String, Object> producer = new EncryptingProducer<>(device.settings)) {
            assertThrows(TransactionalIdAuthorizationException.class, producer::initTransactions);
        }
    }

    /** Once the access list stands, the same producer goes on. */
    @Test
    void itGoesOnWhenItMay() throws Exception {
        try (EncryptingProducer<String, Object> producer = new EncryptingProducer<>(device.settings)) {
            assertThrows(ExecutionException.class, () -> producer.send(record()).get());
            allowWriting();
            for (int i = 0; i < 50; i++) {
                try {
                    producer.send(record()).get();
                    break;
                } catch (ExecutionException notYet) {
                    Thread.sleep(200);
                }
            }
        }
        var frames = Topics.committed(broker, topic).stream().map(it -> it.value()).toList();
        assertEquals(1, device.opened(frames).count());
    }
}
