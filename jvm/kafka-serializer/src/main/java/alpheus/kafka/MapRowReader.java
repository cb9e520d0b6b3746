// Reads maps, and JSON objects as text or bytes.
package alpheus.kafka;

import alpheus.document.DecimalException;
import alpheus.document.Decimals;
import alpheus.encode.Row;
import alpheus.kafka.RowException.Fault;
import alpheus.schema.Attribute;
import alpheus.schema.AttributeKind;
import alpheus.schema.Schema;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads maps from attribute names to values, and JSON objects as text or bytes. Numbers are parsed from
 * their digits and rounded to the attribute's scale. An empty text is an absent value, as in {@code alpheus
 * produce}. Unknown names are ignored.
 */
public final class MapRowReader implements RowReader<Object> {
    private static final JsonFactory FACTORY = new JsonFactory();

    /** For Kafka, which creates an instance by class name. */
    public MapRowReader() {}

    @Override
    public void read(Object value, Schema schema, Row row) throws RowException {
        if (value instanceof Map<?, ?> map) {
            fill(map, schema, row);
        } else if (value instanceof CharSequence text) {
            fill(fields(text.toString().getBytes(StandardCharsets.UTF_8)), schema, row);
        } else if (value instanceof byte[] bytes) {
            fill(fields(bytes), schema, row);
        } else {
            throw new RowException(Fault.UNKNOWN_TYPE, value == null ? "null" : value.getClass().getName());
        }
    }

    private static void fill(Map<?, ?> fields, Schema schema, Row row) throws RowException {
        List<Attribute> attributes = schema.attributes();
        for (int i = 0; i < attributes.size(); i++) {
            Object field = fields.get(attributes.get(i).name());
            if (field instanceof Map || field instanceof Iterable) {
                throw new RowException(Fault.NESTED, attributes.get(i).name());
            }
            String text = field == null ? "" : field.toString();
            if (!text.isEmpty()) {
                cell(attributes.get(i), text, row, i);
            }
        }
    }

    private static void cell(Attribute attribute, String text, Row row, int i) throws RowException {
        if (attribute.kind() instanceof AttributeKind.Numeric number) {
            try {
                row.number(i, Decimals.parseScaled(text, number.scale()));
            } catch (DecimalException refused) {
                throw new RowException(Fault.NOT_A_NUMBER, attribute.name());
            }
        } else if (attribute.kind() instanceof AttributeKind.Text) {
            row.text(i, text.getBytes(StandardCharsets.UTF_8));
        } else {
            row.truth(i, switch (text) {
                case "true", "1" -> true;
                case "false", "0" -> false;
                default -> throw new RowException(Fault.NOT_A_BOOLEAN, attribute.name());
            });
        }
    }

    /** The fields of a JSON object, each as its original text. */
    private static Map<String, Object> fields(byte[] json) throws RowException {
        Map<String, Object> fields = new HashMap<>();
        try (JsonParser parser = FACTORY.createParser(json)) {
            if (parser.nextToken() != JsonToken.START_OBJECT) {
                throw new RowException(Fault.NOT_AN_OBJECT, "");
            }
            while (parser.nextToken() != JsonToken.END_OBJECT) {
                String name = parser.currentName();
                fields.put(name, scalar(parser, parser.nextToken()));
            }
            if (parser.nextToken() != null) {
                throw new RowException(Fault.NOT_AN_OBJECT, " alone");
            }
            return fields;
        } catch (IOException refused) {
            // Drops the parser's message and cause: they quote the value.
            throw new RowException(Fault.NOT_AN_OBJECT, "");
        }
    }

    private static Object scalar(JsonParser parser, JsonToken token) throws IOException {
        if (token == JsonToken.VALUE_NULL) {
            return "";
        }
        if (token.isScalarValue()) {
            return parser.getText();
        }
        parser.skipChildren();
        return List.of();
    }
}
