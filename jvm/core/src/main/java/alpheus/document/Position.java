// A position in a document.
package alpheus.document;

/**
 * A position in a document.
 * @param line from 1; 0 if unknown, as only YAML has lines
 * @param column from 1
 * @param path keys and item numbers (from 0) from the root, as {@code streamAttributes[0].min}
 */
public record Position(int line, int column, String path) {
    /** The document as a whole. */
    public static final Position ROOT = new Position(0, 0, "");

    Position key(String key) {
        return new Position(line, column, path.isEmpty() ? key : path + "." + key);
    }

    Position item(int index) {
        return new Position(line, column, path + "[" + index + "]");
    }

    @Override
    public String toString() {
        if (line == 0) {
            return path.isEmpty() ? "$" : "$." + path;
        }
        String place = "line " + line + ", column " + column;
        return path.isEmpty() ? place : place + " (" + path + ")";
    }
}
