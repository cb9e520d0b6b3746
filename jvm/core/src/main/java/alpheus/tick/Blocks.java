// How the words of an event are cut into the leaves of a tree.
package alpheus.tick;

import alpheus.crypto.MerkleRoot;
import alpheus.layout.Field;
import alpheus.layout.Layout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/**
 * How the words of an event are cut into the leaves of a tree. Words of different attributes are never in
 * one block, so a proof for one attribute shows nothing of another.
 */
public final class Blocks {
    /** The maximum number of words of a block: a proof shows whole blocks. */
    public static final int MAX = 8;

    private final int[] lengths;
    private final int words;

    /**
     * Blocks of these numbers of words.
     *
     * @param lengths the numbers, in order
     */
    public Blocks(int... lengths) {
        this.lengths = lengths.clone();
        int sum = 0;
        for (int length : lengths) {
            sum += length;
        }
        this.words = sum;
    }

    /**
     * The blocks of a layout.
     *
     * @param layout the layout
     * @return its blocks
     */
    public static Blocks of(Layout layout) {
        List<Integer> lengths = new ArrayList<>();
        List<Integer> owner = null;
        int run = 0;
        for (Field field : layout.fields()) {
            List<Integer> next = field.statistic().attributes();
            if (!next.equals(owner)) {
                cut(run, lengths);
                run = 0;
            }
            owner = next;
            run += field.words();
        }
        cut(run, lengths);
        // The check word has no owner.
        cut(1, lengths);
        return new Blocks(lengths.stream().mapToInt(Integer::intValue).toArray());
    }

    private static void cut(int run, List<Integer> lengths) {
        for (int left = run; left > 0; left -= MAX) {
            lengths.add(Math.min(left, MAX));
        }
    }

    /**
     * Words of an event.
     *
     * @return the sum of the lengths
     */
    public int words() {
        return words;
    }

    /**
     * The numbers of words.
     *
     * @return a copy, in order
     */
    public int[] lengths() {
        return lengths.clone();
    }

    /**
     * The root of the tree over a sum in these blocks.
     *
     * @param sum as many words as an event
     * @return 32 bytes
     */
    public byte[] root(long[] sum) {
        List<byte[]> leaves = new ArrayList<>(lengths.length);
        int at = 0;
        for (int number = 0; number < lengths.length; number++) {
            ByteBuffer leaf = ByteBuffer.allocate(2 * Integer.BYTES + Long.BYTES * lengths[number]);
            leaf.putInt(number).putInt(lengths[number]).order(ByteOrder.LITTLE_ENDIAN);
            for (int i = 0; i < lengths[number]; i++) {
                leaf.putLong(sum[at++]);
            }
            leaves.add(leaf.array());
        }
        return MerkleRoot.of(leaves);
    }

    /**
     * The start of that root.
     *
     * @param sum as many words as an event
     * @return 16 bytes
     */
    public Root prefix(long[] sum) {
        ByteBuffer root = ByteBuffer.wrap(root(sum));
        return new Root(root.getLong(), root.getLong());
    }
}
