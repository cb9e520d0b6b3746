// Turns records of the topics of instructions and tokens into messages to the job.
package alpheus.flink;

import alpheus.flink.Messages.DeadLetter;
import alpheus.flink.Messages.Place;
import java.io.Serializable;
import java.util.Arrays;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** Passes on valid messages. All others become dead letters. Tombstones are ignored. */
final class MessageReader implements KafkaRecordDeserializationSchema<byte[]> {
    private static final long serialVersionUID = 1L;
    private static final int MAX_VALUE = 128 * 1024;

    private final Check check;
    private final String reason;

    /** Whether a record is valid. */
    @FunctionalInterface
    interface Check extends Serializable {
        boolean passes(byte[] bytes);
    }

    private MessageReader(Check check, String reason) {
        this.check = check;
        this.reason = reason;
    }

    /** Reads the topic of instructions. */
    static MessageReader ofInstructions(Shape shape) {
        return new MessageReader(bytes -> new Instructions(shape).isInstruction(bytes), "no-instruction");
    }

    /** Reads the topic of tokens. */
    static MessageReader ofTokens() {
        return new MessageReader(Instructions::isToken, "no-token");
    }

    @Override
    public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<byte[]> out) {
        byte[] value = record.value();
        if (value == null) {
            return;
        }
        if (check.passes(value)) {
            out.collect(value);
        } else {
            byte[] kept = value.length > MAX_VALUE ? Arrays.copyOf(value, MAX_VALUE) : value;
            Place place = new Place(record.partition(), record.offset());
            out.collect(new DeadLetter("", reason, record.topic(), place, kept).bytes());
        }
    }

    @Override
    public TypeInformation<byte[]> getProducedType() {
        return PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO;
    }
}
