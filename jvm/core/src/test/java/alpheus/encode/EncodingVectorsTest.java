// Known answers of encodings: the words of events, and rejected events.
package alpheus.encode;

import static alpheus.Vectors.cases;
import static alpheus.Vectors.list;
import static alpheus.Vectors.name;
import static alpheus.Vectors.text;
import static alpheus.Vectors.words;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import alpheus.Vectors;
import alpheus.document.Node;
import alpheus.document.Value.Scalar;
import alpheus.schema.Schema;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class EncodingVectorsTest {
    private static Encoder encoder(Node each) throws Exception {
        return new Encoder(Schema.fromYaml(text(each, "yaml")));
    }

    private static Row row(Encoder encoder, Node event) {
        Row row = encoder.row();
        List<Node> values = list(event, "values");
        for (int i = 0; i < values.size(); i++) {
            if (values.get(i).isNothing()) {
                continue;
            }
            Scalar value = (Scalar) values.get(i).value();
            if (!value.plain()) {
                row.text(i, value.text().getBytes(StandardCharsets.UTF_8));
            } else if (value.text().equals("true") || value.text().equals("false")) {
                row.truth(i, value.text().equals("true"));
            } else {
                row.number(i, Long.parseLong(value.text()));
            }
        }
        return row;
    }

    @Test
    void eventsHaveTheWordsOfTheVectors() throws Exception {
        for (Node each : cases("schema/v1/encoding.json")) {
            Encoder encoder = encoder(each);
            for (Node event : list(each, "events")) {
                long[] found = new long[encoder.words()];
                encoder.encode(row(encoder, event), new Random(7), found);
                for (Node random : list(event, "random")) {
                    int word = Integer.parseInt(Vectors.text(random));
                    assertNotEquals(0, found[word]);
                    found[word] = 0;
                }
                assertArrayEquals(words(event, "words"), found);
            }
        }
    }

    @Test
    void invalidEventsAreRejectedWithASpecificErrorAndChangeNothing() throws Exception {
        for (Node each : cases("schema/v1/encoding_bad_values.json")) {
            Encoder encoder = encoder(each);
            long[] vector = new long[encoder.words()];
            EncodeException refused = assertThrows(
                    EncodeException.class, () -> encoder.encode(row(encoder, each), new Random(7), vector));
            assertEquals(text(each, "error"), name(refused.fault()));
            assertArrayEquals(new long[vector.length], vector, "half encoded");
        }
    }

    @Test
    void anErrorNamesTheAttributeAndNeverTheValue() throws Exception {
        Encoder encoder = new Encoder(Schema.fromYaml(
                "name: S\nstreamAttributes: [{name: x, type: integer, min: 0, max: 9, aggregations: [sum]}]"));
        Row row = encoder.row();
        row.number(0, 31337);
        EncodeException refused = assertThrows(
                EncodeException.class, () -> encoder.encode(row, new Random(7), new long[encoder.words()]));
        assertEquals("x", refused.attribute());
        assertFalse(refused.getMessage().contains("31337"), refused.getMessage());
    }

    @Test
    void aClearedRowHoldsNothing() throws Exception {
        Encoder encoder = encoder(cases("schema/v1/encoding.json").get(0));
        Row row = encoder.row();
        byte[] text = "secret".getBytes(StandardCharsets.UTF_8);
        row.text(3, text);
        row.number(0, 725);
        row.clear();
        assertArrayEquals(new byte[text.length], text);
        assertEquals(0, row.number(0));
        assertEquals(Row.ABSENT, row.kind(3));
    }

    /** Zero would mean that the value was absent. */
    @Test
    void aRandomWordIsNeverZero() throws Exception {
        Encoder encoder = new Encoder(Schema.fromYaml(
                "name: S\nstreamAttributes: [{name: x, type: boolean, aggregations: [any]}]"));
        Row row = encoder.row();
        row.truth(0, true);
        long[] vector = new long[encoder.words()];
        encoder.encode(row, () -> 0, vector);
        assertEquals("[1, 0]", Arrays.toString(vector));
    }
}
