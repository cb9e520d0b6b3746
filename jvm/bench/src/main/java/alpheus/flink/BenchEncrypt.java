// The cost of a device's event in Java: values to frame, as `alpheus-bench streams --only encrypt` measures
// it in Rust.
package alpheus.flink;

import alpheus.crypto.SecretBytes;
import alpheus.encode.Row;
import alpheus.stream.MasterSecret;
import alpheus.stream.Producer;
import alpheus.stream.Session;
import alpheus.stream.Start;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Checks, encoding, cipher and header of one event after another, on one thread that is warm. */
final class BenchEncrypt {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final long STEP = 1_000L;

    private final Path examples;
    private final Path folder;
    private final boolean quick;
    /** Keeps the compiler from removing the work. */
    private long seen;

    BenchEncrypt(Path examples, Path folder, boolean quick) {
        this.examples = examples;
        this.folder = folder;
        this.quick = quick;
    }

    void run(BenchReport report) throws Exception {
        measure(report, BenchApplication.example(examples, "car-maintenance", folder));
        measure(report, BenchApplication.example(examples, "fitness", folder));
        measure(report, BenchApplication.padded(examples, "fitness", 683, folder));
        measure(report, BenchApplication.padded(examples, "car-maintenance", 169, folder));
    }

    private void measure(BenchReport report, BenchApplication application) throws Exception {
        List<Double> micros = new ArrayList<>();
        int warm = quick ? 2 : 10;
        for (int sample = 0; sample < warm + (quick ? 3 : 15); sample++) {
            double one = sample(application, quick ? 5_000 : 40_000);
            if (sample >= warm) {
                micros.add(one);
            }
        }
        String name = application.name() + " (" + application.words() + " words): values to frame";
        report.add("encrypt", name, "µs", micros);
        if (seen == 42) {
            System.err.println("a rare sum");
        }
    }

    /** Microseconds of processor time of this thread for each event. */
    private double sample(BenchApplication application, int events) throws Exception {
        Random random = new Random(3);
        Row row = application.encoder().row();
        MasterSecret master = new MasterSecret(SecretBytes.takeOver(new byte[MasterSecret.LENGTH]));
        try (Producer producer = new Producer(master, BenchDevices.id(1), application.schema().id(),
                application.schema().tick(), application.words())) {
            Session session = producer.open(new Start.First(), BenchInput.START, random, frame -> seen += frame[30]);
            long from = THREADS.getCurrentThreadCpuTime();
            for (int event = 1; event <= events; event++) {
                row.clear();
                BenchApplication.fill(application.schema().attributes(), application.values(1, event), row);
                // Borders are included, as in production.
                session.event(BenchInput.START + STEP * event + 1,
                        vector -> application.encoder().encode(row, random, vector));
            }
            return (THREADS.getCurrentThreadCpuTime() - from) / 1e3 / events;
        }
    }
}
