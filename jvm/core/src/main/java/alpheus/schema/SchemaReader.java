// Parses a schema (Zeph §4.1, figure 3).
package alpheus.schema;

import alpheus.document.DocumentException;
import alpheus.document.Fields;
import alpheus.document.Node;
import alpheus.document.Problem;
import alpheus.layout.Layout;
import alpheus.layout.LayoutException;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Parses a schema in the form of the paper's figure 3, and also checks its layout. */
final class SchemaReader {
    static final long U32 = 0xffff_ffffL;
    private static final List<String> KEYS = List.of(
            "name", "version", "tick", "frames", "anchor", "capacity", "sizes", "sharedCount", "metadataAttributes",
            "streamAttributes", "streamPolicyOptions");
    private static final int MAX_ITEMS = 1000;
    private static final long TEN_SECONDS = 10_000_000L;
    private static final long MILLISECOND = 1_000L;
    private static final long DAY = 86_400_000_000L;
    private static final long MAX_EVENTS = 1L << 40;

    private SchemaReader() {}

    static Schema read(Node root) throws DocumentException {
        Fields fields = Fields.of(root, KEYS);
        long tick = fields.readOr("tick", TEN_SECONDS, SchemaReader::tick);
        Node stream = fields.required("streamAttributes");
        Schema bare = new Schema(
                fields.required("name").name(),
                fields.readOr("version", 1L, node -> node.integer(1, U32)),
                tick,
                fields.readOr("capacity", Capacity.DEFAULT, SchemaReader::capacity),
                fields.readOr("sharedCount", true, Node::bool),
                fields.readOr("metadataAttributes", List.of(), SchemaReader::metadata),
                AttributesReader.read(stream),
                List.of(),
                Frames.read(fields, tick));
        namesAreDistinct(fields, stream);
        Map<String, Long> sizes = fields.readOr("sizes", defaultSizes(), SchemaReader::sizes);
        Schema schema = bare.with(
                fields.readOr("streamPolicyOptions", List.of(), node -> OptionsReader.read(node, bare, sizes)));
        fitsAVector(schema, stream);
        return schema;
    }

    /** At most a day. Otherwise a session could span a whole day between two others. */
    private static long tick(Node node) throws DocumentException {
        long tick = node.duration();
        if (tick < MILLISECOND || tick > DAY) {
            throw node.error(Problem.OUT_OF_RANGE, "1ms", "1d");
        }
        return tick;
    }

    private static Capacity capacity(Node node) throws DocumentException {
        Fields fields = Fields.of(node, List.of("population", "events", "eventsPerSecond", "window"));
        long population = fields.required("population").integer(1, U32);
        if (fields.get("eventsPerSecond").isEmpty()) {
            fields.refuse("window", "`events`, which is already of one window");
            return new Capacity(population, fields.required("events").integer(1, MAX_EVENTS));
        }
        fields.refuse("events", "`eventsPerSecond`");
        Node rate = fields.required("eventsPerSecond");
        return new Capacity(population, eventsAt(rate, fields.required("window").duration()));
    }

    /** ⌈rate × window⌉, with the rate in millionths. */
    private static long eventsAt(Node rate, long window) throws DocumentException {
        BigInteger micro = BigInteger.valueOf(Math.max(rate.decimal(6), 0));
        BigInteger unit = BigInteger.TEN.pow(12);
        BigInteger events =
                micro.multiply(BigInteger.valueOf(window)).add(unit).subtract(BigInteger.ONE).divide(unit);
        if (events.signum() <= 0 || events.compareTo(BigInteger.valueOf(MAX_EVENTS)) > 0) {
            throw rate.error(Problem.OUT_OF_RANGE, "1 event", "2^40 events a window");
        }
        return events.longValueExact();
    }

    private static Map<String, Long> defaultSizes() {
        return new HashMap<>(Map.of("small", 10L, "medium", 100L, "large", 1000L));
    }

    private static Map<String, Long> sizes(Node node) throws DocumentException {
        Map<String, Long> sizes = defaultSizes();
        for (Map.Entry<String, Node> size : node.map().entrySet()) {
            sizes.put(size.getKey(), size.getValue().integer(1, U32));
        }
        return sizes;
    }

    private static List<MetadataAttribute> metadata(Node node) throws DocumentException {
        List<MetadataAttribute> all = new ArrayList<>();
        for (Node item : items(node)) {
            all.add(metadataAttribute(item));
        }
        return List.copyOf(all);
    }

    private static MetadataAttribute metadataAttribute(Node node) throws DocumentException {
        Fields fields = Fields.of(node, List.of("name", "type", "symbols", "optional"));
        String name = fields.required("name").name();
        Node kind = fields.required("type");
        boolean optional = fields.readOr("optional", false, Node::bool);
        int listed = -1;
        for (Node word : kind.oneOrList()) {
            int type = word.word(List.of("string", "enum", "optional"));
            if (type == 2) {
                optional = true;
            } else if (listed < 0) {
                listed = type;
            } else {
                throw word.expected("one type, and `optional` if a stream may lack it");
            }
        }
        if (listed < 0) {
            throw kind.expected("`string` or `enum`");
        }
        if (listed == 1) {
            return new MetadataAttribute(name, symbols(fields.required("symbols")), optional);
        }
        fields.refuse("symbols", "type `string`; make it `enum`");
        return new MetadataAttribute(name, List.of(), optional);
    }

    private static List<String> symbols(Node node) throws DocumentException {
        List<String> symbols = new ArrayList<>();
        for (Node item : items(node)) {
            String symbol = item.text();
            if (symbols.contains(symbol)) {
                throw item.error(Problem.DUPLICATE_NAME, symbol);
            }
            symbols.add(symbol);
        }
        return List.copyOf(symbols);
    }

    /** A list of one to the maximum number of items. */
    static List<Node> items(Node node) throws DocumentException {
        List<Node> items = node.list();
        if (items.isEmpty()) {
            throw node.error(Problem.EMPTY_LIST);
        }
        if (items.size() > MAX_ITEMS) {
            throw node.error(Problem.TOO_MANY, MAX_ITEMS);
        }
        return items;
    }

    /** Queries use one namespace for metadata and stream attributes, so names are unique. */
    private static void namesAreDistinct(Fields fields, Node stream) throws DocumentException {
        List<Node> all = new ArrayList<>();
        if (fields.get("metadataAttributes").isPresent()) {
            all.addAll(items(fields.required("metadataAttributes")));
        }
        all.addAll(items(stream));
        Set<String> seen = new HashSet<>();
        for (Node item : all) {
            Node name = item.map().get("name");
            if (name != null && !seen.add(Schema.folded(name.name()))) {
                throw name.error(Problem.DUPLICATE_NAME, name.name());
            }
        }
    }

    private static void fitsAVector(Schema schema, Node stream) throws DocumentException {
        try {
            Layout.of(schema);
        } catch (LayoutException refused) {
            if (refused.fault() == LayoutException.Fault.TOO_MANY_WORDS) {
                throw stream.error(Problem.TOO_MANY_WORDS, refused.number(), Layout.MAX_WORDS);
            }
            throw stream.list().get(refused.number()).error(Problem.SUM_TOO_LARGE);
        }
    }
}
