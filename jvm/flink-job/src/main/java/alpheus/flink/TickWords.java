// The words of a tick's frame, until they are in the windows of all plans.
package alpheus.flink;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;

/**
 * The words of a tick's frame, until they are in the windows of all plans.
 *
 * @param tile its session and time
 * @param words its ciphertext
 */
record TickWords(Tile tile, long[] words) {
    void write(DataOutput out) throws IOException {
        tile.write(out);
        Wire.writeLongs(out, words);
    }

    static TickWords read(DataInput in) throws IOException {
        return new TickWords(Tile.read(in), Wire.readLongs(in));
    }
}
