// JSON text as a tree.
package alpheus.document;

import alpheus.document.Value.Entries;
import alpheus.document.Value.Items;
import alpheus.document.Value.Nothing;
import alpheus.document.Value.Scalar;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParseException;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads one JSON document. */
final class JsonReader {
    private static final JsonFactory FACTORY = new JsonFactory();
    private static final int MAX_DEPTH = 120;

    private final JsonParser json;

    private JsonReader(JsonParser json) {
        this.json = json;
    }

    static Node read(String text) throws DocumentException {
        try (JsonParser json = FACTORY.createParser(text)) {
            JsonReader reader = new JsonReader(json);
            JsonToken first = json.nextToken();
            if (first == null) {
                throw new DocumentException(Position.ROOT, Problem.SYNTAX, "the document is empty");
            }
            Node node = reader.node(first, Position.ROOT, 0);
            if (json.nextToken() != null) {
                throw new DocumentException(Position.ROOT, Problem.SYNTAX, "there is more text after the document");
            }
            return node;
        } catch (JsonParseException refused) {
            var place = refused.getLocation();
            Position at = place == null ? Position.ROOT : new Position(place.getLineNr(), place.getColumnNr(), "");
            // The library's message may quote the document, which may be a device's file.
            throw new DocumentException(at, Problem.SYNTAX, "it is not valid JSON at this position");
        } catch (IOException refused) {
            throw new DocumentException(Position.ROOT, Problem.SYNTAX, "it is not valid JSON");
        }
    }

    private Node node(JsonToken token, Position at, int depth) throws IOException, DocumentException {
        if (depth > MAX_DEPTH) {
            throw new DocumentException(at, Problem.TOO_DEEP);
        }
        return new Node(at, switch (token) {
            case VALUE_NULL -> new Nothing();
            case VALUE_TRUE, VALUE_FALSE -> new Scalar(json.getText(), true);
            case VALUE_NUMBER_INT -> integer(at);
            case VALUE_NUMBER_FLOAT -> throw new DocumentException(at, Problem.INEXACT_NUMBER);
            case VALUE_STRING -> new Scalar(json.getText(), false);
            case START_ARRAY -> items(at, depth);
            case START_OBJECT -> entries(at, depth);
            default -> throw new DocumentException(at, Problem.SYNTAX, "expected a value");
        });
    }

    /** Most readers turn a number beyond 64 bits into a float. */
    private Scalar integer(Position at) throws IOException, DocumentException {
        var number = json.getBigIntegerValue();
        if (number.bitLength() > 64 || number.signum() < 0 && number.bitLength() > 63) {
            throw new DocumentException(at, Problem.INEXACT_NUMBER);
        }
        return new Scalar(number.toString(), true);
    }

    private Items items(Position at, int depth) throws IOException, DocumentException {
        List<Node> nodes = new ArrayList<>();
        for (JsonToken next = json.nextToken(); next != JsonToken.END_ARRAY; next = json.nextToken()) {
            nodes.add(node(next, at.item(nodes.size()), depth + 1));
        }
        return new Items(List.copyOf(nodes));
    }

    private Entries entries(Position at, int depth) throws IOException, DocumentException {
        Map<String, Node> nodes = new LinkedHashMap<>();
        while (json.nextToken() != JsonToken.END_OBJECT) {
            String key = json.currentName();
            if (nodes.containsKey(key)) {
                throw new DocumentException(at.key(key), Problem.DUPLICATE_KEY, key);
            }
            nodes.put(key, node(json.nextToken(), at.key(key), depth + 1));
        }
        return new Entries(nodes);
    }
}
