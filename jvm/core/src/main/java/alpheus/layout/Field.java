// A run of cells that hold one kind of statistic.
package alpheus.layout;

/**
 * A run of cells that hold one kind of statistic.
 *
 * @param statistic what its cells sum
 * @param first its first word
 * @param cells how many cells it has
 * @param packing how its cells are packed into words
 */
public record Field(Statistic statistic, int first, int cells, Packing packing) {
    /**
     * The number of words.
     *
     * @return the number
     */
    public int words() {
        if (packing instanceof Packing.Digits digits) {
            return (cells + digits.perWord() - 1) / digits.perWord();
        }
        return packing instanceof Packing.Limbs ? 2 * cells : cells;
    }

    /**
     * The place of a cell.
     *
     * @param i the cell, below {@link #cells()}
     * @return the place
     */
    public Cell cell(int i) {
        if (packing instanceof Packing.Digits digits) {
            return new Cell(first + i / digits.perWord(), i % digits.perWord() * digits.bits(), false);
        }
        boolean limbs = packing instanceof Packing.Limbs;
        return new Cell(first + (limbs ? 2 * i : i), 0, limbs);
    }

    /**
     * The place of a cell.
     *
     * @param word its (first) word
     * @param shift its digit's place in the word, in bits
     * @param limbs whether it takes two words
     */
    public record Cell(int word, int shift, boolean limbs) {}
}
