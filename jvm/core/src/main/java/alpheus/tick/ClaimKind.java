// The kinds of tick frames.
package alpheus.tick;

/** The kind of a frame. The ordinal is the number in its MAC, and that plus 0x20 the frame's first byte. */
public enum ClaimKind {
    /** The first frame of a session. It covers no time. */
    OPENING,
    /** A tick of a device that was awake. */
    TICK,
    /** Ticks that passed while the device was asleep. Nothing happened in them. */
    GAP,
    /** The last tick of a session that ends properly. */
    CLOSING_TICK,
    /** The same for a device that was asleep at its session's end. */
    CLOSING_GAP;

    /**
     * Whether nothing happened in the time that the frame covers, and its words are absent.
     *
     * @return true of gaps
     */
    public boolean isGap() {
        return this == GAP || this == CLOSING_GAP;
    }

    /**
     * Whether the session ends with the frame.
     *
     * @return true of closing frames
     */
    public boolean isClosing() {
        return this == CLOSING_TICK || this == CLOSING_GAP;
    }
}
