// A stretch of one session whose ticks are in a window's rows.
package alpheus.flink;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.List;

/**
 * A stretch of one session whose ticks are in a window's rows.
 *
 * @param session the session
 * @param start where it starts
 * @param end where it ends
 */
record Tile(long session, long start, long end) {
    /** Adds a stretch, which continues others if possible. */
    static void add(List<Tile> tiles, Tile next) {
        Tile merged = next;
        for (int i = tiles.size() - 1; i >= 0; i--) {
            Tile each = tiles.get(i);
            if (each.session == next.session && (each.end == merged.start || each.start == merged.end)) {
                merged = new Tile(next.session, Math.min(each.start, merged.start), Math.max(each.end, merged.end));
                tiles.remove(i);
            }
        }
        tiles.add(merged);
    }

    void write(DataOutput out) throws IOException {
        out.writeLong(session);
        out.writeLong(start);
        out.writeLong(end);
    }

    static Tile read(DataInput in) throws IOException {
        return new Tile(in.readLong(), in.readLong(), in.readLong());
    }
}
