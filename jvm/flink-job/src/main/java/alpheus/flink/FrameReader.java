// Turns records of the events topic into messages to the job.
package alpheus.flink;

import alpheus.flink.Messages.DeadLetter;
import alpheus.flink.Messages.FrameIn;
import alpheus.flink.Messages.Place;
import alpheus.registry.EventEnvelope;
import alpheus.registry.RegistryException;
import alpheus.registry.WireFormat;
import alpheus.stream.Frame;
import alpheus.stream.FrameException;
import alpheus.stream.StreamId;
import alpheus.tick.TickFrame;
import alpheus.tick.TickFrameException;
import java.util.Arrays;
import java.util.HexFormat;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * Turns records of the events topic into messages to the job. A record that cannot be a frame of a stream
 * becomes a dead letter. No record in a topic stops the job.
 */
final class FrameReader implements KafkaRecordDeserializationSchema<byte[]> {
    private static final long serialVersionUID = 1L;
    /** If a key is not a stream's, this many of its bytes go to the dead letters. */
    private static final int MAX_KEY = 64;
    /**
     * If a value is longer than any frame, this many of its bytes go to the dead letters, so the record
     * fits its topic.
     */
    private static final int MAX_VALUE = 128 * 1024;

    /** The number of the events' schema in a registry, or null if none is configured. */
    private final Integer envelope;
    /** The schema's tick if each tick has a frame; 0 if each event has one. */
    private final long tick;

    FrameReader(Integer envelope, Shape shape) {
        this.envelope = envelope;
        this.tick = shape.hasFramePerTick() ? shape.tick() : 0;
    }

    @Override
    public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<byte[]> out) {
        byte[] key = record.key() == null ? new byte[0] : record.key();
        byte[] value = record.value() == null ? new byte[0] : record.value();
        byte[] frame = frame(value);
        Place place = new Place(record.partition(), record.offset());
        if (key.length == StreamId.LENGTH && frame != null) {
            out.collect(new FrameIn(HexFormat.of().formatHex(key), place, frame).bytes());
        } else {
            String shown = HexFormat.of().formatHex(Arrays.copyOf(key, Math.min(key.length, MAX_KEY)));
            byte[] kept = value.length > MAX_VALUE ? Arrays.copyOf(value, MAX_VALUE) : value;
            out.collect(new DeadLetter(shown, Refusal.MALFORMED.label(), record.topic(), place, kept).bytes());
        }
    }

    private byte[] frame(byte[] value) {
        try {
            if (tick > 0) {
                return TickFrame.parse(value, tick) == null ? null : value;
            }
            if (envelope != null && WireFormat.isWireFormat(value)) {
                return EventEnvelope.read(envelope, value);
            }
            return Frame.parse(value) == null ? null : value;
        } catch (FrameException | TickFrameException | RegistryException refused) {
            return null;
        }
    }

    @Override
    public TypeInformation<byte[]> getProducedType() {
        return PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO;
    }

    /** The time of a message's frame in milliseconds. */
    static long millisOf(byte[] message) {
        if (Messages.kind(message) != FrameIn.KIND) {
            return PartitionTimes.NONE;
        }
        int at = FrameIn.frameAt(message);
        try {
            long micros = TickFrame.isOne(message, at) ? TickFrame.timeOf(message, at) : FrameIn.frameOf(message).time();
            return micros / 1_000L;
        } catch (FrameException impossible) {
            return PartitionTimes.NONE;
        }
    }
}
