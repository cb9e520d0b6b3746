// Digests of sets of streams and of controllers. Digests of parts add up to that of the set.
package alpheus.flink;

import alpheus.crypto.LabelledHash;
import alpheus.stream.TickSum;
import java.nio.ByteBuffer;
import java.util.HexFormat;

/**
 * A digest of a set of streams, or of controllers, in a window: Σ SHA-256(label; plan, start, member) over
 * the set, as four words modulo 2^64. Parts of a set add up to the whole, in any order. A missing, repeated
 * or wrong member changes it. It guards against accidents, not against the operator of the job.
 */
final class SetDigest {
    /** Words of a digest. */
    static final int WORDS = 4;

    private static final String STREAMS = "alpheus/jvm/stream-set/v1";
    private static final String TOKENS = "alpheus/jvm/token-set/v1";

    private SetDigest() {}

    /** Adds a stream to a digest. */
    static void addStream(long[] digest, String plan, long start, String stream) {
        add(digest, STREAMS, plan, start, HexFormat.of().parseHex(stream));
    }

    /** Adds a controller's token to a digest. */
    static void addToken(long[] digest, String plan, long start, int controller) {
        add(digest, TOKENS, plan, start, ByteBuffer.allocate(Integer.BYTES).putInt(controller).array());
    }

    private static void add(long[] digest, String label, String plan, long start, byte[] member) {
        byte[] when = ByteBuffer.allocate(Long.BYTES).putLong(start).array();
        byte[] hash = LabelledHash.of(label, HexFormat.of().parseHex(plan), when, member);
        long[] words = new long[WORDS];
        ByteBuffer.wrap(hash).asLongBuffer().get(words);
        TickSum.add(digest, words);
    }
}
