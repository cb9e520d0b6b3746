// A registry's wire format: a zero byte, the schema's number, Avro.
package alpheus.registry;

import alpheus.registry.RegistryException.Fault;
import java.nio.ByteBuffer;

/** A registry's wire format: a zero byte, the schema's number in four big-endian bytes, then Avro. */
public final class WireFormat {
    /** Bytes before Avro begins. */
    public static final int HEAD = 5;

    private static final byte MAGIC = 0;

    private WireFormat() {}

    /**
     * A record in the wire format.
     *
     * @param id the schema's number
     * @param avro the record
     * @return header and record
     */
    public static byte[] write(int id, byte[] avro) {
        return ByteBuffer.allocate(HEAD + avro.length).put(MAGIC).putInt(id).put(avro).array();
    }

    /**
     * Whether a record's first byte is that of the wire format. No frame of ours begins with it.
     *
     * @param record the record
     * @return whether it is
     */
    public static boolean isWireFormat(byte[] record) {
        return record.length > 0 && record[0] == MAGIC;
    }

    /**
     * The number of a record's schema.
     *
     * @param record the record
     * @return the number
     * @throws RegistryException if it is not in the wire format
     */
    public static int id(byte[] record) throws RegistryException {
        if (!isWireFormat(record) || record.length < HEAD) {
            throw new RegistryException(Fault.NO_WIRE_FORMAT, "it has no header of five bytes");
        }
        return ByteBuffer.wrap(record).getInt(1);
    }
}
