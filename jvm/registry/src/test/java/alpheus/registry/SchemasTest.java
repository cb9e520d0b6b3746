// Schemas in a registry: names, versions, compatibility and errors.
package alpheus.registry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import alpheus.registry.RegistryException.Fault;
import alpheus.schema.AttributeKind;
import alpheus.schema.Schema;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SchemasTest {
    private static final String SUBJECT = "events/été-value";
    static final String AVSC = """
            {"type": "record", "name": "Household", "namespace": "example",
             "fields": [
               {"name": "power", "type": "int",
                "alpheus": {"min": 0, "max": 20000, "aggregations": ["variance"]}}],
             "alpheus": {"version": 1, "tick": "10s", "capacity": {"population": 10, "events": 1000},
               "metadataAttributes": [{"name": "region", "type": "enum", "symbols": ["north", "south"]}],
               "streamPolicyOptions": [
                 {"name": "aggr", "option": "aggregate", "clients": [5], "window": ["1m"]}]}}""";

    @TempDir
    private Path folder;

    private StubRegistry registry;

    @BeforeEach
    void start() throws Exception {
        registry = new StubRegistry();
    }

    @AfterEach
    void stop() {
        registry.close();
    }

    private RegistryClient client() {
        return new RegistryClient(registry.url() + "/", null);
    }

    private Schemas schemas() {
        return new Schemas(client(), null);
    }

    static String changed(String from, String to) {
        assertTrue(AVSC.contains(from), from);
        return AVSC.replace("\"version\": 1", "\"version\": 2").replace(from, to);
    }

    @Test
    void aSchemaIsReadAsItWasRegistered() throws Exception {
        int id = schemas().register(SUBJECT, AVSC);
        assertEquals(id, schemas().register(SUBJECT, AVSC), "once");
        assertEquals(Schema.fromAvsc(AVSC), schemas().read("registry:" + SUBJECT));
        assertEquals(AVSC, client().schema(id));
        int next = schemas().register(SUBJECT, changed("20000", "30000"));
        assertEquals(30_000, maxOf(schemas().read("registry:" + SUBJECT)));
        assertEquals(20_000, maxOf(schemas().read("registry:" + SUBJECT + "@1")));
        assertTrue(next != id);
        assertTrue(client().isCompatible(SUBJECT, AVSC));
        registry.compatible = false;
        assertFalse(client().isCompatible(SUBJECT, AVSC));
    }

    private static long maxOf(Schema schema) {
        return ((AttributeKind.Numeric) schema.attributes().get(0).kind()).max();
    }

    @Test
    void aVersionMustNotGiveANameAnotherMeaning() throws Exception {
        Schema before = Schema.fromAvsc(AVSC);
        assertEquals(List.of(), SchemaChange.between(before, Schema.fromAvsc(AVSC)));
        assertChange(SchemaChange.NAME, changed("Household", "Home"));
        assertChange(SchemaChange.TICK, changed("10s", "20s"));
        assertChange(SchemaChange.ATTRIBUTE, changed("\"int\",", "\"boolean\",").replace(
                "\"min\": 0, \"max\": 20000, \"aggregations\": [\"variance\"]", "\"aggregations\": [\"count\"]"));
        assertChange(SchemaChange.STATISTIC, changed("variance", "sum"));
        assertChange(SchemaChange.METADATA, changed("[\"north\", \"south\"]", "[\"north\"]"));
        assertChange(SchemaChange.OPTION, changed("\"clients\": [5]", "\"clients\": [4]"));
        assertChange(SchemaChange.VERSION, AVSC.replace("20000", "30000"));
        assertEquals(List.of(), SchemaChange.between(before, Schema.fromAvsc(changed("20000", "30000"))));
        assertEquals(List.of(), SchemaChange.between(before, Schema.fromAvsc(changed("[\"north\"", "[\"east\", \"north\""))));
    }

    /** The change is detected, its registration is rejected, and the subject does not change. */
    private void assertChange(SchemaChange change, String avsc) throws Exception {
        List<SchemaChange> found = SchemaChange.between(Schema.fromAvsc(AVSC), Schema.fromAvsc(avsc));
        assertTrue(found.contains(change), change + " is not in " + found);
        schemas().register(SUBJECT, AVSC);
        RegistryException refused =
                assertThrows(RegistryException.class, () -> schemas().register(SUBJECT, avsc));
        assertEquals(Fault.CHANGED, refused.fault());
        assertTrue(refused.getMessage().contains(change.words()), refused.getMessage());
        assertEquals(AVSC, client().latest(SUBJECT).schema());
    }

    private void assertFault(Fault fault, String place) {
        assertEquals(fault, assertThrows(RegistryException.class, () -> schemas().read(place)).fault());
    }

    @Test
    void eachFailureHasASpecificError() throws Exception {
        assertFault(Fault.NOT_FOUND, "registry:none");
        client().register("plain", "{\"type\": \"string\"}");
        assertFault(Fault.NO_ALPHEUS_SCHEMA, "registry:plain");
        assertEquals(Fault.INVALID,
                assertThrows(RegistryException.class, () -> client().register("x", "no schema")).fault());
        schemas().register(SUBJECT, AVSC);
        registry.compatible = false;
        assertEquals(Fault.INCOMPATIBLE, assertThrows(RegistryException.class,
                () -> schemas().register(SUBJECT, changed("20000", "30000"))).fault());
        for (String nonsense : List.of("", "<html>", "[]", "{}", "{\"id\": -1}", "{\"id\": \"x\", \"version\": 1}")) {
            registry.nonsense = nonsense;
            assertFault(Fault.MALFORMED, "registry:" + SUBJECT);
        }
    }

    @Test
    void aFailingProxyCountsAsNoAnswer() throws Exception {
        Path file = Files.writeString(folder.resolve("behind.avsc"), AVSC);
        for (int failure : new int[] {500, 502, 503, 504}) {
            registry.failure = failure;
            assertFault(Fault.UNREACHABLE, "registry:" + SUBJECT);
            Schemas withFile = new Schemas(client(), file);
            assertEquals(Schema.fromAvsc(AVSC).id(), withFile.read("registry:" + SUBJECT).id());
        }
        RegistryClient two = new RegistryClient(registry.url() + "," + registry.url(), null);
        RegistryException refused = assertThrows(RegistryException.class, () -> two.latest(SUBJECT));
        assertEquals(Fault.UNREACHABLE, refused.fault());
    }

    @Test
    void theRegistryMayRequireAPassword() throws Exception {
        registry.authorization = "Basic bWU6c2VjcmV0";
        RegistryException refused = assertThrows(RegistryException.class, () -> schemas().read("registry:x"));
        assertEquals(Fault.UNAUTHORISED, refused.fault());
        new RegistryClient(registry.url(), "me:secret").register("x", AVSC);
        RegistryException wrong = assertThrows(RegistryException.class,
                () -> new RegistryClient(registry.url(), "me:wrong").latest("x"));
        assertFalse(wrong.getMessage().contains("wrong"));
    }

    @Test
    void aFileReplacesOnlyARegistryThatDoesNotAnswer() throws Exception {
        Path file = Files.writeString(folder.resolve("schema.avsc"), AVSC);
        assertFault(Fault.NOT_FOUND, "registry:none");
        Schemas withFile = new Schemas(client(), file);
        assertThrows(RegistryException.class, () -> withFile.read("registry:none"), "it answers with an error");
        registry.close();
        assertFault(Fault.UNREACHABLE, "registry:none");
        assertEquals(Schema.fromAvsc(AVSC), withFile.read("registry:none"));
        assertEquals(Schema.fromAvsc(AVSC), new Schemas(null, null).read(file.toString()));
        assertEquals(Fault.UNREACHABLE, assertThrows(RegistryException.class,
                () -> new Schemas(null, null).read("registry:none")).fault());
    }

    @Test
    void subjectsAreNamedAsInConfluentsClients() {
        assertEquals("events-value", SubjectNaming.of("TopicNameStrategy").subject("events", "a.B"));
        String full = "io.confluent.kafka.serializers.subject.RecordNameStrategy";
        assertEquals("a.B", SubjectNaming.of(full).subject("events", "a.B"));
        assertEquals("events-a.B", SubjectNaming.of("TopicRecordNameStrategy").subject("events", "a.B"));
        assertThrows(IllegalArgumentException.class, () -> SubjectNaming.of("MyStrategy"));
    }
}
