// Avro's own rules for a record schema, so that an ordinary registry accepts it.
package alpheus.schema;

import alpheus.document.DocumentException;
import alpheus.document.Fields;
import alpheus.document.Node;
import alpheus.document.Problem;
import alpheus.document.Value.Entries;
import alpheus.document.Value.Items;
import alpheus.document.Value.Scalar;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;

/** Avro's rules for names, defaults and decimals. */
final class AvroRules {
    private static final Pattern NAME = Pattern.compile("[A-Za-z_][A-Za-z0-9_]*");
    private static final Pattern FULL = Pattern.compile("[A-Za-z_][A-Za-z0-9_]*(\\.[A-Za-z_][A-Za-z0-9_]*)*");
    private static final String EXPECTED_NAME = "a name of letters, digits and _, which begins with no digit,";
    private static final int MAX_PRECISION = 38;
    private static final int MAX_SIZE = 1 << 10;

    private AvroRules() {}

    /** A field's keys that other readers use. */
    static void field(Fields fields) throws DocumentException {
        name(fields.required("name"), NAME);
        described(fields);
        Optional<Node> order = fields.get("order");
        if (order.isPresent()) {
            order.get().word(List.of("ascending", "descending", "ignore"));
        }
        Optional<Node> value = fields.get("default");
        if (value.isPresent()) {
            fallback(fields.required("type"), value.get());
        } else {
            fields.required("type");
        }
    }

    /** A record's keys that other readers use. */
    static void record(Fields fields) throws DocumentException {
        name(fields.required("name"), FULL);
        described(fields);
        Optional<Node> namespace = fields.get("namespace");
        if (namespace.isPresent() && !isText(namespace.get(), "")) {
            name(namespace.get(), FULL);
        }
        Set<String> seen = new HashSet<>();
        for (Node node : fields.required("fields").list()) {
            Node name = Fields.of(node, AvroReader.FIELD).required("name");
            if (!seen.add(name.text())) {
                throw name.error(Problem.DUPLICATE_KEY, name.text());
            }
        }
    }

    /** A decimal of bytes, or of a fixed type with enough room for its digits. */
    static void decimal(Fields fields, String name) throws DocumentException {
        long precision = fields.required("precision").integer(1, MAX_PRECISION);
        Optional<Node> scale = fields.get("scale");
        if (scale.isPresent()) {
            scale.get().integer(0, precision);
        }
        if (name.equals("bytes")) {
            return;
        }
        name(fields.required("name"), FULL);
        Node size = fields.required("size");
        long bytes = size.integer(1, MAX_SIZE);
        if (precision > Math.floor((8 * bytes - 1) * Math.log10(2))) {
            throw size.expected("a size with room for `precision` digits");
        }
    }

    private static void described(Fields fields) throws DocumentException {
        Optional<Node> doc = fields.get("doc");
        if (doc.isPresent()) {
            quoted(doc.get());
        }
        Optional<Node> aliases = fields.get("aliases");
        if (aliases.isPresent()) {
            for (Node alias : aliases.get().list()) {
                name(alias, FULL);
            }
        }
    }

    private static void quoted(Node node) throws DocumentException {
        if (!(node.value() instanceof Scalar scalar) || scalar.plain()) {
            throw node.expected("a text in quotes");
        }
    }

    private static void name(Node node, Pattern pattern) throws DocumentException {
        quoted(node);
        if (!pattern.matcher(node.text()).matches()) {
            throw node.expected(EXPECTED_NAME);
        }
    }

    private static boolean isText(Node node, String text) {
        return node.value() instanceof Scalar scalar && scalar.text().equals(text);
    }

    private static void fallback(Node kind, Node value) throws DocumentException {
        if (kind.value() instanceof Items union) {
            if (!union.nodes().isEmpty()) {
                fallback(union.nodes().get(0), value);
            }
            return;
        }
        String name = kind.value() instanceof Entries
                ? Fields.of(kind, AvroReader.TYPE).required("type").text() : kind.text();
        if (!fits(name, value)) {
            throw value.expected("a value of the type, of a union's first type");
        }
    }

    private static boolean fits(String name, Node value) throws DocumentException {
        if (name.equals("null")) {
            return value.isNothing();
        }
        if (!(value.value() instanceof Scalar scalar)) {
            return false;
        }
        return switch (name) {
            case "boolean" -> scalar.plain() && (scalar.text().equals("true") || scalar.text().equals("false"));
            case "int" -> scalar.plain() && isInteger(scalar.text(), 31);
            case "long" -> scalar.plain() && isInteger(scalar.text(), 63);
            case "string", "bytes", "fixed" -> !scalar.plain();
            default -> false;
        };
    }

    private static boolean isInteger(String text, int bits) {
        return text.matches("[+-]?[0-9]{1,30}") && new java.math.BigInteger(text).bitLength() <= bits;
    }
}
