// How frames are written into records.
package alpheus.kafka;

import alpheus.AlpheusException;
import alpheus.registry.EventEnvelope;
import alpheus.registry.RegistryClient;
import alpheus.registry.SubjectNaming;
import alpheus.stream.Frame;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.SerializationException;

/**
 * How frames are written into records: unchanged, or as Avro in a registry's wire format. The schema of the
 * records is registered with the first one, when the topic is known. Not safe for concurrent use.
 */
final class FrameFormat {
    /** Frames are written unchanged. */
    private final RegistryClient registry;

    private final SubjectNaming naming;
    private int id;
    private boolean registered;

    FrameFormat(AlpheusConfig config) {
        this.naming = config.naming();
        this.registry = config.isInRegistryFormat() ? config.registry().orElseThrow(() -> new ConfigException(
                AlpheusConfig.REGISTRY_URL, null, "alpheus.format=registry needs a registry; set schema.registry.url")) : null;
    }

    byte[] write(String topic, byte[] frame) {
        if (registry == null) {
            return frame;
        }
        try {
            if (!registered) {
                id = registry.register(naming.subject(topic, EventEnvelope.NAME), EventEnvelope.SCHEMA);
                registered = true;
            }
            return EventEnvelope.write(id, Frame.parse(frame));
        } catch (AlpheusException refused) {
            throw new SerializationException(refused.getMessage(), refused);
        }
    }
}
