// The job's own settings.
package alpheus.flink;

import alpheus.AlpheusException;
import alpheus.layout.Layout;
import alpheus.registry.EventEnvelope;
import alpheus.registry.RegistryClient;
import alpheus.registry.Schemas;
import alpheus.registry.SubjectNaming;
import alpheus.schema.Frames;
import alpheus.schema.Schema;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;
import org.apache.flink.configuration.Configuration;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.Range;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.common.config.ConfigDef.ValidString;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.types.Password;

/**
 * The job's settings that start with {@code alpheus.}. Those that start with {@code flink.} are Flink's
 * own. All others go to its Kafka clients unchanged, among them {@code bootstrap.servers}, {@code sasl.*}
 * and {@code ssl.*}. No setting holds a key; some name files that do.
 */
public final class JobConfig extends AbstractConfig {
    /** The schema: a file, YAML or .avsc, or {@code registry:SUBJECT}, or {@code registry:SUBJECT@VERSION}. */
    public static final String SCHEMA = "alpheus.schema";
    /** The file to use while the registry does not answer. */
    public static final String SCHEMA_FALLBACK = "alpheus.schema.fallback";
    /** The format of events: {@code frame}, or {@code registry}, which reads both. */
    public static final String FORMAT = "alpheus.format";
    /** The address of the registry, as in Confluent's clients. */
    public static final String REGISTRY_URL = "schema.registry.url";
    /** Name and password for the registry, as in Confluent's clients. */
    public static final String REGISTRY_USER = "basic.auth.user.info";
    /** How subjects are named, as in Confluent's clients. */
    public static final String REGISTRY_NAMING = "value.subject.name.strategy";
    /** The topic of events. */
    public static final String EVENTS = "alpheus.topic.events";
    /** The topic of plans, joins and opening sets. */
    public static final String INSTRUCTIONS = "alpheus.topic.instructions";
    /** The topic of tokens and opening shares. */
    public static final String TOKENS = "alpheus.topic.tokens";
    /** The topic of the windows' sums. */
    public static final String SUMS = "alpheus.topic.sums";
    /** The topic of summaries, for the policy manager. */
    public static final String SUMMARIES = "alpheus.topic.summaries";
    /** The topic of rejected records. */
    public static final String DEAD_LETTERS = "alpheus.topic.dead-letters";
    /** The job's name: its consumer group, and the prefix of its transactional ids. */
    public static final String NAME = "alpheus.job";
    /** Time between checkpoints. Output is committed with them. */
    public static final String CHECKPOINT = "alpheus.checkpoint.ms";
    /** After this time without a record a partition does not delay windows. */
    public static final String IDLE = "alpheus.idle.ms";
    /** How far frames of different streams may be out of order. */
    public static final String DISORDER = "alpheus.disorder.ms";
    /** How far event time may run ahead of the clock. */
    public static final String SKEW = "alpheus.skew.ms";

    /** The folder of the service's ingest keys. Needed unless the schema has {@code frames: events}. */
    public static final String IDENTITY = "alpheus.identity.folder";

    private static final String PREFIX = "alpheus.";
    private static final String FLINK = "flink.";
    private static final String FRAME = "frame";
    private static final String REGISTRY = "registry";
    private static final String TRANSACTION_TIMEOUT = "transaction.timeout.ms";
    private static final String FIFTEEN_MINUTES = "900000";
    /** A year: a longer time could exceed event time. */
    private static final long MAX_MILLIS = 366L * 86_400_000L;

