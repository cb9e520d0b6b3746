// Makes and opens claims under a stream's keys.
package alpheus.tick;

import alpheus.stream.StreamKeys;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.Optional;

/** Makes and opens claims under a stream's keys. */
public final class Claims {
    private Claims() {}

    /**
     * Makes the claim that states this.
     *
     * @param keys the stream's keys
     * @param statement what it states
     * @return the claim
     */
    public static Claim make(StreamKeys keys, Statement statement) {
        long pad = pad(keys, statement.kind(), statement.session(), statement.to());
        return new Claim(
                statement.kind(), statement.session(), statement.from(), statement.to(), statement.count() + pad,
                statement.root(), tag(keys, statement));
    }

    /**
     * Checks a claim, and says what it states.
     *
     * @param keys the stream's keys
     * @param claim the claim
     * @return the statement; empty if the device of this stream did not state it
     */
    public static Optional<Statement> open(StreamKeys keys, Claim claim) {
        long count = claim.maskedCount() - pad(keys, claim.kind(), claim.session(), claim.to());
        Statement statement =
                new Statement(claim.kind(), claim.session(), claim.from(), claim.to(), count, claim.root());
        return MessageDigest.isEqual(tag(keys, statement), claim.tag()) ? Optional.of(statement) : Optional.empty();
    }

    /** The pad over a frame's count. An opening counts nothing, and has none. */
    private static long pad(StreamKeys keys, ClaimKind kind, long session, long to) {
        return kind == ClaimKind.OPENING ? 0 : keys.countPad(session, to);
    }

    private static byte[] tag(StreamKeys keys, Statement statement) {
        ByteBuffer root = ByteBuffer.allocate(2 * Long.BYTES);
        root.putLong(statement.root().high()).putLong(statement.root().low());
        return keys.tickTag(
                statement.kind().ordinal(), statement.session(), statement.from(), statement.to(), statement.count(),
                root.array());
    }
}
