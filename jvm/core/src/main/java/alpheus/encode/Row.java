// The values of one event. Rows are reused.
package alpheus.encode;

import java.util.Arrays;

/**
 * The values of one event, in the order of the schema's attributes. All are absent at first. A row is meant
 * to be reused: {@link #clear()} removes and overwrites the last event's values. Not safe for concurrent
 * use.
 */
public final class Row {
    static final byte ABSENT = 0;
    static final byte NUMBER = 1;
    static final byte TRUTH = 2;
    static final byte TEXT = 3;

    private final byte[] kinds;
    private final long[] numbers;
    private final byte[][] texts;

    Row(int attributes) {
        kinds = new byte[attributes];
        numbers = new long[attributes];
        texts = new byte[attributes][];
    }

    /**
     * The number of attributes.
     *
     * @return the number
     */
    public int size() {
        return kinds.length;
    }

    /** Makes all values absent, and overwrites them. */
    public void clear() {
        Arrays.fill(kinds, ABSENT);
        Arrays.fill(numbers, 0);
        for (byte[] text : texts) {
            if (text != null) {
                Arrays.fill(text, (byte) 0);
            }
        }
        Arrays.fill(texts, null);
    }

    /**
     * Sets a fixed-point number.
     *
     * @param attribute position of the attribute
     * @param scaled the integer value × 10^scale
     */
    public void number(int attribute, long scaled) {
        kinds[attribute] = NUMBER;
        numbers[attribute] = scaled;
    }

    /**
     * Sets a boolean.
     *
     * @param attribute position of the attribute
     * @param value the value
     */
    public void truth(int attribute, boolean value) {
        kinds[attribute] = TRUTH;
        numbers[attribute] = value ? 1 : 0;
    }

    /**
     * Sets a text.
     *
     * @param attribute position of the attribute
     * @param utf8 its bytes, which the row takes ownership of and overwrites
     */
    public void text(int attribute, byte[] utf8) {
        kinds[attribute] = TEXT;
        texts[attribute] = utf8;
    }

    byte kind(int attribute) {
        return kinds[attribute];
    }

    /** The number; a boolean is 0 or 1. */
    long number(int attribute) {
        return numbers[attribute];
    }

    boolean isNumeric(int attribute) {
        return kinds[attribute] == NUMBER || kinds[attribute] == TRUTH;
    }

    byte[] text(int attribute) {
        return texts[attribute];
    }
}
