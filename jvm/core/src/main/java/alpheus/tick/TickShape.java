// The lengths that a schema fixes.
package alpheus.tick;

import alpheus.layout.Layout;
import alpheus.layout.LayoutException;
import alpheus.schema.Frames;
import alpheus.schema.Schema;
import java.util.Optional;

/**
 * The lengths that a schema with one frame a tick fixes.
 *
 * @param tick distance between borders, in microseconds
 * @param anchor sum and number of events start again at its multiples; a multiple of the tick
 * @param blocks the words of an event
 */
public record TickShape(long tick, long anchor, Blocks blocks) {
    /**
     * The lengths of a schema.
     *
     * @param schema the schema
     * @return its lengths; empty if each of its events has a frame
     * @throws LayoutException if it has no layout
     */
    public static Optional<TickShape> of(Schema schema) throws LayoutException {
        if (schema.frames() instanceof Frames.Ticks ticks) {
            return Optional.of(new TickShape(schema.tick(), ticks.anchor(), Blocks.of(Layout.of(schema))));
        }
        return Optional.empty();
    }
}
