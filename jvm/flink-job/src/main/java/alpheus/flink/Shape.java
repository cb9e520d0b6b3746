// What the job needs to know of a schema.
package alpheus.flink;

import java.io.Serializable;

/**
 * What the job needs to know of a schema.
 *
 * @param words words of an event, the check word included
 * @param tick distance of borders in microseconds
 * @param events events of one stream in one window at most
 * @param skew how far event time may run ahead of the clock, in microseconds
 * @param schema its id, in hexadecimal: state of another is not taken over
 */
public record Shape(int words, long tick, long events, long skew, String schema) implements Serializable {
    /** The end of the tick that holds a time between ticks, or the time itself on one. */
    long tickEnd(long t) {
        return t % tick == 0 ? t : t - t % tick + tick;
    }
}