    private static final ConfigDef DEFINITION = new ConfigDef()
            .define(SCHEMA, Type.STRING, Importance.HIGH, "File of the schema of the streams.")
            .define(SCHEMA_FALLBACK, Type.STRING, null, Importance.LOW,
                    "File of the schema while the registry does not answer.")
            .define(FORMAT, Type.STRING, FRAME, ValidString.in(FRAME, REGISTRY), Importance.MEDIUM,
                    "Format of events: `frame`, or `registry` to also read Avro in a registry's wire format.")
            .define(REGISTRY_URL, Type.STRING, null, Importance.MEDIUM, "Address of the schema registry.")
            .define(REGISTRY_USER, Type.PASSWORD, null, Importance.MEDIUM, "Name:password for the schema registry.")
            .define(REGISTRY_NAMING, Type.STRING, "TopicNameStrategy", Importance.LOW,
                    "How the subject of events is named, as in Confluent's clients.")
            .define(EVENTS, Type.STRING, "events", Importance.HIGH, "Topic of events; read.")
            .define(INSTRUCTIONS, Type.STRING, "instructions", Importance.HIGH,
                    "Topic of plans, joins and opening sets; read.")
            .define(TOKENS, Type.STRING, "tokens", Importance.HIGH, "Topic of tokens and opening shares; read.")
            .define(SUMS, Type.STRING, "sums", Importance.HIGH, "Topic of the windows' sums; written.")
            .define(SUMMARIES, Type.STRING, "summaries", Importance.HIGH, "Topic of summaries: which streams are complete; written.")
            .define(DEAD_LETTERS, Type.STRING, "dead-letters", Importance.HIGH,
                    "Topic of rejected records, with the reason in a header; written.")
            .define(NAME, Type.STRING, "alpheus-window-sums", Importance.MEDIUM,
                    "Consumer group, and prefix of transactional ids. Use one for each job of a Kafka cluster.")
            .define(CHECKPOINT, Type.LONG, 10_000L, Range.atLeast(10), Importance.MEDIUM,
                    "Time between checkpoints. Summaries and sums are committed with them, so a window takes two.")
            .define(IDLE, Type.LONG, 60_000L, Range.between(1, MAX_MILLIS), Importance.MEDIUM,
                    "After this time without a record a partition does not delay windows. Use more than the tick.")
            .define(DISORDER, Type.LONG, 5_000L, Range.between(0, MAX_MILLIS), Importance.LOW,
                    "How far frames of a partition's streams may be out of order before windows end.")
            .define(SKEW, Type.LONG, 5_000L, Range.between(0, MAX_MILLIS), Importance.LOW,
                    "How far event time may run ahead of this clock.")
            .define(IDENTITY, Type.STRING, null, Importance.HIGH,
                    "The folder with deployment.json and the service's ingest keys: ingest.seed, and ingest.1.seed and "
                            + "so on of retired ones. Task managers read it. Needed unless the schema has `frames: events`.");

    private final Map<String, ?> settings;

    /**
     * Reads the settings.
     *
     * @param settings all of them
     */
    public JobConfig(Map<String, ?> settings) {
        super(DEFINITION, settings, false);
        this.settings = settings;
    }

    /** The part of the schema that the job needs. */
    Shape shape() {
        String path = getString(SCHEMA);
        try {
            String fallback = getString(SCHEMA_FALLBACK);
            Schema schema = new Schemas(registry(), fallback == null ? null : Path.of(fallback)).read(path);
            return new Shape(Layout.of(schema).words(), schema.tick(), schema.capacity().events(),
                    1_000L * getLong(SKEW), schema.id().toString(), ticks(schema));
        } catch (AlpheusException refused) {
            throw new ConfigException(SCHEMA, path, refused.getMessage());
        } catch (IOException unreadable) {
            throw new ConfigException(SCHEMA, path, "cannot be read; check that the file exists and is readable");
        }
    }

    private TickMode ticks(Schema schema) {
        if (!(schema.frames() instanceof Frames.Ticks ticks)) {
            return null;
        }
        if (getString(IDENTITY) == null) {
            throw new ConfigException(IDENTITY, null, "with `frames: ticks`, the default, the job checks each frame; set this folder");
        }
        if (REGISTRY.equals(getString(FORMAT))) {
            throw new ConfigException(FORMAT, REGISTRY, "there is no Avro form of tick frames; use `frame`");
        }
        return new TickMode(ticks.anchor(), getString(IDENTITY));
    }

    private RegistryClient registry() {
        Password user = getPassword(REGISTRY_USER);
        String url = getString(REGISTRY_URL);
        return url == null ? null : new RegistryClient(url, user == null ? null : user.value());
    }

    /** The number of the events' schema in the registry; empty if events are frames. */
    Integer envelope() {
        if (!REGISTRY.equals(getString(FORMAT))) {
            return null;
        }
        if (registry() == null) {
            throw new ConfigException(REGISTRY_URL, null, "alpheus.format=registry needs a registry; set schema.registry.url");
        }
        try {
            SubjectNaming naming = SubjectNaming.of(getString(REGISTRY_NAMING));
            return registry().register(naming.subject(getString(EVENTS), EventEnvelope.NAME), EventEnvelope.SCHEMA);
        } catch (AlpheusException | IllegalArgumentException refused) {
            throw new ConfigException(REGISTRY_URL, getString(REGISTRY_URL), refused.getMessage());
        }
    }

    /** The settings of every Kafka client of the job. */
    Properties client() {
        Properties own = new Properties();
        settings.forEach((key, value) -> {
            if (!key.startsWith(PREFIX) && !key.startsWith(FLINK)) {
                own.setProperty(key, value.toString());
            }
        });
        return own;
    }

    /** Flink's own settings. A cluster has most of them in its own files. */
    Configuration flink() {
        Configuration own = new Configuration();
        settings.forEach((key, value) -> {
            if (key.startsWith(FLINK)) {
                own.setString(key.substring(FLINK.length()), value.toString());
            }
        });
        return own;
    }

    /** The same for the sink, whose transactions survive a failure and restart. */
    Properties sinkClient() {
        Properties own = client();
        own.putIfAbsent(TRANSACTION_TIMEOUT, FIFTEEN_MINUTES);
        return own;
    }
}
