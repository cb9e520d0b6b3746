// How the cells of a field are packed into words.
package alpheus.layout;

/** How the cells of a field are packed into words. */
public sealed interface Packing {
    /** One word a cell, two's complement. */
    record Whole() implements Packing {}

    /**
     * Signed digits, with the first cell lowest. The window's sum of each fits, so there is no carry.
     *
     * @param bits width of a digit, sign included
     * @param perWord digits in a word
     */
    record Digits(int bits, int perWord) implements Packing {}

    /** Two words a cell: the value's low 32 bits, then the rest, signed. */
    record Limbs() implements Packing {}
}
