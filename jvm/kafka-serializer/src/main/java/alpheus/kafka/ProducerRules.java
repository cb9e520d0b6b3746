// Settings of a producer that would silently lose events or reveal keys of an encrypted stream.
package alpheus.kafka;

import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigException;

/**
 * Settings of a producer that would silently lose events or reveal keys of an encrypted stream. Each is
 * rejected with a specific error.
 */
final class ProducerRules {
    private record Rule(String setting, Set<String> allowed, String words) {
        void check(Map<String, ?> settings) {
            Object value = settings.get(setting);
            if (value != null && !allowed.contains(value.toString().strip())) {
                throw new ConfigException(setting, value, words);
            }
        }
    }

    private static final String ONE_PARTITION =
            "the id of a stream decides its partition, as for its borders; remove this setting";
    private static final String ONCE =
            "a repeated or reordered frame costs its stream the tick; remove this setting";

    private static final List<Rule> RULES = List.of(
            new Rule(ProducerConfig.PARTITIONER_CLASS_CONFIG, Set.of(), ONE_PARTITION),
            new Rule(ProducerConfig.PARTITIONER_IGNORE_KEYS_CONFIG, Set.of("false"), ONE_PARTITION),
            new Rule(ProducerConfig.ACKS_CONFIG, Set.of("all", "-1"), ONCE),
            new Rule(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, Set.of("true"), ONCE),
            new Rule(ProducerConfig.MAX_IN_FLIGHT_REQUESTS_PER_CONNECTION, Set.of("1", "2", "3", "4", "5"), ONCE));

    private ProducerRules() {}

    /** Rejects settings that break a stream. */
    static void check(Map<String, ?> settings) {
        RULES.forEach(rule -> rule.check(settings));
    }

    /** Rejects settings that need a record for each event, if events are summed. */
    static void checkTicks(AlpheusConfig config, Map<String, ?> settings, StreamEncryptor encryptor) {
        String summed = "with `frames: ticks` a tick's events are sent as one sum at its end; ";
        String wrong = null;
        if (settings.get(ProducerConfig.TRANSACTIONAL_ID_CONFIG) != null) {
            wrong = ProducerConfig.TRANSACTIONAL_ID_CONFIG;
            summed += "that may be after the commit, so there are no transactions: remove this setting, or use `frames: events`";
        } else if (!config.getList(AlpheusConfig.HEADERS).isEmpty()) {
            wrong = AlpheusConfig.HEADERS;
            summed += "an event has no record that could have headers: remove this setting, or use `frames: events`";
        } else if (config.isInRegistryFormat()) {
            wrong = AlpheusConfig.FORMAT;
            summed += "there is no Avro form of that frame: use `frame`, or `frames: events` in the schema";
        }
        if (wrong != null) {
            encryptor.close();
            throw new ConfigException(wrong, "", summed);
        }
    }

    /** Rejects a serializer that sends the application's keys in the clear. */
    static void checkKeySerializer(Map<String, ?> settings) {
        Object value = settings.get(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG);
        String name = value instanceof Class<?> given ? given.getName() : String.valueOf(value);
        if (value != null && !StreamKeySerializer.class.getName().equals(name)) {
            throw new ConfigException(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, name,
                    "it would send your keys in the clear: use " + StreamKeySerializer.class.getName());
        }
    }
}
