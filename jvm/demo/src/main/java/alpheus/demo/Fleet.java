// A typical application: it sends rows of devices to a topic as they happen. One line makes it encrypt.
package alpheus.demo;

import alpheus.kafka.EncryptingProducer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.SerializationException;

/**
 * Sends the rows of a recording as if they happened now, with one producer for each device. Without Alpheus
 * the producer would be a {@code KafkaProducer} with the same settings.
 */
public final class Fleet {
    /** Columns that are not readings: metadata is set when the stream is created. */
    private static final Set<String> NO_READINGS = Set.of("timestamp", "stream", "region", "ageGroup", "model", "engineType");

    /**
     * The rows that the broker accepted. Rejected rows were never part of a stream, and the application
     * knows them.
     */
    private final Queue<String> taken = new ConcurrentLinkedQueue<>();
    private final AtomicLong refused = new AtomicLong();
    private final AtomicLong failed = new AtomicLong();

    private Fleet() {}

    /** A row: its time and its readings. */
    private record Reading(long millis, Map<String, String> values) {}

    /**
     * Sends all rows.
     *
     * @param arguments the settings' file, the rows (CSV), the folder of devices' files, the topic, the
     *     time of the first row in milliseconds, and where to write accepted rows
     * @throws Exception if a file cannot be read
     */
    public static void main(String[] arguments) throws Exception {
        Fleet fleet = new Fleet();
        Properties settings = new Properties();
        try (var file = Files.newBufferedReader(Path.of(arguments[0]))) {
            settings.load(file);
        }
        List<Thread> devices = new ArrayList<>();
        for (Map.Entry<String, List<Reading>> device : rows(Path.of(arguments[1]), Long.parseLong(arguments[4])).entrySet()) {
            Map<String, Object> own = new HashMap<>();
            settings.stringPropertyNames().forEach(name -> own.put(name, settings.getProperty(name)));
            own.put("alpheus.device.file", Path.of(arguments[2], device.getKey() + ".json").toString());
            own.put("client.id", device.getKey());
            Thread thread = new Thread(() -> fleet.device(own, arguments[3], device.getValue()), device.getKey());
            devices.add(thread);
            thread.start();
        }
        for (Thread device : devices) {
            device.join();
        }
        Files.write(Path.of(arguments[5]), fleet.taken);
        System.out.println("taken " + fleet.taken.size() + " values, refused rows " + fleet.refused + ", failed " + fleet.failed);
        System.exit(fleet.failed.get() == 0 ? 0 : 1);
    }

    private static Map<String, List<Reading>> rows(Path csv, long start) throws IOException {
        List<String> lines = Files.readAllLines(csv);
        List<String> names = Arrays.asList(lines.get(0).split(","));
        int time = names.indexOf("timestamp");
        int stream = names.indexOf("stream");
        long first = Long.parseLong(lines.get(1).split(",")[time]);
        Map<String, List<Reading>> devices = new LinkedHashMap<>();
        for (String line : lines.subList(1, lines.size())) {
            String[] cells = line.split(",", -1);
            Map<String, String> values = new LinkedHashMap<>();
            for (int i = 0; i < cells.length; i++) {
                if (!NO_READINGS.contains(names.get(i)) && !cells[i].isEmpty()) {
                    values.put(names.get(i), cells[i]);
                }
            }
            devices.computeIfAbsent(cells[stream], made -> new ArrayList<>())
                    .add(new Reading(start + Long.parseLong(cells[time]) - first, values));
        }
        return devices;
    }

    private void device(Map<String, Object> settings, String topic, List<Reading> readings) {
        try (Producer<String, Map<String, String>> producer = new EncryptingProducer<>(settings)) {
            for (Reading reading : readings) {
                Thread.sleep(Math.max(0, reading.millis() - System.currentTimeMillis()));
                send(producer, topic, reading);
            }
        } catch (InterruptedException | RuntimeException failure) {
            System.err.println(Thread.currentThread().getName() + ": " + failure);
            failed.incrementAndGet();
        }
    }

    private void send(Producer<String, Map<String, String>> producer, String topic, Reading reading) {
        try {
            producer.send(new ProducerRecord<>(topic, null, reading.millis(), null, reading.values()), (metadata, failure) -> {
                if (failure == null) {
                    reading.values().forEach((name, value) -> taken.add(reading.millis() + "," + name + "," + value));
                } else {
                    System.err.println("not delivered: " + failure);
                    failed.incrementAndGet();
                }
            });
        } catch (SerializationException late) {
            // A session opens at a tick. Earlier events are not part of the stream, nor are late ones.
            refused.incrementAndGet();
        }
    }
}
