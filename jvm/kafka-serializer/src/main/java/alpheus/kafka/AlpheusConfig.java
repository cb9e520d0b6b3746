// Settings of Alpheus, besides those of every producer.
package alpheus.kafka;

import alpheus.registry.RegistryClient;
import alpheus.registry.SubjectNaming;
import alpheus.stream.EventTime;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.Range;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.common.config.ConfigDef.ValidString;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.types.Password;

/**
 * The settings that start with {@code alpheus.}. All others are the producer's and are passed to it
 * unchanged, among them {@code security.protocol}, {@code sasl.*} and {@code ssl.*}.
 */
public final class AlpheusConfig extends AbstractConfig {
    /** The schema: a file, YAML or .avsc, or {@code registry:SUBJECT}, or {@code registry:SUBJECT@VERSION}. */
    public static final String SCHEMA = "alpheus.schema";
    /** The file to use while the registry does not answer. */
    public static final String SCHEMA_FALLBACK = "alpheus.schema.fallback";
    /** The format of events: {@code frame}, or {@code registry} for Avro in a registry's wire format. */
    public static final String FORMAT = "alpheus.format";
    /** The address of the registry, as in Confluent's clients. */
    public static final String REGISTRY_URL = "schema.registry.url";
    /** Name and password for the registry, as in Confluent's clients. */
    public static final String REGISTRY_USER = "basic.auth.user.info";
    /** How subjects are named, as in Confluent's clients. */
    public static final String REGISTRY_NAMING = "value.subject.name.strategy";
    /** The device's file, the one that {@code alpheus produce} uses: it holds the stream's key. */
    public static final String DEVICE_FILE = "alpheus.device.file";
    /** The device's identity folder. Needed with {@code frames: ticks}. */
    public static final String IDENTITY = "alpheus.identity.folder";
    /** When an event happened: {@code clock} or {@code record}. */
    public static final String TIME = "alpheus.time";
    /** How long after a tick its border is created. */
    public static final String LATENESS = "alpheus.lateness.ms";
    /** How far ahead of the clock a record's time may be. */
    public static final String SKEW = "alpheus.skew.ms";
    /** How long closing waits for the end of the tick. */
    public static final String CLOSE_TIMEOUT = "alpheus.close.timeout.ms";
    /** The class that reads values as rows of the schema. */
    public static final String ROW_READER = "alpheus.row.reader";
    /** Headers that are sent to the broker, in the clear. */
    public static final String HEADERS = "alpheus.headers";

    static final String PREFIX = "alpheus.";

    private static final long DEFAULT_BLOCK = 60_000L;
    private static final String CLOCK = "clock";
    private static final String RECORD = "record";
    private static final String FRAME = "frame";
    private static final String REGISTRY = "registry";

    private static final ConfigDef DEFINITION = new ConfigDef()
            .define(SCHEMA, Type.STRING, Importance.HIGH,
                    "Schema of the stream: a file, YAML, or .avsc with Alpheus properties; or registry:SUBJECT@VERSION.")
            .define(SCHEMA_FALLBACK, Type.STRING, null, Importance.LOW,
                    "File of the schema while the registry does not answer.")
            .define(FORMAT, Type.STRING, FRAME, ValidString.in(FRAME, REGISTRY), Importance.MEDIUM,
                    "Format of events: `frame`, or `registry` for Avro records in a registry's wire format.")
            .define(REGISTRY_URL, Type.STRING, null, Importance.MEDIUM, "Address of the schema registry.")
            .define(REGISTRY_USER, Type.PASSWORD, null, Importance.MEDIUM, "Name:password for the schema registry.")
            .define(REGISTRY_NAMING, Type.STRING, "TopicNameStrategy", Importance.LOW,
                    "How the subject of events is named: TopicNameStrategy, RecordNameStrategy, "
                            + "TopicRecordNameStrategy.")
            .define(DEVICE_FILE, Type.STRING, Importance.HIGH,
                    "The device's file that `alpheus owner add` wrote. It holds the stream's key.")
            .define(IDENTITY, Type.STRING, null, Importance.HIGH,
                    "The device's identity folder, as `alpheus ca issue` wrote it: deployment.json, device.txt and "
                            + "device.seed. Needed unless the schema has `frames: events`.")
            .define(TIME, Type.STRING, CLOCK, ValidString.in(CLOCK, RECORD), Importance.MEDIUM,
                    "Time of an event: the time of sending (`clock`), or its record's timestamp "
                + "(`record`; events must then be in order of time).")
            .define(LATENESS, Type.LONG, 0L, Range.atLeast(0), Importance.MEDIUM,
                    "How long after the end of a tick its border is created. With `alpheus.time=record`, later events "
                + "are rejected.")
            .define(SKEW, Type.LONG, 5_000L, Range.atLeast(0), Importance.LOW,
                    "With `alpheus.time=record`, how far ahead of this clock a record's time may be. The job's setting "
                + "of this name must not be lower.")
            .define(CLOSE_TIMEOUT, Type.LONG, 30_000L, Range.atLeast(0), Importance.LOW,
                    "How long close() waits for the end of the tick, so that its events count.")
            .define(ROW_READER, Type.CLASS, MapRowReader.class, Importance.MEDIUM,
                    "Class that reads a value as a row of the schema; by default maps, and JSON objects as text "
                            + "or bytes.")
            .define(HEADERS, Type.LIST, List.of(), Importance.LOW,
                    "Names of headers to send, in the clear.");

    /**
     * Reads the settings.
     *
     * @param settings all of a producer's settings
     */
    public AlpheusConfig(Map<String, ?> settings) {
        super(DEFINITION, settings, false);
    }

    boolean isTimedByRecord() {
        return RECORD.equals(getString(TIME).toLowerCase(Locale.ROOT));
    }

    boolean isInRegistryFormat() {
        return REGISTRY.equals(getString(FORMAT));
    }

    /** The registry, if one is named. */
    Optional<RegistryClient> registry() {
        Password user = getPassword(REGISTRY_USER);
        return Optional.ofNullable(getString(REGISTRY_URL))
                .map(url -> new RegistryClient(url, user == null ? null : user.value()));
    }

    SubjectNaming naming() {
        try {
            return SubjectNaming.of(getString(REGISTRY_NAMING));
        } catch (IllegalArgumentException refused) {
            throw new ConfigException(REGISTRY_NAMING, getString(REGISTRY_NAMING), refused.getMessage());
        }
    }

    long latenessMicros() {
        return micros(getLong(LATENESS));
    }

    long skewMicros() {
        return micros(getLong(SKEW));
    }

    /** A duration in microseconds that can be added to any time. The maximum setting means forever. */
    static long micros(long millis) {
        return EventTime.MILLISECOND * Math.min(millis, EventTime.LIMIT / EventTime.MILLISECOND);
    }

    RowReader<?> rowReader() {
        return getConfiguredInstance(ROW_READER, RowReader.class);
    }

    /** How long sending may block, as for any producer. */
    static long maxBlockMillis(Map<String, ?> settings) {
        Object found = settings.get(ProducerConfig.MAX_BLOCK_MS_CONFIG);
        return found == null ? DEFAULT_BLOCK : Long.parseLong(found.toString().strip());
    }

    /** The producer's own settings: all but ours. */
    static Map<String, Object> producerSettings(Map<String, ?> settings) {
        Map<String, Object> own = new TreeMap<>();
        settings.forEach((key, value) -> {
            if (!key.startsWith(PREFIX)) {
                own.put(key, value);
            }
        });
        return own;
    }
}
