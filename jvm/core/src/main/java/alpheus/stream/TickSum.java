// The window sum as a commutative monoid.
package alpheus.stream;

import alpheus.crypto.LinkHash;
import java.util.Arrays;

/**
 * A sum over some events of one session and tick: the word-wise sum, the number of data events and the
 * public link digest, in any order of arrival. The links h(s, t_i) − h(s, t_{i−1}) telescope to h(s, b) −
 * h(s, a) exactly when every event came once. So a gap, a duplicate, a missing border or an event of
 * another session is detected without a secret. The probability of missing one is 2^-64.
 */
public final class TickSum {
    private final long[] words;
    private long count;
    private long digest;

    /**
     * The empty sum.
     *
     * @param words words of a vector
     */
    public TickSum(int words) {
        this(new long[words], 0, 0);
    }

    /**
     * A stored sum.
     *
     * @param words its words, of which it takes ownership
     * @param count data events in it
     * @param digest its link digest
     */
    public TickSum(long[] words, long count, long digest) {
        this.words = words;
        this.count = count;
        this.digest = digest;
    }

    /**
     * The word-wise sum modulo 2^64.
     *
     * @return its words, not a copy
     */
    public long[] words() {
        return words;
    }

    /**
     * Data events in it; borders do not count.
     *
     * @return the number
     */
    public long count() {
        return count;
    }

    /**
     * Σ h(s, t_i) − h(s, t_{i−1}) of all events in it, borders too.
     *
     * @return 64 bits
     */
    public long digest() {
        return digest;
    }

    /**
     * Adds an event with ciphertext, data or border.
     *
     * @param frame the event
     * @throws FrameException if it has another number of words; the sum does not change
     */
    public void add(Frame frame) throws FrameException {
        frame.addTo(words);
        digest += frame.link();
        count += frame.kind() == Frame.Kind.DATA ? 1 : 0;
    }

    /**
     * Adds another part of the same session and tick.
     *
     * @param other the part
     */
    public void merge(TickSum other) {
        if (other.words.length != words.length) {
            throw new IllegalArgumentException("sums of one schema have one length");
        }
        add(words, other.words);
        count += other.count;
        digest += other.digest;
    }

    /**
     * Whether it holds every event of a session in (from, to] exactly once.
     *
     * @param session the session
     * @param from the border before
     * @param to the last border
     * @return true if so
     */
    public boolean isComplete(long session, long from, long to) {
        return digest == expectedDigest(session, from, to);
    }

    /**
     * The digest of a tick or segment that is complete: h(s, to) − h(s, from).
     *
     * @param session the session
     * @param from the border before
     * @param to the last border
     * @return 64 bits
     */
    public static long expectedDigest(long session, long from, long to) {
        return LinkHash.of(session, to) - LinkHash.of(session, from);
    }

    /**
     * Adds word by word, modulo 2^64.
     *
     * @param sum the sum to add to
     * @param words the words to add, equally many
     */
    public static void add(long[] sum, long[] words) {
        for (int i = 0; i < sum.length; i++) {
            sum[i] += words[i];
        }
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof TickSum sum && sum.count == count && sum.digest == digest
                && Arrays.equals(sum.words, words);
    }

    @Override
    public int hashCode() {
        return Long.hashCode(digest);
    }
}
