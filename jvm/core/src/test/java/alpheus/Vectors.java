// Reads vectors: bytes are hexadecimal, words 16 hexadecimal digits.
package alpheus;

import alpheus.document.DocumentException;
import alpheus.document.Node;
import alpheus.document.Value.Scalar;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;

/** Reads the vectors shared by all languages. */
public final class Vectors {
    private Vectors() {}

    /** The repository's root. */
    public static Path repository() {
        return Path.of(System.getProperty("alpheus.repository", "../.."));
    }

    /** A file of the repository. */
    public static String file(String path) {
        try {
            return Files.readString(repository().resolve(path));
        } catch (IOException missing) {
            throw new UncheckedIOException(missing);
        }
    }

    /** Every case of a file. */
    public static List<Node> cases(String path) {
        try {
            List<Node> cases = Node.fromJson(file("vectors/" + path)).list();
            if (cases.isEmpty()) {
                throw new AssertionError(path + " is empty");
            }
            return cases;
        } catch (DocumentException broken) {
            throw new AssertionError(path, broken);
        }
    }

    /** The case of a file with one. */
    public static Node one(String path) {
        try {
            return Node.fromJson(file("vectors/" + path));
        } catch (DocumentException broken) {
            throw new AssertionError(path, broken);
        }
    }

    /** The value of a key. */
    public static Node at(Node node, String key) {
        try {
            Node found = node.map().get(key);
            if (found == null) {
                throw new AssertionError("no `" + key + "` in " + node.at());
            }
            return found;
        } catch (DocumentException broken) {
            throw new AssertionError(broken);
        }
    }

    /** Whether a key exists. */
    public static boolean has(Node node, String key) {
        try {
            return node.map().containsKey(key) && !node.map().get(key).isNothing();
        } catch (DocumentException broken) {
            throw new AssertionError(broken);
        }
    }

    /** A scalar's text, of any length. */
    public static String text(Node node) {
        return ((Scalar) node.value()).text();
    }

    /** A text under a key. */
    public static String text(Node node, String key) {
        return text(at(node, key));
    }

    /** A number under a key. */
    public static long number(Node node, String key) {
        return Long.parseLong(text(node, key));
    }

    /** Bytes under a key. */
    public static byte[] bytes(Node node, String key) {
        return HexFormat.of().parseHex(text(node, key));
    }

    /** A word under a key. */
    public static long word(Node node, String key) {
        return Long.parseUnsignedLong(text(node, key), 16);
    }

    /** A list under a key. */
    public static List<Node> list(Node node, String key) {
        try {
            return at(node, key).list();
        } catch (DocumentException broken) {
            throw new AssertionError(broken);
        }
    }

    /** Words under a key. */
    public static long[] words(Node node, String key) {
        return list(node, key).stream().mapToLong(it -> Long.parseUnsignedLong(text(it), 16)).toArray();
    }

    /** Frames under a key. */
    public static List<byte[]> frames(Node node, String key) {
        List<byte[]> frames = new ArrayList<>();
        list(node, key).forEach(it -> frames.add(HexFormat.of().parseHex(text(it))));
        return frames;
    }

    /** The name of an error in vectors: {@code NOT_A_TICK} is {@code NotATick}. */
    public static String name(Enum<?> fault) {
        StringBuilder name = new StringBuilder();
        for (String word : fault.name().split("_")) {
            name.append(word.charAt(0)).append(word.substring(1).toLowerCase(Locale.ROOT));
        }
        return name.toString();
    }
}
