// YAML text as a tree.
package alpheus.document;

import alpheus.document.Value.Entries;
import alpheus.document.Value.Items;
import alpheus.document.Value.Nothing;
import alpheus.document.Value.Scalar;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.snakeyaml.engine.v2.api.LoadSettings;
import org.snakeyaml.engine.v2.api.lowlevel.Parse;
import org.snakeyaml.engine.v2.common.ScalarStyle;
import org.snakeyaml.engine.v2.events.AliasEvent;
import org.snakeyaml.engine.v2.events.CollectionStartEvent;
import org.snakeyaml.engine.v2.events.Event;
import org.snakeyaml.engine.v2.events.MappingStartEvent;
import org.snakeyaml.engine.v2.events.NodeEvent;
import org.snakeyaml.engine.v2.events.ScalarEvent;
import org.snakeyaml.engine.v2.exceptions.Mark;
import org.snakeyaml.engine.v2.exceptions.MarkedYamlEngineException;
import org.snakeyaml.engine.v2.exceptions.YamlEngineException;

/** Reads one YAML document of plain lists, maps and scalars. */
final class YamlReader {
    private static final int MAX_DEPTH = 24;
    private static final LoadSettings SETTINGS = LoadSettings.builder().setUseMarks(true).build();

    private final Iterator<Event> events;

    private YamlReader(Iterator<Event> events) {
        this.events = events;
    }

    static Node read(String text) throws DocumentException {
        try {
            return new YamlReader(new Parse(SETTINGS).parseString(text).iterator()).document();
        } catch (MarkedYamlEngineException refused) {
            throw new DocumentException(
                    place(refused.getProblemMark(), Position.ROOT), Problem.SYNTAX, refused.getProblem());
        } catch (YamlEngineException refused) {
            throw new DocumentException(Position.ROOT, Problem.SYNTAX, "a character that YAML does not allow");
        }
    }

    private Node document() throws DocumentException {
        Node root = null;
        while (events.hasNext()) {
            Event event = events.next();
            if (event.getEventId() == Event.ID.DocumentStart && root != null) {
                throw new DocumentException(
                        place(event.getStartMark(), Position.ROOT), Problem.SECOND_DOCUMENT);
            }
            if (event instanceof NodeEvent) {
                root = node(event, Position.ROOT, 0);
            }
        }
        if (root == null) {
            throw new DocumentException(Position.ROOT, Problem.EMPTY);
        }
        return root;
    }

    private Node node(Event event, Position outer, int depth) throws DocumentException {
        Position at = place(event.getStartMark(), outer);
        refuseAlias(event, at);
        if (event instanceof ScalarEvent scalar) {
            return new Node(at, scalar(scalar));
        }
        if (depth >= MAX_DEPTH) {
            throw new DocumentException(at, Problem.TOO_DEEP);
        }
        return new Node(at, event instanceof MappingStartEvent ? entries(at, depth) : items(at, depth));
    }

    private static void refuseAlias(Event event, Position at) throws DocumentException {
        boolean tagged = event instanceof ScalarEvent scalar && scalar.getTag().isPresent()
                || event instanceof CollectionStartEvent start && start.getTag().isPresent();
        boolean anchored = event instanceof NodeEvent node && node.getAnchor().isPresent();
        if (event instanceof AliasEvent || tagged || anchored) {
            throw new DocumentException(at, Problem.ALIAS);
        }
    }

    private static Value scalar(ScalarEvent event) {
        boolean plain = event.getScalarStyle() == ScalarStyle.PLAIN;
        String text = event.getValue();
        boolean nothing = plain && (text.isEmpty() || text.equals("~") || text.equals("null"));
        return nothing ? new Nothing() : new Scalar(text, plain);
    }

    private Items items(Position at, int depth) throws DocumentException {
        List<Node> nodes = new ArrayList<>();
        for (Event next = events.next(); next.getEventId() != Event.ID.SequenceEnd; next = events.next()) {
            nodes.add(node(next, at.item(nodes.size()), depth + 1));
        }
        return new Items(List.copyOf(nodes));
    }

    private Entries entries(Position at, int depth) throws DocumentException {
        Map<String, Node> nodes = new LinkedHashMap<>();
        for (Event next = events.next(); next.getEventId() != Event.ID.MappingEnd; next = events.next()) {
            String key = key(next, nodes);
            nodes.put(key, node(events.next(), at.key(key), depth + 1));
        }
        return new Entries(nodes);
    }

    private static String key(Event event, Map<String, Node> before) throws DocumentException {
        Position at = place(event.getStartMark(), Position.ROOT);
        refuseAlias(event, at);
        boolean word = event instanceof ScalarEvent scalar
                && !scalar.getValue().isEmpty() && !scalar.getValue().equals("<<");
        if (!word) {
            throw new DocumentException(at, Problem.BAD_KEY);
        }
        String key = ((ScalarEvent) event).getValue();
        if (before.containsKey(key)) {
            throw new DocumentException(at, Problem.DUPLICATE_KEY, key);
        }
        return key;
    }

    private static Position place(Optional<Mark> mark, Position outer) {
        return mark.map(at -> new Position(at.getLine() + 1, at.getColumn() + 1, outer.path())).orElse(outer);
    }
}
