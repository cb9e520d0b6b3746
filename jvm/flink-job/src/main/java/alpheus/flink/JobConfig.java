// What is configured of the job, beside what every Kafka client is configured with.
package alpheus.flink;

import alpheus.AlpheusException;
import alpheus.layout.Layout;
import alpheus.registry.EventEnvelope;
import alpheus.registry.RegistryClient;
import alpheus.registry.Schemas;
import alpheus.registry.SubjectNaming;
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
 * The settings of the job that begin with {@code alpheus.}. Those that begin with {@code flink.} are Flink's own; all
 * others go to its Kafka clients as they are, among them {@code bootstrap.servers}, {@code sasl.*} and {@code ssl.*}.
 * There is no key among them.
 */
public final class JobConfig extends AbstractConfig {
    /** The schema: a file, YAML or .avsc, or {@code registry:SUBJECT}, or {@code registry:SUBJECT@VERSION}. */
    public static final String SCHEMA = "alpheus.schema";
    /** The file that stands in while the registry does not answer. */
    public static final String SCHEMA_FALLBACK = "alpheus.schema.fallback";
    /** How events are written: {@code frame}, or {@code registry}, where both are read. */
    public static final String FORMAT = "alpheus.format";
    /** Where the registry is, as Confluent's clients are told. */
    public static final String REGISTRY_URL = "schema.registry.url";
    /** Name and password at the registry, as Confluent's clients are told. */
    public static final String REGISTRY_USER = "basic.auth.user.info";
    /** How subjects are named, as Confluent's clients are told. */
    public static final String REGISTRY_NAMING = "value.subject.name.strategy";
    /** The topic of events. */
    public static final String EVENTS = "alpheus.topic.events";
    /** The topic of plans, joins and opening sets. */
    public static final String INSTRUCTIONS = "alpheus.topic.instructions";
    /** The topic of tokens and opening shares. */
    public static final String TOKENS = "alpheus.topic.tokens";
    /** The topic of the windows' sums. */
    public static final String SUMS = "alpheus.topic.sums";
    /** The topic of what is complete, for the policy manager. */
    public static final String SUMMARIES = "alpheus.topic.summaries";
    /** The topic of records that were refused. */
    public static final String DEAD_LETTERS = "alpheus.topic.dead-letters";
    /** The job's name: its consumer group, and the start of its transactional ids. */
    public static final String NAME = "alpheus.job";
    /** Time between checkpoints; what comes out is committed with them. */
    public static final String CHECKPOINT = "alpheus.checkpoint.ms";
    /** After so long without a record a partition holds no window back. */
    public static final String IDLE = "alpheus.idle.ms";
    /** How much frames of different streams may be out of order. */
    public static final String DISORDER = "alpheus.disorder.ms";
    /** How far event time may run ahead of the clock. */
    public static final String SKEW = "alpheus.skew.ms";

    private static final String PREFIX = "alpheus.";
    private static final String FLINK = "flink.";
    private static final String FRAME = "frame";
    private static final String REGISTRY = "registry";
    private static final String TRANSACTION_TIMEOUT = "transaction.timeout.ms";
    private static final String FIFTEEN_MINUTES = "900000";
    /** A year: more would be more than event time holds. */
    private static final long MOST_MILLIS = 366L * 86_400_000L;

