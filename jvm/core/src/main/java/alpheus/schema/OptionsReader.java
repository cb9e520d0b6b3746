// Parses the policy options of a schema.
package alpheus.schema;

import alpheus.document.DocumentException;
import alpheus.document.Fields;
import alpheus.document.Fraction;
import alpheus.document.Node;
import alpheus.document.Problem;
import alpheus.document.Value.Scalar;
import alpheus.schema.PolicyOption.Kind;
import alpheus.schema.PolicyOption.NamedSize;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.IntStream;

/** Reads one option; {@link #read} reads the list. */
final class OptionsReader {
    private static final List<String> KEYS = List.of(
            "name", "option", "attributes", "window", "windows", "clients", "minimumPopulation", "generalise",
            "budget", "to", "alpha", "colluders", "dropout", "missingTicks", "splitPopulations", "trusted",
            "integrity");
    private static final List<String> INTEGRITY = List.of("allowed", "none");
    private static final List<String> KINDS =
            List.of("private", "public", "stream-aggregate", "aggregate", "dp-aggregate");
    private static final List<String> POPULATION =
            List.of("clients", "minimumPopulation", "splitPopulations", "trusted", "alpha", "colluders", "dropout");
    private static final List<String> REST = List.of("window", "windows", "generalise", "to", "missingTicks",
            "integrity");
    private static final long DEFAULT_COLLUDERS = 8;
    private static final String DEFAULT_SIZE = "small";

    private final Fields fields;
    private final Schema schema;
    private final Map<String, Long> sizes;

    private OptionsReader(Fields fields, Schema schema, Map<String, Long> sizes) {
        this.fields = fields;
        this.schema = schema;
        this.sizes = sizes;
    }

    static List<PolicyOption> read(Node node, Schema schema, Map<String, Long> sizes) throws DocumentException {
        List<PolicyOption> options = new ArrayList<>();
        Set<String> names = new HashSet<>();
        for (Node item : SchemaReader.items(node)) {
            PolicyOption option = new OptionsReader(Fields.of(item, KEYS), schema, sizes).option();
            if (!names.add(option.name())) {
                throw item.error(Problem.DUPLICATE_NAME, option.name());
            }
            options.add(option);
        }
        return List.copyOf(options);
    }

    private PolicyOption option() throws DocumentException {
        Kind kind = Kind.values()[fields.required("option").word(KINDS)];
        refuseOthers(kind);
        boolean many = kind.isOfMany();
        Fraction alpha = fields.readOr("alpha", many ? Fraction.THIRD : Fraction.ZERO, Node::fraction);
        // Who expects no collusion at all expects none of a number either.
        long colluders = alpha.numerator() == 0 ? 0 : DEFAULT_COLLUDERS;
        return new PolicyOption(
                fields.required("name").name(),
                kind,
                attributes(),
                windows(),
                many ? clients() : List.of(1L),
                namedClients(),
                generalise(),
                kind == Kind.DP_AGGREGATE ? Optional.of(BudgetReader.read(fields.required("budget"))) : Optional.empty(),
                fields.readOr("to", List.of(), OptionsReader::consumers),
                alpha,
                fields.readOr("colluders", colluders, node -> node.integer(0, SchemaReader.U32)),
                fields.readOr("dropout", many ? Fraction.FIFTH : Fraction.ONE, Node::fraction),
                fields.readOr("missingTicks", 0L, node -> node.integer(0, SchemaReader.U32)),
                fields.readOr("splitPopulations", false, OptionsReader::onePopulation),
                fields.readOr("trusted", List.of(), OptionsReader::fingerprints),
                fields.readOr("integrity", true, node -> node.word(INTEGRITY) == 0));
    }

    /** Constraints that the kind does not use are mistakes worth reporting. */
    private void refuseOthers(Kind kind) throws DocumentException {
        switch (kind) {
            case PRIVATE -> {
                refuse(POPULATION, "`private`, which allows nothing");
                refuse(REST, "`private`, which allows nothing");
            }
            case PUBLIC -> {
                refuse(POPULATION, "`public`, which allows everything");
                refuse(List.of("window", "windows", "generalise"), "`public`; use `stream-aggregate`");
            }
            case STREAM_AGGREGATE -> refuse(POPULATION, "`stream-aggregate`, which releases one stream");
            default -> { }
        }
        if (kind != Kind.DP_AGGREGATE) {
            refuse(List.of("budget"), "an option without noise; make it `dp-aggregate`");
        }
    }

    private void refuse(List<String> keys, String with) throws DocumentException {
        for (String key : keys) {
            fields.refuse(key, with);
        }
    }

    private List<Integer> attributes() throws DocumentException {
        Optional<Node> list = fields.get("attributes");
        if (list.isEmpty()) {
            return IntStream.range(0, schema.attributes().size()).boxed().toList();
        }
        TreeSet<Integer> positions = new TreeSet<>();
        for (Node item : list.get().oneOrList()) {
            positions.add(position(item));
        }
        return filled(list.get(), positions);
    }

    private int position(Node node) throws DocumentException {
        int position = schema.position(node.name());
        if (position < 0) {
            throw node.error(Problem.UNKNOWN_ATTRIBUTE, node.name());
        }
        return position;
    }

