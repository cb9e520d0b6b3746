// The resolved schema: what a stream holds and what its owners may offer.
package alpheus.schema;

import alpheus.document.DocumentException;
import alpheus.document.Node;
import alpheus.stream.SchemaId;
import java.util.List;
import java.util.Locale;

/**
 * A schema whose names, numbers and bounds have all been checked.
 *
 * @param name name of the record, as queries say it
 * @param version version, for people; keys are bound to {@link #id()}
 * @param tick distance of border events in microseconds
 * @param capacity declared upper bounds on the traffic
 * @param sharedCount whether all mandatory attributes share one event count
 * @param metadata public, static facts about a stream
 * @param attributes private content of an event
 * @param options policies that an owner may choose from
 */
public record Schema(
        String name,
        long version,
        long tick,
        Capacity capacity,
        boolean sharedCount,
        List<MetadataAttribute> metadata,
        List<Attribute> attributes,
        List<PolicyOption> options) {
    /**
     * Reads a schema in the form of the paper's figure 3 and checks it whole.
     *
     * @param text the YAML
     * @return the schema
     * @throws DocumentException with line and column, what is wrong, and how to mend it
     */
    public static Schema fromYaml(String text) throws DocumentException {
        return SchemaReader.read(Node.fromYaml(text));
    }

    /**
     * Reads an Avro record schema with Alpheus properties: the same schema, and so the same id, as the
     * YAML that says the same.
     *
     * @param text the .avsc
     * @return the schema
     * @throws DocumentException with the JSON path, what is wrong, and how to mend it
     */
    public static Schema fromAvsc(String text) throws DocumentException {
        return SchemaReader.read(AvroReader.document(text));
    }

    /**
     * The hash that keys, plans and annotations are bound to: two files that mean the same have the
     * same id, and any change of meaning changes it.
     *
     * @return the id
     */
    public SchemaId id() {
        return SchemaHash.of(this);
    }

    /**
     * Position of an attribute; case and {@code -} or {@code _} make no difference, as in queries.
     *
     * @param wanted its name
     * @return the position; −1 where there is none
     */
    public int position(String wanted) {
        String folded = folded(wanted);
        for (int i = 0; i < attributes.size(); i++) {
            if (folded(attributes.get(i).name()).equals(folded)) {
                return i;
            }
        }
        return -1;
    }

    /**
     * A name as it is compared: queries, result columns and Avro do not all tell case or {@code -} and
     * {@code _} apart.
     *
     * @param name the name
     * @return its form for comparison
     */
    static String folded(String name) {
        return name.toLowerCase(Locale.ROOT).replace('-', '_');
    }

    Schema with(List<PolicyOption> read) {
        return new Schema(
                name, version, tick, capacity, sharedCount, metadata, attributes, List.copyOf(read));
    }
}
