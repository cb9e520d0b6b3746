// The key of an encrypted stream's records: the stream's id.
package alpheus.kafka;

import java.util.Map;
import org.apache.kafka.common.serialization.Serializer;

/**
 * The key of an encrypted stream's records is the stream's id. So its events stay together, and the topic
 * identifies nobody. The application's own key is not sent.
 */
public final class StreamKeySerializer implements Serializer<Object> {
    private byte[] stream;

    /** For Kafka, which creates an instance by class name and configures it. */
    public StreamKeySerializer() {}

    @Override
    public void configure(Map<String, ?> settings, boolean isKey) {
        stream = Encryptors.stream(new AlpheusConfig(settings)).bytes();
    }

    @Override
    public byte[] serialize(String topic, Object data) {
        return stream.clone();
    }
}
