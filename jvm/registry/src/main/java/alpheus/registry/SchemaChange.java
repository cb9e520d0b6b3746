// Compatibility rules for schema versions, beyond what a registry checks.
package alpheus.registry;

import alpheus.schema.Attribute;
import alpheus.schema.AttributeKind;
import alpheus.schema.MetadataAttribute;
import alpheus.schema.PolicyOption;
import alpheus.schema.Schema;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * The allowed changes from one version of a schema to the next. A registry checks Avro and ignores
 * Alpheus's properties. But any change of their meaning changes the schema's id, and so keys and words:
 * streams of the two versions are never summed together. So a change needs a new version, and must not give
 * a name another meaning, neither for queries of an attribute nor for owners who have chosen an option.
 */
public enum SchemaChange {
    /** The schema has another name: queries would not find it. */
    NAME("another name"),
    /** The meaning changed and the version did not rise. */
    VERSION("a change of meaning under a version that did not rise"),
    /** Windows of running queries would not fit borders. */
    TICK("another tick"),
    /** A name has another kind of value: type, scale, or unit. */
    ATTRIBUTE("an attribute of the same name with another type, scale or unit"),
    /** A statistic of an attribute is gone. */
    STATISTIC("an attribute is gone, or a statistic of it"),
    /** A metadata attribute is gone, or has lost symbols. */
    METADATA("a metadata attribute that is gone or has lost symbols"),
    /** An option allows something other than its owners chose. */
    OPTION("a policy option of the same name with another meaning");

    private final String words;

    SchemaChange(String words) {
        this.words = words;
    }

    /**
     * A description of the change.
     *
     * @return the description
     */
    public String words() {
        return words;
    }

    /**
     * The rules that a schema breaks as the next version of another.
     *
     * @param before the version in force
     * @param after the next
     * @return the broken rules; empty if it may follow
     */
    public static List<SchemaChange> between(Schema before, Schema after) {
        List<SchemaChange> changes = new ArrayList<>();
        if (before.id().equals(after.id())) {
            return changes;
        }
        note(changes, NAME, !before.name().equals(after.name()));
        note(changes, VERSION, after.version() <= before.version());
        note(changes, TICK, before.tick() != after.tick());
        for (Attribute old : before.attributes()) {
            compare(changes, old, named(after, old.name()));
        }
        for (MetadataAttribute old : before.metadata()) {
            note(changes, METADATA, after.metadata().stream().noneMatch(now -> keeps(old, now)));
        }
        for (PolicyOption old : before.options()) {
            after.options().stream().filter(now -> now.name().equals(old.name()))
                    .forEach(now -> note(changes, OPTION, !now.equals(moved(before, after, old))));
        }
        return changes;
    }

    private static void note(List<SchemaChange> changes, SchemaChange change, boolean is) {
        if (is && !changes.contains(change)) {
            changes.add(change);
        }
    }

    private static Optional<Attribute> named(Schema schema, String name) {
        int at = schema.position(name);
        return at < 0 ? Optional.empty() : Optional.of(schema.attributes().get(at));
    }

    private static void compare(List<SchemaChange> changes, Attribute old, Optional<Attribute> found) {
        boolean same = found.isPresent() && old.unit().equals(found.get().unit()) && isOneKind(old, found.get());
        note(changes, ATTRIBUTE, found.isPresent() && !same);
        note(changes, STATISTIC, found.isEmpty()
                || !found.get().aggregations().containsAll(old.aggregations()));
    }

    /** Bounds may change; the meaning of a number may not. */
    private static boolean isOneKind(Attribute old, Attribute now) {
        if (old.kind() instanceof AttributeKind.Numeric before
                && now.kind() instanceof AttributeKind.Numeric after) {
            return before.scale() == after.scale();
        }
        return old.kind().getClass() == now.kind().getClass();
    }

    private static boolean keeps(MetadataAttribute old, MetadataAttribute now) {
        return now.name().equals(old.name())
                && (now.symbols().isEmpty() || !old.symbols().isEmpty() && now.symbols().containsAll(old.symbols()));
    }

    /** An option with the positions of its attributes in the next version. */
    private static PolicyOption moved(Schema before, Schema after, PolicyOption old) {
        List<Integer> positions = old.attributes().stream()
                .map(at -> after.position(before.attributes().get(at).name())).sorted().toList();
        return new PolicyOption(old.name(), old.kind(), positions, old.windows(), old.clients(), old.namedClients(),
                old.generalise(), old.budget(), old.to(), old.alpha(), old.colluders(), old.dropout(),
                old.missingTicks(), old.splitPopulations(), old.trusted(),
                old.verified());
    }
}
