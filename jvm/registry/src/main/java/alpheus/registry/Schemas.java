// A schema from a file, or from a registry with a file to fall back on.
package alpheus.registry;

import alpheus.AlpheusException;
import alpheus.document.DocumentException;
import alpheus.registry.RegistryClient.Registered;
import alpheus.registry.RegistryException.Fault;
import alpheus.schema.Schema;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * A source of schemas. {@code registry:SUBJECT} and {@code registry:SUBJECT@VERSION} name one in a
 * registry. Anything else is a file, YAML or .avsc. Prefer a version in settings: a producer's keys are
 * bound to the schema of its device's file, and a newer schema is rejected.
 */
public final class Schemas {
    private static final String REGISTRY = "registry:";

    private final RegistryClient client;
    private final Path fallback;

    /**
     * A source.
     *
     * @param client the registry, or null
     * @param fallback a file to use if the registry does not answer, or null
     */
    public Schemas(RegistryClient client, Path fallback) {
        this.client = client;
        this.fallback = fallback;
    }

    /**
     * Whether a setting names a schema in a registry.
     *
     * @param place the setting
     * @return whether it does
     */
    public static boolean isInRegistry(String place) {
        return place.startsWith(REGISTRY);
    }

    /**
     * Reads a schema.
     *
     * @param place {@code registry:SUBJECT}, {@code registry:SUBJECT@VERSION} or a file
     * @return the schema
     * @throws AlpheusException if it is missing or invalid
     * @throws IOException if a file cannot be read
     */
    public Schema read(String place) throws AlpheusException, IOException {
        if (!isInRegistry(place)) {
            return file(Path.of(place));
        }
        String subject = place.substring(REGISTRY.length());
        int at = subject.lastIndexOf('@');
        String name = at < 0 ? subject : subject.substring(0, at);
        try {
            if (client == null) {
                throw new RegistryException(Fault.UNREACHABLE, "no address");
            }
            return schema(name, client.version(name, at < 0 ? "latest" : subject.substring(at + 1)));
        } catch (RegistryException refused) {
            // If the registry answers, its answer counts, also when it is an error.
            if (refused.fault() != Fault.UNREACHABLE || fallback == null) {
                throw refused;
            }
            return file(fallback);
        }
    }

    private static Schema file(Path path) throws IOException, DocumentException {
        String text = Files.readString(path);
        return path.toString().endsWith(".avsc") ? Schema.fromAvsc(text) : Schema.fromYaml(text);
    }

    private static Schema schema(String subject, Registered found) throws RegistryException {
        try {
            return Schema.fromAvsc(found.schema());
        } catch (DocumentException refused) {
            throw new RegistryException(Fault.NO_ALPHEUS_SCHEMA,
                    subject + ", version " + found.version() + ": " + refused.getMessage());
        }
    }

    /**
     * Registers a schema, if the registry's compatibility rules and {@link SchemaChange} allow it after the
     * subject's newest.
     *
     * @param subject the subject
     * @param avsc the schema
     * @return its number
     * @throws AlpheusException if it is invalid or not allowed
     */
    public int register(String subject, String avsc) throws AlpheusException {
        Schema next = Schema.fromAvsc(avsc);
        try {
            Registered before = client.latest(subject);
            List<SchemaChange> changes = SchemaChange.between(schema(subject, before), next);
            if (!changes.isEmpty()) {
                String words = String.join("; ", changes.stream().map(SchemaChange::words).toList());
                throw new RegistryException(Fault.CHANGED, subject + ": it has " + words
                        + "; give it another name or subject, or raise its version");
            }
        } catch (RegistryException refused) {
            if (refused.fault() != Fault.NOT_FOUND) {
                throw refused;
            }
        }
        return client.register(subject, avsc);
    }
}
