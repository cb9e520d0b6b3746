// One stream's complete ticks of one window, as released.
package alpheus.flink;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** One stream's complete ticks of one window of one plan, as released. */
final class WindowState {
    private final long[] rows;
    private final List<TickMark> marks = new ArrayList<>();
    /** What the rows hold, if each tick has a frame; then there are no marks. */
    private final List<Tile> tiles = new ArrayList<>();
    /** Whether it was reported that the stream is complete. */
    private boolean reported;

    WindowState(int rows) {
        this(new long[rows]);
    }

    private WindowState(long[] rows) {
        this.rows = rows;
    }

    long[] rows() {
        return rows;
    }

    boolean isReported() {
        return reported;
    }

    void report() {
        reported = true;
    }

    void add(PlanView plan, OpenTick tick) {
        plan.release(tick.words(), rows);
        marks.add(tick.border());
    }

    /** Adds the words of a tick that has a frame. */
    void add(PlanView plan, TickWords tick) {
        plan.release(tick.words(), rows);
        Tile.add(tiles, tick.tile());
    }

    List<Tile> tiles() {
        return tiles;
    }

    /** Its ticks in order of time. */
    List<TickMark> marks() {
        List<TickMark> sorted = new ArrayList<>(marks);
        sorted.sort(Comparator.comparingLong(TickMark::end));
        return sorted;
    }

    void write(DataOutput out) throws IOException {
        Wire.writeLongs(out, rows);
        out.writeBoolean(reported);
        out.writeInt(marks.size());
        for (TickMark mark : marks) {
            mark.write(out);
        }
        out.writeInt(tiles.size());
        for (Tile tile : tiles) {
            tile.write(out);
        }
    }

    static WindowState read(DataInput in) throws IOException {
        WindowState window = new WindowState(Wire.readLongs(in));
        window.reported = in.readBoolean();
        for (int left = Wire.length(in); left > 0; left--) {
            window.marks.add(TickMark.read(in));
        }
        for (int left = Wire.length(in); left > 0; left--) {
            window.tiles.add(Tile.read(in));
        }
        return window;
    }
}
