// A node of a document, and its readers for scalars.
package alpheus.document;

import alpheus.document.Value.Entries;
import alpheus.document.Value.Items;
import alpheus.document.Value.Nothing;
import alpheus.document.Value.Scalar;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/**
 * A node of a YAML or JSON document, with its position.
 *
 * @param at its position
 * @param value its value
 */
public record Node(Position at, Value value) {
    private static final int MAX_BYTES = 1 << 20;
    private static final int LONGEST_TEXT = 256;
    private static final Pattern NAME = Pattern.compile("[A-Za-z_][A-Za-z0-9_-]{0,63}");

    /**
     * Reads a YAML document of plain lists, maps and scalars.
     *
     * @param text the document
     * @return its root
     * @throws DocumentException with line and column, if it is anything else
     */
    public static Node fromYaml(String text) throws DocumentException {
        checkLength(text);
        return YamlReader.read(text);
    }

    /**
     * Reads a JSON document.
     *
     * @param text the document
     * @return its root
     * @throws DocumentException with the JSON path, if it is not JSON, repeats a key, or holds a number
     *     with a fraction
     */
    public static Node fromJson(String text) throws DocumentException {
        checkLength(text);
        return JsonReader.read(text);
    }

    private static void checkLength(String text) throws DocumentException {
        if (text.length() > MAX_BYTES || utf8Length(text) > MAX_BYTES) {
            throw new DocumentException(Position.ROOT, Problem.TOO_LONG, MAX_BYTES);
        }
    }

    /**
     * An error about this node.
     *
     * @param problem what is wrong
     * @param details values for its message
     * @return the error, to be thrown
     */
    public DocumentException error(Problem problem, Object... details) {
        return new DocumentException(at, problem, details);
    }

    /**
     * An error that says what is expected here.
     *
     * @param what the expected value
     * @return the error, to be thrown
     */
    public DocumentException expected(String what) {
        return error(Problem.EXPECTED, what);
    }

    /**
     * Whether the value is empty.
     *
     * @return true for {@code null}
     */
    public boolean isNothing() {
        return value instanceof Nothing;
    }

    /**
     * The entries of a map.
     *
     * @return the values by key, in order
     * @throws DocumentException if it is none
     */
    public Map<String, Node> map() throws DocumentException {
        if (value instanceof Entries entries) {
            return entries.nodes();
        }
        throw expected("a map of keys and values");
    }

    /**
     * The items of a list.
     *
     * @return the items
     * @throws DocumentException if it is none
     */
    public List<Node> list() throws DocumentException {
        if (value instanceof Items items) {
            return items.nodes();
        }
        throw expected("a list");
    }

    /**
     * The items of a list, or a single item in place of a list.
     *
     * @return the items
     */
    public List<Node> oneOrList() {
        return value instanceof Items items ? items.nodes() : List.of(this);
    }

    /**
     * The text of a scalar.
     *
     * @return the text
     * @throws DocumentException if it is not a scalar, or too long
     */
    public String text() throws DocumentException {
        if (value instanceof Scalar scalar && utf8Length(scalar.text()) <= LONGEST_TEXT) {
            return scalar.text();
        }
        throw expected("a text of at most 256 bytes");
    }

    /**
     * An unquoted boolean.
     *
     * @return the value
     * @throws DocumentException if it is none
     */
    public boolean bool() throws DocumentException {
        if (value instanceof Scalar scalar && scalar.plain()) {
            if (scalar.text().equals("true")) {
                return true;
            }
            if (scalar.text().equals("false")) {
                return false;
            }
        }
        throw expected("true or false");
    }

    /**
     * A name that is valid in queries.
     *
     * @return the name
     * @throws DocumentException if it is none
     */
    public String name() throws DocumentException {
        String text = text();
        if (NAME.matcher(text).matches()) {
            return text;
        }
        throw error(Problem.BAD_NAME);
    }

    /**
     * A whole number in a range.
     *
     * @param least the minimum
     * @param most the maximum
     * @return the number
     * @throws DocumentException if it is not a whole number, or out of range
     */
    public long integer(long least, long most) throws DocumentException {
        long number = decimal(0);
        if (number < least || number > most) {
            throw error(Problem.OUT_OF_RANGE, least, most);
        }
        return number;
    }

    /**
     * A decimal as an integer in units of 10^-scale, without rounding.
     *
     * @param scale the decimal places
     * @return the scaled number
     * @throws DocumentException if it is not a number, too large or too fine
     */
    public long decimal(int scale) throws DocumentException {
        try {
            return Decimals.parseExact(text(), scale);
        } catch (DecimalException refused) {
            throw error(Problem.NUMBER, refused.getMessage());
        }
    }

    /**
     * One word of a list.
     *
     * @param allowed the words
     * @return the position of the word among them
     * @throws DocumentException if it is none of them
     */
    public int word(List<String> allowed) throws DocumentException {
        String text = text();
        int position = allowed.indexOf(text);
        if (position < 0) {
            throw error(Problem.UNKNOWN_WORD, text, String.join(", ", allowed));
        }
        return position;
    }

    /**
     * A duration of at least one microsecond.
     *
     * @return microseconds
     * @throws DocumentException if it is none
     */
    public long duration() throws DocumentException {
        return Durations.parse(text()).orElseThrow(() -> error(Problem.BAD_DURATION));
    }

    /**
     * A fraction between 0 and 1 in lowest terms.
     *
     * @return the fraction
     * @throws DocumentException if it is none
     */
    public Fraction fraction() throws DocumentException {
        return Fraction.parse(text()).orElseThrow(() -> error(Problem.BAD_FRACTION));
    }

    /** The position only: the value may be a secret. */
    @Override
    public String toString() {
        return "Node(" + at + ")";
    }

    private static int utf8Length(String text) {
        return text.getBytes(StandardCharsets.UTF_8).length;
    }
}
