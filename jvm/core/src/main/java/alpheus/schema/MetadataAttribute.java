// A public attribute of a stream.
package alpheus.schema;

import java.util.List;

/**
 * A public, static fact about a stream.
 *
 * @param name its name
 * @param symbols allowed values; empty if any text is allowed
 * @param optional whether a stream may lack it
 */
public record MetadataAttribute(String name, List<String> symbols, boolean optional) {}
