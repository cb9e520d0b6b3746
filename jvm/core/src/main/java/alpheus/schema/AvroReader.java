// Converts an Avro record schema with Alpheus properties to its YAML form.
package alpheus.schema;

import alpheus.document.DocumentException;
import alpheus.document.Fields;
import alpheus.document.Node;
import alpheus.document.Position;
import alpheus.document.Problem;
import alpheus.document.Value.Entries;
import alpheus.document.Value.Items;
import alpheus.document.Value.Scalar;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads an .avsc that an ordinary registry accepts. Properties are under the key {@code alpheus} of the
 * record and of its fields, which other Avro readers ignore.
 */
final class AvroReader {
    static final List<String> FIELD = List.of("name", "type", "doc", "default", "order", "aliases", "alpheus");
    static final List<String> TYPE =
            List.of("type", "logicalType", "precision", "scale", "name", "namespace", "size");
    private static final List<String> RECORD =
            List.of("type", "name", "namespace", "doc", "aliases", "fields", "alpheus");
    private static final String TYPES = "int, long, boolean, string, a decimal of bytes or fixed, or a union of "
            + "one of them with null";

    private AvroReader() {}

    static Node document(String text) throws DocumentException {
        Node root = Node.fromJson(text);
        Fields fields = Fields.of(root, RECORD);
        if (!fields.required("type").text().equals("record")) {
            throw fields.required("type").expected("\"record\"");
        }
        AvroRules.record(fields);
        Map<String, Node> entries = properties(fields);
        if (!entries.containsKey("name")) {
            entries.put("name", simpleName(fields.required("name")));
        }
        Node list = fields.required("fields");
        List<Node> read = new ArrayList<>();
        for (Node node : list.list()) {
            read.add(field(node));
        }
        entries.putIfAbsent("streamAttributes", new Node(list.at(), new Items(read)));
        return new Node(root.at(), new Entries(entries));
    }

    /** The properties under {@code alpheus}. */
    private static Map<String, Node> properties(Fields fields) throws DocumentException {
        var own = fields.get("alpheus");
        return own.isPresent() ? new LinkedHashMap<>(own.get().map()) : new LinkedHashMap<>();
    }

    /** A record's name without its namespace. */
    private static Node simpleName(Node node) throws DocumentException {
        String name = node.text();
        return plain(node.at(), name.substring(name.lastIndexOf('.') + 1));
    }

    /** A field as the stream attribute of the YAML form. */
    private static Node field(Node node) throws DocumentException {
        Fields fields = Fields.of(node, FIELD);
        AvroRules.field(fields);
        Map<String, Node> entries = properties(fields);
        for (Map.Entry<String, Node> entry : entries.entrySet()) {
            if (entry.getKey().equals("type") || entry.getKey().equals("optional")) {
                throw entry.getValue()
                        .error(Problem.CONFLICT, entry.getKey(), "the Avro type, which says it");
            }
        }
        if (!entries.containsKey("name")) {
            entries.put("name", fields.required("name"));
        }
        kind(fields.required("type"), entries);
        return new Node(node.at(), new Entries(entries));
    }

    /** Adds the entries type, optional and scale that an Avro type implies. */
    private static void kind(Node node, Map<String, Node> entries) throws DocumentException {
        if (node.value() instanceof Items union) {
            List<Node> others = union.nodes().stream().filter(item -> !isNull(item)).toList();
            if (union.nodes().size() != 2 || others.size() != 1 || others.get(0).value() instanceof Items) {
                throw node.expected(TYPES);
            }
            kind(others.get(0), entries);
            entries.putIfAbsent("optional", plain(node.at(), "true"));
        } else if (node.value() instanceof Entries) {
            logical(node, entries);
        } else {
            primitive(node, node.text(), entries);
        }
    }

    private static boolean isNull(Node item) {
        return item.value() instanceof Scalar scalar && scalar.text().equals("null");
    }

    private static void primitive(Node node, String name, Map<String, Node> entries) throws DocumentException {
        String word = switch (name) {
            case "int", "long" -> "integer";
            case "boolean", "string" -> name;
            default -> throw node.expected(TYPES);
        };
        entries.putIfAbsent("type", plain(node.at(), word));
    }

    private static void logical(Node node, Map<String, Node> entries) throws DocumentException {
        Fields fields = Fields.of(node, TYPE);
        Node named = fields.required("type");
        String name = named.text();
        if (fields.get("logicalType").isEmpty()) {
            primitive(named, name, entries);
            return;
        }
        boolean bytes = name.equals("bytes") || name.equals("fixed");
        if (!bytes || !fields.required("logicalType").text().equals("decimal")) {
            throw node.expected(TYPES);
        }
        AvroRules.decimal(fields, name);
        entries.putIfAbsent("type", plain(named.at(), "decimal"));
        entries.putIfAbsent("scale", fields.get("scale").orElse(plain(node.at(), "0")));
    }

    private static Node plain(Position at, String text) {
        return new Node(at, new Scalar(text, true));
    }
}
