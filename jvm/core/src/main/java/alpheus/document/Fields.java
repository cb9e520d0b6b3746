// Reading a map whose keys are known in advance.
package alpheus.document;

import java.util.List;
import java.util.Map;
import java.util.Optional;

/** The entries of a map that has known keys only. */
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
     * @param known the allowed keys
     * @return its fields
     * @throws DocumentException if it is not a map, or a key is unknown
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
     * @return empty if it is missing or null
     */
    public Optional<Node> get(String key) {
        return Optional.ofNullable(entries.get(key)).filter(found -> !found.isNothing());
    }

    /**
     * The value of a required key.
     *
     * @param key the key
     * @return its value
     * @throws DocumentException if it is missing
     */
    public Node required(String key) throws DocumentException {
        return get(key).orElseThrow(() -> node.error(Problem.MISSING_KEY, key));
    }

    /**
     * The parsed value of a key, or a default if the key is missing.
     *
     * @param <T> the parsed type
     * @param key the key
     * @param missing the default
     * @param read parses the value
     * @return the value or the default
     * @throws DocumentException as {@code read}
     */
    public <T> T readOr(String key, T missing, Reader<T> read) throws DocumentException {
        Optional<Node> found = get(key);
        return found.isPresent() ? read.read(found.get()) : missing;
    }

    /**
     * Rejects a key that cannot be used with something else.
     *
     * @param key the key
     * @param with what it conflicts with
     * @throws DocumentException if it is there
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
     * Parses a node.
     *
     * @param <T> the parsed type
     */
    @FunctionalInterface
    public interface Reader<T> {
        /**
         * Reads a node.
         *
         * @param node the node
         * @return the parsed value
         * @throws DocumentException if it is invalid
         */
        T read(Node node) throws DocumentException;
    }
}
