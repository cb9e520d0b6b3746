// Counters of an encrypted stream, as Kafka's metrics.
package alpheus.kafka;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.Gauge;
import org.apache.kafka.common.metrics.JmxReporter;
import org.apache.kafka.common.metrics.KafkaMetricsContext;
import org.apache.kafka.common.metrics.Measurable;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.Time;

/**
 * Counters of an encrypted stream, in the group {@code alpheus-producer-metrics} and over JMX, and why the
 * broker rejected the last failed frame. They contain no values.
 */
final class StreamCounters implements AutoCloseable {
    static final String GROUP = "alpheus-producer-metrics";
    static final String LAST_FAILURE = "last-failure";

    /** The counters. */
    enum Count {
        EVENTS("events-total", "Encrypted events"),
        REFUSED("refused-total", "Rejected events: not as the schema declares, or too late"),
        BORDERS("borders-total", "Sent borders"),
        SESSIONS("sessions-total", "Opened sessions, except those at midnight"),
        LOST("lost-total", "Events that no window will include, since their session was abandoned before its tick ended"),
        FAILED("failed-total", "Frames that the broker rejected");

        private final String label;
        private final String words;

        Count(String label, String words) {
            this.label = label;
            this.words = words;
        }
    }

    private final Metrics metrics =
            new Metrics(new MetricConfig(), List.of(new JmxReporter()), Time.SYSTEM, new KafkaMetricsContext("alpheus"));
    private final Map<Count, AtomicLong> counts = new LinkedHashMap<>();
    private volatile String lastFailure = "";

    StreamCounters(String client) {
        for (Count count : Count.values()) {
            AtomicLong number = new AtomicLong();
            counts.put(count, number);
            Measurable read = (config, now) -> number.get();
            MetricName name = metrics.metricName(count.label, GROUP, count.words, Map.of("client-id", client));
            metrics.addMetric(name, null, read);
        }
        Gauge<String> last = (config, now) -> lastFailure;
        MetricName name = metrics.metricName(
                LAST_FAILURE, GROUP, "Why the broker rejected a frame, and how to fix it", Map.of("client-id", client));
        metrics.addMetric(name, null, last);
    }

    void fail(String why) {
        lastFailure = why;
    }

    String lastFailure() {
        return lastFailure;
    }

    void add(Count count, long number) {
        counts.get(count).addAndGet(number);
    }

    long get(Count count) {
        return counts.get(count).get();
    }

    Map<MetricName, Metric> metrics() {
        return new LinkedHashMap<>(metrics.metrics());
    }

    @Override
    public void close() {
        metrics.close();
    }
}
