// The public link hash of the window sums.
package alpheus.crypto;

/**
 * The public link hash h(session, t). Its telescoping sum shows whether a tick holds every event exactly
 * once. It guards against accidents, not adversaries. For one session it is a bijection of t and far from
 * linear. So a gap in one place cancels a duplicate in another with a probability of 2^-64 only.
 */
public final class LinkHash {
    private static final long GOLDEN = 0x9e37_79b9_7f4a_7c15L;
    private static final long FIRST = 0xbf58_476d_1ce4_e5b9L;
    private static final long SECOND = 0x94d0_49bb_1331_11ebL;

    private LinkHash() {}

    /**
     * h(session, t) = mix(mix(session ⊕ c) ⊕ t).
     *
     * @param session the session
     * @param t the time in microseconds
     * @return 64 bits
     */
    public static long of(long session, long t) {
        return mix(mix(session ^ GOLDEN) ^ t);
    }

    private static long mix(long z) {
        long a = (z ^ (z >>> 30)) * FIRST;
        long b = (a ^ (a >>> 27)) * SECOND;
        return b ^ (b >>> 31);
    }
}
