// What a device sends of its events.
package alpheus.schema;

import alpheus.document.DocumentException;
import alpheus.document.Fields;
import alpheus.document.Node;
import alpheus.document.Problem;
import alpheus.stream.EventTime;
import java.util.List;

/** What a device sends of its events. */
public sealed interface Frames {
    /** A frame for each event, and one at each tick. */
    record Events() implements Frames {}

    /**
     * One frame for each tick, with the sum of its events. The service sees neither their times within the
     * tick nor their number.
     *
     * @param anchor at its multiples a session's sum and number of events start again, in microseconds; a
     *     multiple of the tick
     */
    record Ticks(long anchor) implements Frames {}

    /** Reads {@code frames} and {@code anchor} of a schema with this tick. */
    static Frames read(Fields fields, long tick) throws DocumentException {
        if (fields.readOr("frames", 1, node -> node.word(List.of("events", "ticks"))) == 0) {
            fields.refuse("anchor", "`frames: events`; remove it or use `frames: ticks`");
            return new Events();
        }
        long hour = EventTime.DAY / 24;
        return new Ticks(fields.readOr("anchor", EventTime.ceiling(hour, tick), node -> anchor(node, tick)));
    }

    /** At most a day, since a session ends with its day. */
    private static long anchor(Node node, long tick) throws DocumentException {
        long anchor = node.duration();
        if (anchor < tick || anchor > EventTime.DAY) {
            throw node.error(Problem.OUT_OF_RANGE, "the tick", "1d");
        }
        if (anchor % tick != 0) {
            throw node.error(Problem.NOT_MULTIPLE_OF_TICK);
        }
        return anchor;
    }
}
