// Parses the aggregations of one attribute.
package alpheus.schema;

import alpheus.document.DocumentException;
import alpheus.document.Fields;
import alpheus.document.Node;
import alpheus.document.Problem;
import alpheus.layout.Layout;
import alpheus.schema.Aggregation.Simple;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Parses the aggregations of one attribute, which may refer to others. */
final class AggregationsReader {
    private static final List<String> WORDS =
            List.of("count", "sum", "mean", "avg", "var", "variance", "stddev", "any", "all");
    private static final List<Simple> MEANINGS = List.of(
            Simple.COUNT, Simple.SUM, Simple.MEAN, Simple.MEAN, Simple.VARIANCE, Simple.VARIANCE,
            Simple.VARIANCE, Simple.ANY, Simple.ALL);
    private static final List<String> MAPS = List.of("histogram", "regression", "by", "threshold", "sketch");
    private static final List<String> STATISTICS =
            List.of("count", "sum", "mean", "avg", "squares", "var", "variance");
    private static final List<Integer> ORDERS = List.of(0, 1, 1, 1, 2, 2, 2);
    private static final int MAX_DEPTH = 32;

    private final List<Attribute> attributes;
    private final int position;
    private final Attribute own;

    AggregationsReader(List<Attribute> attributes, int position) {
        this.attributes = attributes;
        this.position = position;
        this.own = attributes.get(position);
    }

    List<Aggregation> all(Node list) throws DocumentException {
        List<Aggregation> all = new ArrayList<>();
        for (Node item : SchemaReader.items(list)) {
            boolean isMap = item.value() instanceof alpheus.document.Value.Entries;
            Aggregation read = isMap ? map(item) : word(item);
            if (all.contains(read)) {
                throw item.error(Problem.DUPLICATE_NAME, isMap ? item.map().keySet().iterator().next() : item.text());
            }
            all.add(read);
        }
        return all;
    }

    private Aggregation map(Node item) throws DocumentException {
        if (item.map().size() != 1) {
            throw item.expected("one aggregation per item, as in `- histogram: {…}`");
        }
        Map.Entry<String, Node> entry = item.map().entrySet().iterator().next();
        Node value = entry.getValue();
        return switch (entry.getKey()) {
            case "histogram" -> histogram(value);
            case "regression" -> regression(value);
            case "by" -> by(value);
            case "threshold" -> new Aggregation.Threshold(value.decimal(ownScale(value, "threshold")));
            case "sketch" -> sketch(value);
            default -> throw value.error(Problem.UNKNOWN_KEY, entry.getKey(), String.join(", ", MAPS));
        };
    }

    private Aggregation word(Node item) throws DocumentException {
        int index = item.word(WORDS);
        Simple read = MEANINGS.get(index);
        boolean fits = switch (read) {
            case COUNT -> true;
            case ANY, ALL -> own.kind() instanceof AttributeKind.Truth;
            case SUM, MEAN, VARIANCE -> own.kind() instanceof AttributeKind.Numeric;
        };
        if (!fits) {
            throw wrongType(item, WORDS.get(index));
        }
        return read;
    }

    private Aggregation histogram(Node node) throws DocumentException {
        Fields fields = Fields.of(node, List.of("lo", "width", "bins", "edges"));
        int scale = ownScale(node, "histogram");
        return new Aggregation.Histogram(edges(fields, scale));
    }

    private Aggregation regression(Node node) throws DocumentException {
        ownScale(node, "regression");
        Fields fields = Fields.of(node, List.of("x", "r2"));
        int x = other(fields.required("x"));
        return new Aggregation.Regression(x, fields.readOr("r2", false, Node::bool));
    }

    private Aggregation by(Node node) throws DocumentException {
        Fields fields = Fields.of(node, List.of("attribute", "lo", "width", "bins", "edges", "statistics"));
        int attribute = other(fields.required("attribute"));
        int order = fields.readOr("statistics", 1, AggregationsReader::statistics);
        if (order > 0) {
            ownScale(node, "by");
        }
        int scale = ((AttributeKind.Numeric) attributes.get(attribute).kind()).scale();
        return new Aggregation.By(attribute, edges(fields, scale), order);
    }

