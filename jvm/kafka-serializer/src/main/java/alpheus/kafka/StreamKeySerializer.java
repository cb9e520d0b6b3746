// The key of an encrypted stream's records: its id, whatever the application's key.
package alpheus.kafka;

import java.util.Map;
import org.apache.kafka.common.serialization.Serializer;

/**
 * The key of an encrypted stream's records is the stream's id, so that its events stay together and the
 * topic names nobody. The application's own key is not sent.
 */
public final class StreamKeySerializer implements Serializer<Object> {
    private byte[] stream;

    /** For Kafka, which makes one by name and configures it. */
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