    private static final ConfigDef DEFINITION = new ConfigDef()
            .define(SCHEMA, Type.STRING, Importance.HIGH, "File of the schema of the streams.")
            .define(SCHEMA_FALLBACK, Type.STRING, null, Importance.LOW,
                    "File of the schema while the registry does not answer.")
            .define(FORMAT, Type.STRING, FRAME, ValidString.in(FRAME, REGISTRY), Importance.MEDIUM,
                    "How events are written: `frame`, or also as Avro in a registry's wire format (`registry`).")
            .define(REGISTRY_URL, Type.STRING, null, Importance.MEDIUM, "Where the schema registry is.")
            .define(REGISTRY_USER, Type.PASSWORD, null, Importance.MEDIUM, "Name:password at the schema registry.")
            .define(REGISTRY_NAMING, Type.STRING, "TopicNameStrategy", Importance.LOW,
                    "How the subject of events is named, as in Confluent's clients.")
            .define(EVENTS, Type.STRING, "events", Importance.HIGH, "Topic of events; read.")
            .define(INSTRUCTIONS, Type.STRING, "instructions", Importance.HIGH,
                    "Topic of plans, joins and opening sets; read.")
            .define(TOKENS, Type.STRING, "tokens", Importance.HIGH, "Topic of tokens and opening shares; read.")
            .define(SUMS, Type.STRING, "sums", Importance.HIGH, "Topic of the windows' sums; written.")
            .define(SUMMARIES, Type.STRING, "summaries", Importance.HIGH, "Topic of what is complete; written.")
            .define(DEAD_LETTERS, Type.STRING, "dead-letters", Importance.HIGH,
                    "Topic of records that were refused, with the reason in a header; written.")
            .define(NAME, Type.STRING, "alpheus-window-sums", Importance.MEDIUM,
                    "Consumer group, and start of transactional ids: one for each job of a Kafka cluster.")
            .define(CHECKPOINT, Type.LONG, 10_000L, Range.atLeast(10), Importance.MEDIUM,
                    "Time between checkpoints. Summaries and sums are committed with them, so a window takes two.")
            .define(IDLE, Type.LONG, 60_000L, Range.between(1, MOST_MILLIS), Importance.MEDIUM,
                    "After so long without a record a partition holds no window back; longer than the tick.")
            .define(DISORDER, Type.LONG, 0L, Range.between(0, MOST_MILLIS), Importance.LOW,
                    "How much frames of a partition's streams may be out of order before they wait for grace.")
            .define(SKEW, Type.LONG, 5_000L, Range.between(0, MOST_MILLIS), Importance.LOW,
                    "How far event time may run ahead of this clock.");

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

    /** What of the schema the job needs. */
    Shape shape() {
        String path = getString(SCHEMA);
        try {
            String fallback = getString(SCHEMA_FALLBACK);
            Schema schema = new Schemas(registry(), fallback == null ? null : Path.of(fallback)).read(path);
            return new Shape(Layout.of(schema).words(), schema.tick(), schema.capacity().events(),
                    1_000L * getLong(SKEW), schema.id().toString());
        } catch (AlpheusException refused) {
            throw new ConfigException(SCHEMA, path, refused.getMessage());
        } catch (IOException unreadable) {
            throw new ConfigException(SCHEMA, path, "cannot be read; check that it is there");
        }
    }

    private RegistryClient registry() {
        Password user = getPassword(REGISTRY_USER);
        String url = getString(REGISTRY_URL);
        return url == null ? null : new RegistryClient(url, user == null ? null : user.value());
    }

    /** The number of the schema of events in the registry; none where they are frames. */
    Integer envelope() {
        if (!REGISTRY.equals(getString(FORMAT))) {
            return null;
        }
        if (registry() == null) {
            throw new ConfigException(REGISTRY_URL, null, "alpheus.format=registry needs a registry");
        }
        try {
            SubjectNaming naming = SubjectNaming.of(getString(REGISTRY_NAMING));
            return registry().register(naming.subject(getString(EVENTS), EventEnvelope.NAME), EventEnvelope.SCHEMA);
        } catch (AlpheusException | IllegalArgumentException refused) {
            throw new ConfigException(REGISTRY_URL, getString(REGISTRY_URL), refused.getMessage());
        }
    }

    /** What every Kafka client of the job is given. */
    Properties client() {
        Properties own = new Properties();
        settings.forEach((key, value) -> {
            if (!key.startsWith(PREFIX) && !key.startsWith(FLINK)) {
                own.setProperty(key, value.toString());
            }
        });
        return own;
    }

    /** What Flink itself is told; a cluster has most of it from its own files. */
    Configuration flink() {
        Configuration own = new Configuration();
        settings.forEach((key, value) -> {
            if (key.startsWith(FLINK)) {
                own.setString(key.substring(FLINK.length()), value.toString());
            }
        });
        return own;
    }

    /** The same for the sink: transactions outlast a failure and the restart after it. */
    Properties sinkClient() {
        Properties own = client();
        own.putIfAbsent(TRANSACTION_TIMEOUT, FIFTEEN_MINUTES);
        return own;
    }
}