    /** Position of another attribute that is a number. */
    private int other(Node node) throws DocumentException {
        String name = node.name();
        String folded = Schema.folded(name);
        for (int i = 0; i < attributes.size(); i++) {
            if (!Schema.folded(attributes.get(i).name()).equals(folded)) {
                continue;
            }
            if (i == position) {
                throw node.expected("another attribute than this one");
            }
            if (!(attributes.get(i).kind() instanceof AttributeKind.Numeric)) {
                throw node.expected("an attribute that is a number");
            }
            return i;
        }
        throw node.error(Problem.UNKNOWN_ATTRIBUTE, name);
    }

    /** The scale of this attribute, which must be a number. */
    private int ownScale(Node node, String aggregation) throws DocumentException {
        if (own.kind() instanceof AttributeKind.Numeric number) {
            return number.scale();
        }
        throw wrongType(node, aggregation);
    }

    private DocumentException wrongType(Node node, String aggregation) {
        String kind = own.kind() instanceof AttributeKind.Truth ? "boolean"
                : own.kind() instanceof AttributeKind.Text ? "string" : "integer or decimal";
        return node.error(Problem.WRONG_TYPE, kind, aggregation);
    }

    /** The highest moment that the listed statistics need. */
    private static int statistics(Node node) throws DocumentException {
        int most = -1;
        for (Node item : node.oneOrList()) {
            most = Math.max(most, ORDERS.get(item.word(STATISTICS)));
        }
        if (most < 0) {
            throw node.error(Problem.EMPTY_LIST);
        }
        return most;
    }

    private static Aggregation sketch(Node node) throws DocumentException {
        Fields fields = Fields.of(node, List.of("depth", "width"));
        int depth = (int) fields.required("depth").integer(1, MAX_DEPTH);
        return new Aggregation.Sketch(depth, (int) fields.required("width").integer(2, Layout.MAX_WORDS));
    }

    /** Edges in units of 10^-scale: lo, width and bins, or edges. */
    private static Edges edges(Fields fields, int scale) throws DocumentException {
        if (fields.get("edges").isPresent()) {
            for (String key : List.of("lo", "width", "bins")) {
                fields.refuse(key, "`edges`");
            }
            return new Edges.Explicit(ascending(fields.required("edges"), scale));
        }
        long lo = fields.required("lo").decimal(scale);
        Node wide = fields.required("width");
        long width = wide.decimal(scale);
        if (width <= 0) {
            throw wide.error(Problem.OUT_OF_RANGE, "above 0", "any width");
        }
        int bins = (int) fields.required("bins").integer(1, Layout.MAX_WORDS);
        try {
            Math.addExact(lo, Math.multiplyExact(width, bins));
        } catch (ArithmeticException beyond) {
            throw wide.error(Problem.NUMBER, "the last edge does not fit 64 bits; use a smaller scale or unit");
        }
        return new Edges.Uniform(lo, width, bins);
    }

    /** Strictly ascending edges. */
    static List<Long> ascending(Node list, int scale) throws DocumentException {
        List<Node> items = list.list();
        if (items.size() > Layout.MAX_WORDS) {
            throw list.error(Problem.TOO_MANY, Layout.MAX_WORDS);
        }
        List<Long> edges = new ArrayList<>();
        for (Node item : items) {
            long edge = item.decimal(scale);
            if (!edges.isEmpty() && edges.get(edges.size() - 1) >= edge) {
                throw item.error(Problem.EDGES_NOT_ASCENDING);
            }
            edges.add(edge);
        }
        if (edges.isEmpty()) {
            throw list.error(Problem.EMPTY_LIST);
        }
        return List.copyOf(edges);
    }
}
