// Time in microseconds, as the cipher counts it.
package alpheus.stream;

/** Event time: microseconds since the Unix epoch, below 2^52. */
public final class EventTime {
    /** The first time that does not fit the cipher's 52 bits (the year 2112). */
    public static final long LIMIT = 1L << 52;
    /** A day, as UTC counts it. */
    public static final long DAY = 86_400_000_000L;
    /** Microseconds of a millisecond. */
    public static final long MILLISECOND = 1_000L;

    private EventTime() {}

    /**
     * The last multiple of a tick at or before a time.
     *
     * @param t the time
     * @param tick the tick
     * @return the multiple
     */
    public static long floor(long t, long tick) {
        return t - t % tick;
    }

    /**
     * The first multiple of a tick at or after a time.
     *
     * @param t the time
     * @param tick the tick
     * @return the multiple
     */
    public static long ceiling(long t, long tick) {
        return floor(t + tick - 1, tick);
    }
}
