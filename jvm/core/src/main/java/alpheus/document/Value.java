// What a node of a document holds.
package alpheus.document;

import java.util.List;
import java.util.Map;

/** What a node holds. Scalars keep their text, so that {@code 0.10} never passes through a float. */
public sealed interface Value {
    /** Nothing, {@code ~} or {@code null}. */
    record Nothing() implements Value {}

    /**
     * A word, number or text.
     *
     * @param text as written, escapes resolved
     * @param plain whether it stands without quotes
     */
    record Scalar(String text, boolean plain) implements Value {
        /** Nothing of the text: it may be a secret. */
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
     * Keys in order, each with its value; no key stands twice.
     *
     * @param nodes the values by key
     */
    record Entries(Map<String, Node> nodes) implements Value {}
}
