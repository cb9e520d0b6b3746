// A private attribute of an event.
package alpheus.schema;

import java.util.List;

/**
 * A private attribute of an event.
 *
 * @param name its name
 * @param kind what values it takes
 * @param unit its unit, for people
 * @param optional whether an event may lack it
 * @param aggregations statistics that its encoding supports
 */
public record Attribute(
        String name, AttributeKind kind, String unit, boolean optional, List<Aggregation> aggregations) {
    Attribute with(List<Aggregation> read) {
        return new Attribute(name, kind, unit, optional, List.copyOf(read));
    }
}
