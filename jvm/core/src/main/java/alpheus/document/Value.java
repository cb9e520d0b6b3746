// The value of a node of a document.
package alpheus.document;

import java.util.List;
import java.util.Map;

/** The value of a node. Scalars keep their text, so {@code 0.10} never passes through a float. */
public sealed interface Value {
    /** An empty value, {@code ~} or {@code null}. */
    record Nothing() implements Value {}

    /**
     * A scalar: word, number or text.
     *
     * @param text as written, escapes resolved
     * @param plain whether it is unquoted
     */
    record Scalar(String text, boolean plain) implements Value {
        /** Omits the text: it may be a secret. */
        @Override
        public String toString() {
            return "Scalar";
        }
    }

    /**
     * Items in order.
     *
     * @param nodes the items
     */
    record Items(List<Node> nodes) implements Value {}

    /**
     * Keys in order, each with its value. Keys are unique.
     *
     * @param nodes the values by key
     */
    record Entries(Map<String, Node> nodes) implements Value {}
}
