// Encrypted events as Avro records.
package alpheus.registry;

import alpheus.registry.RegistryException.Fault;
import alpheus.stream.Frame;
import alpheus.stream.FrameException;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * Encrypted events as Avro records in a registry's wire format. Any Avro tool can read kind, session, times
 * and count, and sees MAC and ciphertext as bytes. A frame becomes one record and is restored exactly. A
 * record has one encoding, and any other is rejected.
 */
public final class EventEnvelope {
    /** The records' schema. It is the same for all streams: encrypted values appear in no field. */
    public static final String SCHEMA = """
            {"type":"record","name":"EncryptedEvent","namespace":"alpheus","doc":"An event of an encrypted stream.",\
            "fields":[\
            {"name":"kind","type":{"type":"enum","name":"EventKind","symbols":["opening","data","border","closing"]}},\
            {"name":"session","type":"long"},\
            {"name":"time","type":{"type":"long","logicalType":"timestamp-micros"}},\
            {"name":"previous","type":{"type":"long","logicalType":"timestamp-micros"}},\
            {"name":"count","type":"long"},\
            {"name":"tag","type":"bytes"},\
            {"name":"ciphertext","type":"bytes"}]}""";
    /** The records' full name. */
    public static final String NAME = "alpheus.EncryptedEvent";

    private static final int FIRST_KIND = 0x10;
    private static final int SEVEN = 7;
    private static final int LOW = 0x7f;
    private static final int MORE = 0x80;

    private EventEnvelope() {}

    /**
     * A frame as a record.
     *
     * @param id the number that the registry gave {@link #SCHEMA}
     * @param frame the frame
     * @return the record in the wire format
     */
    public static byte[] write(int id, Frame frame) {
        ByteArrayOutputStream avro = new ByteArrayOutputStream(64 + Long.BYTES * frame.words());
        boolean opens = frame.kind() == Frame.Kind.OPENING;
        number(avro, frame.kind().ordinal());
        number(avro, frame.session());
        number(avro, frame.time());
        number(avro, opens ? frame.time() : frame.previous());
        number(avro, frame.count());
        bytes(avro, frame.tag());
        ByteBuffer words = ByteBuffer.allocate(Long.BYTES * frame.words()).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < frame.words(); i++) {
            words.putLong(frame.word(i));
        }
        bytes(avro, words.array());
        return WireFormat.write(id, avro.toByteArray());
    }

    /** Avro's zigzag numbers of seven bits a byte. */
    private static void number(ByteArrayOutputStream out, long value) {
        long left = value << 1 ^ value >> Long.SIZE - 1;
        while ((left & ~LOW) != 0) {
            out.write((int) (left & LOW) | MORE);
            left >>>= SEVEN;
        }
        out.write((int) left);
    }

    private static void bytes(ByteArrayOutputStream out, byte[] value) {
        number(out, value.length);
        out.writeBytes(value);
    }

    /**
     * The frame of a record.
     *
     * @param id the number that the registry gave {@link #SCHEMA}
     * @param record the record in the wire format
     * @return the frame's bytes
     * @throws RegistryException if it is not such a record
     */
    public static byte[] read(int id, byte[] record) throws RegistryException {
        int found = WireFormat.id(record);
        if (found != id) {
            throw new RegistryException(Fault.OTHER_SCHEMA, Integer.toString(found));
        }
        Reader in = new Reader(ByteBuffer.wrap(record, WireFormat.HEAD, record.length - WireFormat.HEAD));
        byte[] frame = in.frame();
        try {
            if (!Arrays.equals(write(id, Frame.parse(frame)), record)) {
                throw malformed("it does not have the canonical encoding");
            }
        } catch (FrameException refused) {
            throw malformed(refused.getMessage());
        }
        return frame;
    }

    private static RegistryException malformed(String why) {
        return new RegistryException(Fault.NO_WIRE_FORMAT, why);
    }

    /** Reads Avro. */
    private record Reader(ByteBuffer in) {
        byte[] frame() throws RegistryException {
            long kind = number();
            if (kind < 0 || kind >= Frame.Kind.values().length) {
                throw malformed("its kind of event is unknown");
            }
            long session = number();
            long time = number();
            long previous = number();
            long count = number();
            byte[] tag = bytes();
            byte[] words = bytes();
            boolean opens = kind == Frame.Kind.OPENING.ordinal();
            boolean data = kind == Frame.Kind.DATA.ordinal();
            int length = 1 + 2 * Long.BYTES + (opens ? 0 : Long.BYTES) + (opens || data ? 0 : Long.BYTES);
            ByteBuffer frame = ByteBuffer.allocate(length + tag.length + words.length).order(ByteOrder.LITTLE_ENDIAN);
            frame.put((byte) (FIRST_KIND + kind)).putLong(session).putLong(time);
            if (!opens) {
                frame.putLong(previous);
            }
            if (!opens && !data) {
                frame.putLong(count);
            }
            return frame.put(tag).put(words).array();
        }

        private long number() throws RegistryException {
            long value = 0;
            for (int shift = 0; shift < Long.SIZE; shift += SEVEN) {
                if (!in.hasRemaining()) {
                    throw malformed("it ends early");
                }
                byte next = in.get();
                value |= (long) (next & LOW) << shift;
                if ((next & MORE) == 0) {
                    return value >>> 1 ^ -(value & 1);
                }
            }
            throw malformed("a number is too long");
        }

        private byte[] bytes() throws RegistryException {
            long length = number();
            if (length < 0 || length > in.remaining()) {
                throw malformed("it ends early");
            }
            byte[] bytes = new byte[(int) length];
            in.get(bytes);
            return bytes;
        }
    }
}
