// Where an opening belongs.
package alpheus.tick;

import alpheus.crypto.VerifyingKey;
import alpheus.stream.SchemaId;
import alpheus.stream.StreamId;
import java.nio.ByteBuffer;

/**
 * Where an opening belongs. It is signed and sealed over this, besides its own bytes.
 *
 * @param authority the key of the deployment's authority
 * @param stream the stream
 * @param schema its schema
 */
public record OpeningContext(VerifyingKey authority, StreamId stream, SchemaId schema) {
    private static final int LENGTH = VerifyingKey.LENGTH + StreamId.LENGTH + SchemaId.LENGTH;

    /** The context, and the start of an opening. */
    byte[] with(byte[] frame, int length) {
        ByteBuffer out = ByteBuffer.allocate(LENGTH + length);
        out.put(authority.bytes()).put(stream.bytes()).put(schema.bytes());
        return out.put(frame, 0, length).array();
    }
}
