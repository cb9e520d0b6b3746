// The job with more and more streams and partitions.
package alpheus.flink;

import alpheus.broker.Broker;
import alpheus.flink.BenchDevices.Form;
import alpheus.flink.BenchHost.Cost;
import alpheus.flink.BenchHost.Extent;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** The same number of events from more and more streams, and over more partitions. */
final class BenchGrowth {
    private static final int EVENTS = 100_000;

    private final Broker broker;
    private final Path examples;
    private final Path folder;
    private final boolean quick;

    BenchGrowth(Broker broker, Path examples, Path folder, boolean quick) {
        this.broker = broker;
        this.examples = examples;
        this.folder = folder;
        this.quick = quick;
    }

    void run(BenchReport report) throws Exception {
        BenchApplication application = BenchApplication.padded(examples, "car-maintenance", 169, folder);
        try (BenchHost host = new BenchHost(broker, folder, "ours", "4g")) {
            for (int streams = 100; streams <= (quick ? 1_000 : 100_000); streams *= 10) {
                // At most a thousand events of a stream in a window, at least one.
                int windows = Math.max(2, EVENTS / streams / 20);
                measure(report, host, application, streams, windows, 4);
            }
            for (int partitions : quick ? new int[] {1} : new int[] {1, 2, 3}) {
                measure(report, host, application, 1_000, EVENTS / 1_000 / 20, partitions);
            }
        }
    }

    private void measure(BenchReport report, BenchHost host, BenchApplication application, int streams, int windows,
            int partitions) throws Exception {
        String name = "growth-" + streams + "-" + partitions;
        int eventsAWindow = Math.max(1, EVENTS / streams / windows);
        List<Double> cpu = new ArrayList<>();
        List<Double> wall = new ArrayList<>();
        try (BenchInput input = new BenchInput(broker, name, application, streams, windows, eventsAWindow, partitions,
                List.of(Form.FRAMES))) {
            // A task without a partition delays windows until it is idle.
            int parallelism = Math.min(2, partitions);
            Extent extent = new Extent(application, streams, windows, BenchInput.START, parallelism, 1_000);
            for (int pass = 0; pass < (quick ? 1 : 2); pass++) {
                Cost cost = host.run(input.topic(Form.FRAMES), input.devices(), extent, BenchHost.NOTHING);
                cpu.add(input.events() / cost.cpu());
                wall.add(input.events() / cost.wall());
            }
        }
        String at = streams + " streams, " + partitions + " partitions, " + windows + " windows";
        report.add("growth", at + ": processor time", "thousand records a second", cpu);
        report.add("growth", at + ": by the clock", "thousand records a second", wall);
    }
}
