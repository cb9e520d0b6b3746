// Parses stream attributes.
package alpheus.schema;

import alpheus.document.DocumentException;
import alpheus.document.Fields;
import alpheus.document.Node;
import alpheus.document.Problem;
import java.util.ArrayList;
import java.util.List;

/** Reads the list of stream attributes. */
final class AttributesReader {
    private static final List<String> KEYS = List.of(
            "name", "type", "scale", "min", "max", "unit", "optional", "maxBytes", "aggregations");
    private static final List<String> TYPES = List.of("integer", "decimal", "boolean", "string", "optional");
    private static final int INTEGER = 0;
    private static final int DECIMAL = 1;
    private static final int BOOLEAN = 2;
    private static final int OPTIONAL = 4;
    private static final int MAX_SCALE = 18;
    private static final int DEFAULT_MAX_BYTES = 256;
    private static final int MAX_BYTES = 0xffff;

    private AttributesReader() {}

    static List<Attribute> read(Node node) throws DocumentException {
        List<Node> items = SchemaReader.items(node);
        // Aggregations may name later attributes, so types are parsed first.
        List<Attribute> attributes = new ArrayList<>();
        for (Node item : items) {
            attributes.add(header(item));
        }
        List<Attribute> headers = List.copyOf(attributes);
        for (int position = 0; position < items.size(); position++) {
            var list = Fields.of(items.get(position), KEYS).get("aggregations");
            if (list.isPresent()) {
                var read = new AggregationsReader(headers, position).all(list.get());
                attributes.set(position, headers.get(position).with(read));
            }
        }
        return List.copyOf(attributes);
    }

    /** An attribute without its aggregations. */
    private static Attribute header(Node item) throws DocumentException {
        Fields fields = Fields.of(item, KEYS);
        Node named = fields.required("type");
        boolean optional = fields.readOr("optional", false, Node::bool);
        int type = -1;
        for (Node word : named.oneOrList()) {
            int found = word.word(TYPES);
            if (found == OPTIONAL) {
                optional = true;
            } else if (type < 0) {
                type = found;
            } else {
                throw word.expected("one type, and `optional` if an event may lack it");
            }
        }
        if (type < 0) {
            throw named.expected("`integer`, `decimal`, `boolean` or `string`");
        }
        AttributeKind kind = kind(fields, type);
        String name = fields.required("name").name();
        return new Attribute(name, kind, fields.readOr("unit", "", Node::text), optional, List.of());
    }

    private static AttributeKind kind(Fields fields, int type) throws DocumentException {
        if (type == INTEGER || type == DECIMAL) {
            return number(fields, type == DECIMAL);
        }
        if (type == BOOLEAN) {
            fields.refuse("maxBytes", "type `boolean`");
            noBounds(fields, "type `boolean`");
            return new AttributeKind.Truth();
        }
        int maxBytes = fields.readOr("maxBytes", DEFAULT_MAX_BYTES, node -> (int) node.integer(1, MAX_BYTES));
        noBounds(fields, "type `string`");
        return new AttributeKind.Text(maxBytes);
    }

    private static AttributeKind number(Fields fields, boolean decimal) throws DocumentException {
        fields.refuse("maxBytes", "a number");
        AttributeKind.Numeric number;
        if (decimal) {
            int scale = (int) fields.required("scale").integer(0, MAX_SCALE);
            number = new AttributeKind.Numeric(
                    scale, fields.required("min").decimal(scale), fields.required("max").decimal(scale));
        } else {
            fields.refuse("scale", "type `integer`; make it `decimal`");
            number = new AttributeKind.Numeric(
                    0,
                    fields.readOr("min", (long) Integer.MIN_VALUE, node -> node.decimal(0)),
                    fields.readOr("max", (long) Integer.MAX_VALUE, node -> node.decimal(0)));
        }
        if (number.min() > number.max()) {
            throw fields.get("min").orElse(fields.node()).error(Problem.MIN_ABOVE_MAX);
        }
        return number;
    }

    private static void noBounds(Fields fields, String with) throws DocumentException {
        for (String key : List.of("scale", "min", "max")) {
            fields.refuse(key, with);
        }
    }
}