    /** The value of a key with two spellings. */
    private Optional<Node> either(String one, String other) throws DocumentException {
        if (fields.get(one).isPresent()) {
            fields.refuse(other, "its other spelling");
        }
        return fields.get(one).or(() -> fields.get(other));
    }

    private List<Long> windows() throws DocumentException {
        Optional<Node> list = either("window", "windows");
        if (list.isEmpty()) {
            return List.of(schema.tick());
        }
        TreeSet<Long> windows = new TreeSet<>();
        for (Node item : list.get().oneOrList()) {
            long window = item.duration();
            if (window % schema.tick() != 0) {
                throw item.error(Problem.NOT_MULTIPLE_OF_TICK);
            }
            windows.add(window);
        }
        return filled(list.get(), windows);
    }

    private List<Long> clients() throws DocumentException {
        Optional<Node> list = either("clients", "minimumPopulation");
        if (list.isEmpty()) {
            return List.of(sizes.getOrDefault(DEFAULT_SIZE, 10L));
        }
        TreeSet<Long> clients = new TreeSet<>();
        for (Node item : list.get().oneOrList()) {
            Long size = sizes.get(item.text());
            clients.add(size != null ? size : item.integer(1, SchemaReader.U32));
        }
        return filled(list.get(), clients);
    }

    /** The named sizes among the minimum populations, in byte order. */
    private List<NamedSize> namedClients() throws DocumentException {
        Optional<Node> list = either("clients", "minimumPopulation");
        TreeMap<String, Long> named = new TreeMap<>(Utf8Order.INSTANCE);
        for (Node item : list.map(Node::oneOrList).orElse(List.of())) {
            if (item.value() instanceof Scalar scalar && sizes.containsKey(scalar.text())) {
                named.put(scalar.text(), sizes.get(scalar.text()));
            }
        }
        return named.entrySet().stream().map(size -> new NamedSize(size.getKey(), size.getValue())).toList();
    }

    private List<Generalise> generalise() throws DocumentException {
        List<Generalise> all = new ArrayList<>();
        Optional<Node> list = fields.get("generalise");
        for (Node item : list.map(Node::oneOrList).orElse(List.of())) {
            all.add(generaliseOne(item));
        }
        return List.copyOf(all);
    }

    private Generalise generaliseOne(Node item) throws DocumentException {
        Fields own = Fields.of(item, List.of("attribute", "width", "edges"));
        Node named = own.required("attribute");
        int attribute = position(named);
        if (!(schema.attributes().get(attribute).kind() instanceof AttributeKind.Numeric number)) {
            throw named.expected("an attribute that is a number");
        }
        Generalise generalise;
        if (own.get("edges").isPresent()) {
            own.refuse("width", "`edges`");
            List<Long> edges = AggregationsReader.ascending(own.required("edges"), number.scale());
            generalise = new Generalise(attribute, 0, edges);
        } else {
            generalise = new Generalise(attribute, own.required("width").decimal(number.scale()), List.of());
        }
        liesOnAllGrids(named, item, generalise);
        return generalise;
    }

    /** The attribute must have a grid, and every grid over it must be coarsened. */
    private void liesOnAllGrids(Node named, Node item, Generalise generalise) throws DocumentException {
        boolean found = false;
        for (int position = 0; position < schema.attributes().size(); position++) {
            Attribute attribute = schema.attributes().get(position);
            for (Aggregation aggregation : attribute.aggregations()) {
                Edges grid = null;
                String name = "";
                if (aggregation instanceof Aggregation.Histogram histogram && position == generalise.attribute()) {
                    grid = histogram.edges();
                    name = "histogram";
                } else if (aggregation instanceof Aggregation.By by && by.attribute() == generalise.attribute()) {
                    grid = by.edges();
                    name = "by";
                }
                found |= grid != null;
                if (grid != null && generalise.groups(grid).isEmpty()) {
                    throw item.error(Problem.OFF_GRID, attribute.name() + "." + name);
                }
            }
        }
        if (!found) {
            throw named.error(Problem.NOTHING_TO_GENERALISE, named.text());
        }
    }

    private static boolean onePopulation(Node node) throws DocumentException {
        if (node.bool()) {
            throw node.error(Problem.SPLIT_POPULATIONS);
        }
        return false;
    }

    private static List<String> consumers(Node node) throws DocumentException {
        TreeSet<String> names = new TreeSet<>(Utf8Order.INSTANCE);
        for (Node item : node.oneOrList()) {
            names.add(item.text());
        }
        return filled(node, names);
    }

    private static List<String> fingerprints(Node node) throws DocumentException {
        TreeSet<String> prints = new TreeSet<>();
        for (Node item : node.oneOrList()) {
            String text = item.text();
            if (!text.matches("[0-9a-fA-F]{64}")) {
                throw item.error(Problem.BAD_FINGERPRINT);
            }
            prints.add(text.toLowerCase(Locale.ROOT));
        }
        return filled(node, prints);
    }

    private static <T> List<T> filled(Node node, TreeSet<T> all) throws DocumentException {
        if (all.isEmpty()) {
            throw node.error(Problem.EMPTY_LIST);
        }
        return List.copyOf(all);
    }
}
