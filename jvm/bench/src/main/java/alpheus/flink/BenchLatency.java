// Figure 9 of the paper: latency of a window's result with live events, ours and raw attributes.
package alpheus.flink;

import alpheus.AlpheusException;
import alpheus.broker.Broker;
import alpheus.flink.BenchDevices.Form;
import alpheus.flink.BenchHost.Cost;
import alpheus.flink.BenchHost.Extent;
import java.nio.file.Path;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * Devices send two events a second, and windows have ten seconds. The latency is the time from a window's
 * end until a reader receives its committed result.
 */
final class BenchLatency {
    private static final int PARTITIONS = 4;
    private static final int EVENTS = 20;
    private static final long MILLI = 1_000L;

    private final Broker broker;
    private final Path examples;
    private final Path folder;
    private final boolean quick;

    BenchLatency(Broker broker, Path examples, Path folder, boolean quick) {
        this.broker = broker;
        this.examples = examples;
        this.folder = folder;
        this.quick = quick;
    }

    void run(BenchReport report) throws Exception {
        List<BenchApplication> applications = List.of(
                BenchApplication.padded(examples, "fitness", 683, folder),
                BenchApplication.padded(examples, "web-analytics", 956, folder),
                BenchApplication.padded(examples, "car-maintenance", 169, folder));
        for (BenchApplication application : applications) {
            for (int streams : quick ? new int[] {300} : new int[] {300, 1_200}) {
                List<Double> raw = measure(application, streams, "raw", Form.RAW, 1_000);
                List<Double> ours = measure(application, streams, "ours", Form.FRAMES, 1_000);
                String at = application.name() + " (" + application.words() + " words), " + streams + " producers";
                report.add("latency", at + ": raw attributes", "ms", raw);
                report.add("latency", at + ": ours", "ms", ours);
            }
        }
    }

    /** Milliseconds of each window but the first. */
    private List<Double> measure(BenchApplication application, int streams, String kind, Form form, long checkpoint)
            throws Exception {
        int windows = quick ? 3 : 4;
        long tick = application.schema().tick();
        long start = (System.currentTimeMillis() * MILLI / tick + 2) * tick;
        String topic = "live-" + application.words() + "-" + streams + "-" + kind;
        broker.createTopics(PARTITIONS, topic);
        ExecutorService thread = Executors.newSingleThreadExecutor();
        AtomicReference<Exception> lost = new AtomicReference<>();
        try (Producer<byte[], byte[]> kafka = BenchHost.producer(broker);
                BenchHost host = new BenchHost(broker, folder, kind, "1500m");
                BenchDevices devices = new BenchDevices(application, streams, start, List.of(form),
                        (stream, ignored, micros, value) -> kafka.send(new ProducerRecord<>(topic, stream % PARTITIONS,
                                micros / MILLI, BenchDevices.id(stream).bytes(), value),
                                (sent, failure) -> lost.compareAndSet(null, failure)))) {
            Extent extent = new Extent(application, streams, windows, start, 2, checkpoint);
            List<Future<?>> sending = new ArrayList<>();
            Cost cost;
            try {
                cost = host.run(topic, devices, extent, () ->
                        sending.add(thread.submit(() -> send(devices, streams, windows, start))));
            } catch (IOException noResult) {
                throw why(noResult, sending, lost.get());
            }
            sending.get(0).get();
            List<Double> delays = new ArrayList<>();
            for (int window = 1; window < windows; window++) {
                delays.add((double) (cost.clerk().cameAt(window) - (start + (window + 1) * tick) / MILLI));
            }
            return delays;
        } finally {
            thread.shutdownNow();
        }
    }

    /**
     * Why no result arrives: the devices may have ended, or one of their records was lost on its way to the
     * broker.
     */
    private static IOException why(IOException noResult, List<Future<?>> sending, Exception lost) {
        if (lost != null) {
            noResult.addSuppressed(lost);
        }
        for (Future<?> sender : sending) {
            try {
                if (sender.isDone()) {
                    sender.get();
                }
            } catch (ExecutionException | InterruptedException ended) {
                noResult.addSuppressed(ended);
            }
        }
        return noResult;
    }

    /**
     * Sends events in real time, and catches up if late at the start. It sends one tick more, so that time
     * passes the last window.
     */
    private static Void send(BenchDevices devices, int streams, int windows, long start)
            throws AlpheusException, InterruptedException {
        long tick = devices.tick();
        for (int event = 0; event <= windows * EVENTS; event++) {
            long slot = start + event * tick / EVENTS;
            if (event > 0 && event % EVENTS == 0) {
                until(slot);
                devices.borders(slot);
            }
            for (int stream = 0; stream < streams; stream++) {
                long at = slot + 1_000L + stream * (tick / EVENTS - 2_000L) / streams;
                until(at);
                devices.event(stream, event, at);
            }
        }
        return null;
    }

    private static void until(long micros) throws InterruptedException {
        long left = micros / MILLI - System.currentTimeMillis();
        if (left > 0) {
            Thread.sleep(left);
        }
    }
}
