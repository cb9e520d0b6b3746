// A broker that rejects a client: the application gets the error and how to fix it.
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

    /** The application's own event fails with Kafka's exception, and the metric says how to fix it. */
    private void assertRefused(Class<? extends Exception> expected, String fix) {
        try (EncryptingProducer<String, Object> producer = new EncryptingProducer<>(device.settings)) {
            ExecutionException refused =
                    assertThrows(ExecutionException.class, () -> producer.send(record()).get());
            assertInstanceOf(expected, refused.getCause());
            Object said = producer.metrics().entrySet().stream()
                    .filter(it -> it.getKey().name().equals(StreamCounters.LAST_FAILURE))
                    .findFirst().orElseThrow().getValue().metricValue();
            assertTrue(said.toString().contains(fix), said.toString());
            assertFalse(said.toString().contains("wrong"), "no password");
            assertTrue(producer.counters().get(Count.FAILED) > 0);
        }
        assertEquals(0, Topics.everything(broker, topic).size());
    }

    @Test
    void aWrongPasswordIsReported() {
        device.settings.putAll(broker.secured("wrong"));
        assertRefused(SaslAuthenticationException.class, "check security.protocol, sasl.*");
    }

    @Test
    void aMissingAccessListIsReported() {
        assertRefused(TopicAuthorizationException.class, "WRITE and DESCRIBE on it: [" + topic + "]");
    }

    @Test
    void aForbiddenTransactionalIdIsReported() throws Exception {
        allowWriting();
        device.settings.put("transactional.id", topic);
        try (EncryptingProducer<String, Object> producer = new EncryptingProducer<>(device.settings)) {
            assertThrows(TransactionalIdAuthorizationException.class, producer::initTransactions);
        }
    }

    /** Once the access list exists, the same producer continues. */
    @Test
    void aProducerContinuesOnceItIsAllowed() throws Exception {
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
