// The place of each statistic in an event's vector of 64-bit words.
package alpheus.layout;

import alpheus.schema.Schema;
import java.util.List;

/**
 * The place of each statistic in an event's vector of 64-bit words. It is a function of the schema alone,
 * so producer, controller and consumer agree on it by agreeing on the schema's id.
 *
 * @param fields the fields, in order of their words
 * @param words words in a vector; the last is the check word, zero in every event
 */
public record Layout(List<Field> fields, int words) {
    /** Words of the longest vector: the cipher counts its blocks of two in 12 bits. */
    public static final int MAX_WORDS = 8192;

    /**
     * The layout of a schema's events: the statistics that its attributes offer, each once, in schema
     * order, then the event count if anything shares it, then the check word.
     *
     * @param schema the schema
     * @return its layout
     * @throws LayoutException if a worst-case sum does not fit in two words, or the vector is too long
     */
    public static Layout of(Schema schema) throws LayoutException {
        return new LayoutBuilder(schema).build();
    }

    /**
     * Position of the check word.
     *
     * @return the position of the last word
     */
    public int checkWord() {
        return words - 1;
    }
}
