// Reading a map whose keys are known in advance.
package alpheus.document;

import java.util.List;
import java.util.Map;
import java.util.Optional;

/** The entries of a map, of which only known keys stand. */
public final class Fields {
    private final Node node;
    private final Map<String, Node> entries;

    private Fields(Node node, Map<String, Node> entries) {
        this.node = node;
        this.entries = entries;
    }

    /**
     * The map at a node.
     *
     * @param node the map
     * @param known keys that mean something in it
     * @return its fields
     * @throws DocumentException if it is no map, or a key means nothing
     */
    public static Fields of(Node node, List<String> known) throws DocumentException {
        Map<String, Node> entries = node.map();
        for (Map.Entry<String, Node> entry : entries.entrySet()) {
            if (!known.contains(entry.getKey())) {
                throw entry.getValue().error(Problem.UNKNOWN_KEY, entry.getKey(), String.join(", ", known));
            }
        }
        return new Fields(node, entries);
    }

    /**
     * The value of a key.
     *
     * @param key the key
     * @return nothing where it does not stand or is null
     */
    public Optional<Node> get(String key) {
        return Optional.ofNullable(entries.get(key)).filter(found -> !found.isNothing());
    }

    /**
     * The value of a key that must stand.
     *
     * @param key the key
     * @return its value
     * @throws DocumentException if it does not stand
     */
    public Node required(String key) throws DocumentException {
        return get(key).orElseThrow(() -> node.error(Problem.MISSING_KEY, key));
    }

    /**
     * What {@code read} makes of a key's value, or a default where it does not stand.
     *
     * @param <T> what it makes
     * @param key the key
     * @param missing the default
     * @param read what reads the value
     * @return one of the two
     * @throws DocumentException as {@code read}
     */
    public <T> T readOr(String key, T missing, Reader<T> read) throws DocumentException {
        Optional<Node> found = get(key);
        return found.isPresent() ? read.read(found.get()) : missing;
    }

    /**
     * Refuses a key that does not go with something else.
     *
     * @param key the key
     * @param with what it does not go with
     * @throws DocumentException if it stands
     */
    public void refuse(String key, String with) throws DocumentException {
        Optional<Node> found = get(key);
        if (found.isPresent()) {
            throw found.get().error(Problem.CONFLICT, key, with);
        }
    }

    /**
     * The map itself, for errors about it as a whole.
     *
     * @return the map
     */
    public Node node() {
        return node;
    }

    /**
     * Makes something of a node.
     *
     * @param <T> what it makes
     */
    @FunctionalInterface
    public interface Reader<T> {
        /**
         * Reads a node.
         *
         * @param node the node
         * @return what it means
         * @throws DocumentException if it means nothing
         */
        T read(Node node) throws DocumentException;
    }
}
