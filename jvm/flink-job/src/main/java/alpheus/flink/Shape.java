// The part of a schema that the job needs.
package alpheus.flink;

import java.io.Serializable;

/**
 * The part of a schema that the job needs.
 * @param words words of an event, including the check word
 * @param tick the tick in microseconds
 * @param events maximum number of events of one stream in one window
 * @param skew how far event time may run ahead of the clock, in microseconds
 * @param schema its id, in hexadecimal; state of another schema is rejected
 * @param ticks what it needs besides if each tick has a frame; null if each event has one
 */
public record Shape(int words, long tick, long events, long skew, String schema, TickMode ticks)
        implements Serializable {
    /**
     * The same, for a schema with a frame for each event.
     *
     * @param words words of an event, including the check word
     * @param tick the tick in microseconds
     * @param events maximum number of events of one stream in one window
     * @param skew how far event time may run ahead of the clock, in microseconds
     * @param schema its id, in hexadecimal
     */
    public Shape(int words, long tick, long events, long skew, String schema) {
        this(words, tick, events, skew, schema, null);
    }

    /** Whether each tick has a frame. */
    boolean hasFramePerTick() {
        return ticks != null;
    }

    /** The end of the tick that holds a time between ticks, or the time itself on one. */
    long tickEnd(long t) {
        return t % tick == 0 ? t : t - t % tick + tick;
    }
}
