// What a Kafka user configures, beside what every producer is configured with.
package alpheus.kafka;

import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.Range;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.common.config.ConfigDef.ValidString;

/**
 * The settings that begin with {@code alpheus.}. All others are the producer's and go on to it as they
 * are, among them {@code security.protocol}, {@code sasl.*} and {@code ssl.*}.
 */
public final class AlpheusConfig extends AbstractConfig {
    /** The schema's file: YAML, or .avsc. */
    public static final String SCHEMA = "alpheus.schema";
    /** The device's file, the one that {@code alpheus produce} uses: it holds the stream's key. */
    public static final String DEVICE_FILE = "alpheus.device.file";
    /** When an event happened: {@code clock} or {@code record}. */
    public static final String TIME = "alpheus.time";
    /** How long after a tick its border is made. */
    public static final String LATENESS = "alpheus.lateness.ms";
    /** How long closing waits for the end of the tick. */
    public static final String CLOSE_TIMEOUT = "alpheus.close.timeout.ms";
    /** The class that reads values as rows of the schema. */
    public static final String ROW_READER = "alpheus.row.reader";
    /** Headers that go on to the broker, in the clear. */
    public static final String HEADERS = "alpheus.headers";

    static final String PREFIX = "alpheus.";

    private static final long DEFAULT_BLOCK = 60_000L;
    private static final String CLOCK = "clock";
    private static final String RECORD = "record";

    private static final ConfigDef DEFINITION = new ConfigDef()
            .define(SCHEMA, Type.STRING, Importance.HIGH,
                    "File of the schema of the stream: YAML, or .avsc with Alpheus properties.")
            .define(DEVICE_FILE, Type.STRING, Importance.HIGH,
                    "The device's file that `alpheus owner add` wrote. It holds the stream's key.")
            .define(TIME, Type.STRING, CLOCK, ValidString.in(CLOCK, RECORD), Importance.MEDIUM,
                    "When an event happened: when it is sent (`clock`), or when its record's timestamp says "
                            + "(`record`; events then come in the order of their times).")
            .define(LATENESS, Type.LONG, 0L, Range.atLeast(0), Importance.MEDIUM,
                    "How long after the end of a tick its border is made. With `alpheus.time=record`, events that "
                            + "come later than that are refused.")
            .define(CLOSE_TIMEOUT, Type.LONG, 30_000L, Range.atLeast(0), Importance.LOW,
                    "How long close() waits for the end of the tick, so that its events count.")
            .define(ROW_READER, Type.CLASS, AnyRows.class, Importance.MEDIUM,
                    "Class that reads a value as a row of the schema; by default maps, and JSON objects as text "
                            + "or bytes.")
            .define(HEADERS, Type.LIST, List.of(), Importance.LOW,
                    "Names of headers that are sent on. Whoever reads the topic reads them.");

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

    long latenessMicros() {
        return 1_000L * getLong(LATENESS);
    }

    RowReader<?> rowReader() {
        return getConfiguredInstance(ROW_READER, RowReader.class);
    }

    /** How long sending may wait, as of any producer. */
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
