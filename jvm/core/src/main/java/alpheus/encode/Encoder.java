// Encodes one event's values as words of a layout (Zeph §3.2).
package alpheus.encode;

import alpheus.encode.EncodeException.Fault;
import alpheus.layout.Field;
import alpheus.layout.Layout;
import alpheus.layout.LayoutException;
import alpheus.schema.Attribute;
import alpheus.schema.AttributeKind;
import alpheus.schema.Schema;
import java.util.List;
import java.util.random.RandomGenerator;

/**
 * Turns events of one schema into vectors of words. The encoding is compiled once. Encoding an event checks
 * every value against its declared bounds and adds each statistic to its cell. The encoder holds no secret
 * and is safe for concurrent use.
 */
public final class Encoder {
    private final Attribute[] attributes;
    private final Op[] ops;
    private final int words;

    /**
     * Compiles the encoding of a schema.
     *
     * @param schema the schema
     * @throws LayoutException if it has no layout; a schema read from a file always has one
     */
    public Encoder(Schema schema) throws LayoutException {
        Layout layout = Layout.of(schema);
        attributes = schema.attributes().toArray(Attribute[]::new);
        words = layout.words();
        List<Field> fields = layout.fields();
        ops = new Op[fields.size()];
        for (int i = 0; i < ops.length; i++) {
            ops[i] = Op.of(schema, fields.get(i));
        }
    }

    /**
     * The number of words of an event's vector, including the check word.
     *
     * @return the number
     */
    public int words() {
        return words;
    }

    /**
     * An empty row for this schema's events.
     *
     * @return a row
     */
    public Row row() {
        return new Row(attributes.length);
    }

    /**
     * Adds one event's encoding to a vector. All values are checked before the first word changes, so an
     * event is never half encoded. The check word does not change.
     *
     * @param row the event
     * @param random source of the words of {@code any} and {@code all} only
     * @param vector {@link #words()} words, usually zeros
     * @throws EncodeException if a value is not as declared
     */
    public void encode(Row row, RandomGenerator random, long[] vector) throws EncodeException {
        if (row.size() != attributes.length || vector.length != words) {
            throw new IllegalArgumentException("the row and the vector must have the size of this encoder");
        }
        check(row);
        for (Op op : ops) {
            op.add(row, random, vector);
        }
    }

    private void check(Row row) throws EncodeException {
        for (int i = 0; i < attributes.length; i++) {
            if (!admits(attributes[i], row, i)) {
                throw refusal(attributes[i], row, i);
            }
        }
    }

    private static boolean admits(Attribute attribute, Row row, int i) {
        byte kind = row.kind(i);
        if (kind == Row.ABSENT) {
            return attribute.optional();
        }
        if (attribute.kind() instanceof AttributeKind.Numeric number) {
            return kind == Row.NUMBER && number.min() <= row.number(i) && row.number(i) <= number.max();
        }
        if (attribute.kind() instanceof AttributeKind.Text text) {
            return kind == Row.TEXT && row.text(i).length <= text.maxBytes();
        }
        return kind == Row.TRUTH;
    }

    private static EncodeException refusal(Attribute attribute, Row row, int i) {
        String name = attribute.name();
        byte kind = row.kind(i);
        if (kind == Row.ABSENT) {
            return new EncodeException(Fault.MISSING, name, "");
        }
        if (attribute.kind() instanceof AttributeKind.Numeric number) {
            String bounds = number.min() + ".." + number.max() + " (in units of 10^-" + number.scale() + ")";
            return kind == Row.NUMBER ? new EncodeException(Fault.OUT_OF_BOUNDS, name, bounds)
                    : new EncodeException(Fault.WRONG_TYPE, name, "number");
        }
        if (attribute.kind() instanceof AttributeKind.Text text) {
            return kind == Row.TEXT ? new EncodeException(Fault.TOO_LONG, name, text.maxBytes())
                    : new EncodeException(Fault.WRONG_TYPE, name, "text");
        }
        return new EncodeException(Fault.WRONG_TYPE, name, "truth value");
    }
}
