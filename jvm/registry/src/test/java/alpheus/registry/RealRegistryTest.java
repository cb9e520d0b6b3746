// The client against a real registry, in `drills/registry.sh`.
package alpheus.registry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import alpheus.registry.RegistryException.Fault;
import alpheus.schema.Schema;
import java.util.UUID;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** {@code ALPHEUS_REGISTRY_URL} is a registry's Confluent API; of Apicurio its path is {@code /apis/ccompat/v7}. */
@Tag("registry")
class RealRegistryTest {
    private final RegistryClient client = new RegistryClient(System.getenv("ALPHEUS_REGISTRY_URL"), null);
    private final Schemas schemas = new Schemas(client, null);
    private final String subject = "alpheus-" + UUID.randomUUID() + "-value";

    @Test
    void schemasSurviveARoundTripAndOnlyCompatibleOnesAreAccepted() throws Exception {
        assertEquals(Fault.NOT_FOUND, assertThrows(RegistryException.class, () -> client.latest(subject)).fault());
        int first = schemas.register(subject, SchemasTest.AVSC);
        assertEquals(first, schemas.register(subject, SchemasTest.AVSC));
        assertEquals(Schema.fromAvsc(SchemasTest.AVSC), schemas.read("registry:" + subject));
        String next = SchemasTest.changed("20000", "30000");
        schemas.register(subject, next);
        assertEquals(Schema.fromAvsc(next), schemas.read("registry:" + subject + "@2"));
        assertEquals(Schema.fromAvsc(SchemasTest.AVSC), schemas.read("registry:" + subject + "@1"));
        assertEquals(Schema.fromAvsc(next).id(), Schema.fromAvsc(client.latest(subject).schema()).id());
        RegistryException refused = assertThrows(RegistryException.class,
                () -> schemas.register(subject, SchemasTest.changed("10s", "20s")));
        assertEquals(Fault.CHANGED, refused.fault());
    }

    @Test
    void theSchemaOfEventsIsAccepted() throws Exception {
        int id = client.register(subject, EventEnvelope.SCHEMA);
        assertEquals(id, client.register(subject, EventEnvelope.SCHEMA));
        assertEquals(Fault.INVALID,
                assertThrows(RegistryException.class, () -> client.register(subject, "{\"type\": 7}")).fault());
    }
}
