// A recording in the broker: the same events in each form, in topics of their own.
package alpheus.flink;

import alpheus.broker.Broker;
import alpheus.flink.BenchDevices.Form;
import java.util.List;
import java.util.Locale;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** A recording in the broker. Its events are in the past, so jobs read it as fast as they can. */
final class BenchInput implements AutoCloseable {
    /** Yesterday's noon. Brokers delete records that are a week old. */
    static final long START = (System.currentTimeMillis() / 86_400_000L - 1) * 86_400_000_000L + 43_200_000_000L;

    private final String name;
    private final BenchDevices devices;
    private final int events;

    /**
     * Records so many windows of so many streams, with some events a stream and window, and the tick after
     * them.
     */
    BenchInput(Broker broker, String name, BenchApplication application, int streams, int windows, int eventsAWindow,
            int partitions, List<Form> forms) throws Exception {
        this.name = name;
        this.events = streams * windows * eventsAWindow;
        for (Form form : forms) {
            broker.createTopics(partitions, topic(form));
        }
        try (Producer<byte[], byte[]> kafka = BenchHost.producer(broker)) {
            devices = new BenchDevices(application, streams, START, forms, (stream, form, micros, value) ->
                    kafka.send(new ProducerRecord<>(topic(form), stream % partitions, micros / 1_000L,
                            BenchDevices.id(stream).bytes(), value)));
            long tick = devices.tick();
            for (int window = 0; window <= windows; window++) {
                // After the last window one event of each stream and a border, so that time passes it in
                // all partitions.
                for (int event = 0; event < (window == windows ? 1 : eventsAWindow); event++) {
                    for (int stream = 0; stream < streams; stream++) {
                        long at = START + window * tick + event * tick / eventsAWindow + 1_000L;
                        devices.event(stream, event, at);
                    }
                }
                devices.borders(START + (window + 1) * tick);
            }
        }
    }

    String topic(Form form) {
        return name + "-" + form.name().toLowerCase(Locale.ROOT);
    }

    BenchDevices devices() {
        return devices;
    }

    /** Events in its windows. */
    int events() {
        return events;
    }

    @Override
    public void close() {
        devices.close();
    }
}
