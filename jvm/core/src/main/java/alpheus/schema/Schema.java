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
 * @param name name of the record, as used in queries
 * @param version version, for people; keys are bound to {@link #id()}
 * @param tick distance of border events in microseconds
 * @param capacity declared upper bounds on traffic
 * @param sharedCount whether all mandatory attributes share one event count
 * @param metadata public, static facts about a stream
 * @param attributes private content of an event
 * @param options policies that an owner may choose from
 * @param frames what a device sends of its events
 */
public record Schema(
        String name,
        long version,
        long tick,
        Capacity capacity,
        boolean sharedCount,
        List<MetadataAttribute> metadata,
        List<Attribute> attributes,
        List<PolicyOption> options,
        Frames frames) {
    /**
     * Parses and checks a schema in the form of the paper's figure 3.
     *
     * @param text the YAML
     * @return the schema
     * @throws DocumentException with line and column, the problem, and how to fix it
     */
    public static Schema fromYaml(String text) throws DocumentException {
        return SchemaReader.read(Node.fromYaml(text));
    }

    /**
     * Reads an Avro record schema with Alpheus properties: it has the same id as the equivalent YAML.
     *
     * @param text the .avsc
     * @return the schema
     * @throws DocumentException with the JSON path, the problem, and how to fix it
     */
    public static Schema fromAvsc(String text) throws DocumentException {
        return SchemaReader.read(AvroReader.document(text));
    }

    /**
     * The hash that keys, plans and annotations are bound to. Two files with the same meaning have the same
     * id, and any change of meaning changes it.
     *
     * @return the id
     */
    public SchemaId id() {
        return SchemaHash.of(this);
    }

    /**
     * Position of an attribute. Case is ignored and {@code -} equals {@code _}, as in queries.
     *
     * @param wanted its name
     * @return the position, or −1
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
     * A name in the form for comparison. Not all of queries, result columns and Avro distinguish case, or
     * {@code -} and {@code _}.
     *
     * @param name the name
     * @return its form for comparison
     */
    static String folded(String name) {
        return name.toLowerCase(Locale.ROOT).replace('-', '_');
    }

    Schema with(List<PolicyOption> read) {
        return new Schema(
                name, version, tick, capacity, sharedCount, metadata, attributes, List.copyOf(read), frames);
    }
}
