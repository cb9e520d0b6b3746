// A digest of a set of streams that parts of the set add up to.
package alpheus.flink;

import alpheus.crypto.LabelledHash;
import alpheus.stream.TickSum;
import java.nio.ByteBuffer;
import java.util.HexFormat;

/**
 * A digest of a set of streams in a window: Σ SHA-256(label; plan, start, stream) over the set, as four
 * words modulo 2^64. Parts of a set add up to the whole, in any order; a stream that is missing, doubled
 * or another shows. It guards against accidents, not against whoever runs the job.
 */
final class StreamDigest {
    /** Words of a digest. */
    static final int WORDS = 4;

    private static final String LABEL = "alpheus/jvm/stream-set/v1";

    private StreamDigest() {}

    /** Adds a stream to a digest. */
    static void add(long[] digest, String plan, long start, String stream) {
        byte[] when = ByteBuffer.allocate(Long.BYTES).putLong(start).array();
        byte[] hash =
                LabelledHash.of(LABEL, HexFormat.of().parseHex(plan), when, HexFormat.of().parseHex(stream));
        long[] words = new long[WORDS];
        ByteBuffer.wrap(hash).asLongBuffer().get(words);
        TickSum.add(digest, words);
    }
}
