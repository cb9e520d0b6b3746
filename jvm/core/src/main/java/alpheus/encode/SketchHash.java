// The cells of an item in a count-min sketch.
package alpheus.encode;

import alpheus.crypto.Digests;
import alpheus.crypto.LabelledHash;
import alpheus.schema.Aggregation;
import alpheus.stream.SchemaId;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.function.IntConsumer;

/**
 * The cells of an item in a count-min sketch. The hash is public and bound to schema, attribute and
 * aggregation. It protects no secret, but two sketches share no collisions.
 */
final class SketchHash {
    private static final String LABEL = "alpheus/sketch/v1";
    private static final int ROWS_A_BLOCK = 4;

    /** Seed and zeros, which fill SHA-256's first block. */
    private final byte[] seeded = new byte[64];

    private final int depth;
    private final int width;

    SketchHash(SchemaId schema, int attribute, int aggregation, Aggregation.Sketch shape) {
        byte[] seed = LabelledHash.of(LABEL, schema.bytes(), two(attribute), two(aggregation));
        System.arraycopy(seed, 0, seeded, 0, seed.length);
        depth = shape.depth();
        width = shape.width();
    }

    /** Returns the position of the item's cell in each row. */
    void visit(byte[] item, IntConsumer cell) {
        MessageDigest hash = Digests.sha256();
        for (int k = 0; ROWS_A_BLOCK * k < depth; k++) {
            hash.update(seeded);
            hash.update((byte) k);
            ByteBuffer block = ByteBuffer.wrap(hash.digest(item));
            for (int row = ROWS_A_BLOCK * k; row < Math.min(depth, ROWS_A_BLOCK * (k + 1)); row++) {
                cell.accept(row * width + column(block.getLong()));
            }
        }
    }

    /** ⌊hash · width / 2^64⌋ of an unsigned hash. */
    private int column(long hash) {
        long high = Math.multiplyHigh(hash, width);
        return (int) (hash < 0 ? high + width : high);
    }

    /** A number as the bytes of an item. */
    static byte[] numberItem(long scaled) {
        return ByteBuffer.allocate(Long.BYTES).putLong(scaled).array();
    }

    private static byte[] two(int number) {
        return new byte[] {(byte) (number >> 8), (byte) number};
    }
}
