// Known answers of schemas: meaning, layout and rejected files.
package alpheus.schema;

import static alpheus.Vectors.at;
import static alpheus.Vectors.cases;
import static alpheus.Vectors.file;
import static alpheus.Vectors.has;
import static alpheus.Vectors.list;
import static alpheus.Vectors.name;
import static alpheus.Vectors.number;
import static alpheus.Vectors.text;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import alpheus.Vectors;
import alpheus.document.DocumentException;
import alpheus.document.Node;
import alpheus.layout.Field;
import alpheus.layout.Layout;
import alpheus.layout.LayoutException;
import alpheus.layout.Packing;
import alpheus.layout.Statistic;
import alpheus.layout.Statistic.Moment;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class SchemaVectorsTest {
    private static Schema read(Node each) throws DocumentException {
        if (has(each, "yaml")) {
            return Schema.fromYaml(text(each, "yaml"));
        }
        return has(each, "avsc") ? Schema.fromAvsc(text(each, "avsc")) : Schema.fromYaml(file(text(each, "file")));
    }

    @Test
    void filesHaveTheMeaningOfTheVectors() throws DocumentException, LayoutException {
        List<Node> all = Stream.of("schema", "avro", "frames")
                .flatMap(kind -> cases("schema/v1/" + kind + ".json").stream())
                .toList();
        for (Node each : all) {
            Schema schema = read(each);
            assertEquals(number(each, "tick"), schema.tick(), schema.name());
            Layout layout = Layout.of(schema);
            List<String> expected = list(each, "fields").stream().map(SchemaVectorsTest::said).toList();
            assertEquals(expected, layout.fields().stream().map(SchemaVectorsTest::said).toList(), schema.name());
            assertEquals(number(each, "words"), layout.words(), schema.name());
            assertEquals(text(each, "id"), schema.id().toString(), schema.name());
        }
    }

    private static String said(Node field) {
        return joined(field, "statistic") + " @" + number(field, "first") + "+" + number(field, "cells") + " "
                + joined(field, "packing");
    }

    private static String joined(Node field, String key) {
        return String.join(" ", list(field, key).stream().map(Vectors::text).toList());
    }

    private static String said(Field field) {
        return said(field.statistic()) + " @" + field.first() + "+" + field.cells() + " " + said(field.packing());
    }

    private static String said(Packing packing) {
        if (packing instanceof Packing.Digits digits) {
            return "digits " + digits.bits() + " " + digits.perWord();
        }
        return packing instanceof Packing.Limbs ? "limbs" : "whole";
    }

    private static String said(Statistic statistic) {
        String numbers = "";
        if (statistic instanceof Statistic.Histogram histogram) {
            numbers = " " + histogram.of() + " " + histogram.aggregation();
        } else if (statistic instanceof Statistic.Pair pair) {
            String moment = pair.moment() == Moment.ONE ? "Count" : name(pair.moment());
            numbers = " " + pair.y() + " " + pair.x() + " " + moment;
        } else if (statistic instanceof Statistic.By by) {
            numbers = " " + by.of() + " " + by.by() + " " + by.aggregation() + " " + by.order();
        } else if (statistic instanceof Statistic.Threshold threshold) {
            numbers = " " + threshold.of() + " " + threshold.aggregation() + " " + threshold.order();
        } else if (statistic instanceof Statistic.Sketch sketch) {
            numbers = " " + sketch.of() + " " + sketch.aggregation();
        } else if (!statistic.attributes().isEmpty()) {
            numbers = " " + statistic.attributes().get(0);
        }
        return statistic.getClass().getSimpleName() + numbers;
    }

    @Test
    void invalidFilesAreRejectedWithTheErrorOfTheVectors() {
        List<Node> all = Stream.of("yaml", "avro", "frames")
                .flatMap(kind -> cases("schema/v1/schema_bad_" + kind + ".json").stream())
                .toList();
        for (Node each : all) {
            String expected = text(each, "error");
            String source = has(each, "yaml") ? text(each, "yaml") : text(each, "avsc");
            DocumentException refused = assertThrows(DocumentException.class, () -> read(each), expected + source);
            assertEquals(expected, name(refused.problem()), source);
        }
    }

    @Test
    void anErrorSaysWhereTheProblemIsAndHowToFixIt() {
        String yaml = "name: S\nstreamAttributes:\n  - {name: x, type: integer, min: 2, max: 1}\n";
        DocumentException refused = assertThrows(DocumentException.class, () -> Schema.fromYaml(yaml));
        assertEquals(
                "line 3, column 35 (streamAttributes[0].min): `min` is greater than `max`; swap them",
                refused.getMessage());
        assertEquals(new alpheus.document.Position(3, 35, "streamAttributes[0].min"), refused.at());
        assertEquals("$.fields[1]", assertThrows(DocumentException.class, () -> Schema.fromAvsc(
                "{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"a\",\"type\":\"int\"},{\"name\":\"b\"}]}"))
                .at().toString());
        assertEquals("streamAttributes", at(unchecked("streamAttributes: x"), "streamAttributes").at().path());
    }

    private static Node unchecked(String yaml) {
        try {
            return Node.fromYaml(yaml);
        } catch (DocumentException broken) {
            throw new AssertionError(broken);
        }
    }
}
