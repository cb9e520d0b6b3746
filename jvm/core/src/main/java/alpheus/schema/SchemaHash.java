// The input of the hash that is a schema's id.
package alpheus.schema;

import alpheus.crypto.LabelledHash;
import alpheus.document.Fraction;
import alpheus.stream.SchemaId;
import java.util.HexFormat;

/** The resolved schema in postcard, field by field in the order of the Rust types. */
final class SchemaHash {
    private static final String LABEL = "alpheus/schema/v2";

    private final Postcard out = new Postcard();

    private SchemaHash() {}

    static SchemaId of(Schema schema) {
        SchemaHash hash = new SchemaHash();
        hash.schema(schema);
        return new SchemaId(LabelledHash.of(LABEL, hash.out.bytes()));
    }

    private void schema(Schema schema) {
        out.text(schema.name()).unsigned(schema.version()).unsigned(schema.tick());
        out.unsigned(schema.capacity().population()).unsigned(schema.capacity().events());
        out.bool(schema.sharedCount());
        out.list(schema.metadata(), this::metadata);
        out.list(schema.attributes(), this::attribute);
        out.list(schema.options(), this::option);
        // Left out for events, as in every schema before there was a choice.
        if (schema.frames() instanceof Frames.Ticks ticks) {
            out.unsigned(1).unsigned(ticks.anchor());
        }
    }

    private void metadata(MetadataAttribute metadata) {
        out.text(metadata.name()).list(metadata.symbols(), out::text).bool(metadata.optional());
    }

    private void attribute(Attribute attribute) {
        out.text(attribute.name());
        kind(attribute.kind());
        out.text(attribute.unit()).bool(attribute.optional());
        out.list(attribute.aggregations(), this::aggregation);
    }

    private void kind(AttributeKind kind) {
        if (kind instanceof AttributeKind.Numeric number) {
            out.unsigned(0).octet(number.scale()).signed(number.min()).signed(number.max());
        } else if (kind instanceof AttributeKind.Truth) {
            out.unsigned(1);
        } else if (kind instanceof AttributeKind.Text text) {
            out.unsigned(2).unsigned(text.maxBytes());
        }
    }

    private void aggregation(Aggregation aggregation) {
        if (aggregation instanceof Aggregation.Simple simple) {
            simple(simple);
        } else if (aggregation instanceof Aggregation.Histogram histogram) {
            out.unsigned(4);
            edges(histogram.edges());
        } else if (aggregation instanceof Aggregation.Regression regression) {
            out.unsigned(5).unsigned(regression.x()).bool(regression.rSquared());
        } else if (aggregation instanceof Aggregation.By by) {
            out.unsigned(6).unsigned(by.attribute());
            edges(by.edges());
            out.octet(by.order());
        } else if (aggregation instanceof Aggregation.Threshold threshold) {
            out.unsigned(7).signed(threshold.at());
        } else if (aggregation instanceof Aggregation.Sketch sketch) {
            out.unsigned(10).octet(sketch.depth()).unsigned(sketch.width());
        }
    }

    private void simple(Aggregation.Simple simple) {
        out.unsigned(switch (simple) {
            case COUNT -> 0;
            case SUM -> 1;
            case MEAN -> 2;
            case VARIANCE -> 3;
            case ANY -> 8;
            case ALL -> 9;
        });
    }

    private void edges(Edges edges) {
        if (edges instanceof Edges.Uniform uniform) {
            out.unsigned(0).signed(uniform.lo()).signed(uniform.width()).unsigned(uniform.count());
        } else if (edges instanceof Edges.Explicit explicit) {
            out.unsigned(1).list(explicit.edges(), out::signed);
        }
    }

    private void option(PolicyOption option) {
        out.text(option.name()).unsigned(option.kind().ordinal());
        out.list(option.attributes(), position -> out.unsigned(position));
        out.list(option.windows(), out::unsigned);
        out.list(option.clients(), out::unsigned);
        out.list(option.namedClients(), named -> out.text(named.name()).unsigned(named.size()));
        out.list(option.generalise(), this::generalise);
        out.bool(option.budget().isPresent());
        option.budget().ifPresent(this::budget);
        out.list(option.to(), out::text);
        fraction(option.alpha());
        out.unsigned(option.colluders());
        fraction(option.dropout());
        out.unsigned(option.missingTicks()).bool(option.splitPopulations());
        out.list(option.trusted(), fingerprint -> out.raw(HexFormat.of().parseHex(fingerprint)));
        // Left out where it is allowed, as in every schema before there was a choice.
        if (!option.verified()) {
            out.bool(false);
        }
    }

    private void generalise(Generalise generalise) {
        out.unsigned(generalise.attribute());
        if (generalise.edges().isEmpty()) {
            out.unsigned(0).signed(generalise.width());
        } else {
            out.unsigned(1).list(generalise.edges(), out::signed);
        }
    }

    private void budget(Budget budget) {
        out.unsigned(budget.windowMicroEpsilon()).unsigned(budget.totalMicroEpsilon());
        out.unsigned(budget.attoDelta()).unsigned(budget.unit().ordinal());
        if (budget.unit() == Budget.Unit.PERSON_PER_PERIOD) {
            out.unsigned(budget.period());
        }
    }

    private void fraction(Fraction fraction) {
        out.unsigned(fraction.numerator()).unsigned(fraction.denominator());
    }
}
