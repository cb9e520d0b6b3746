// The throughput of jobs: ours, the same vectors unencrypted, and raw attributes.
package alpheus.flink;

import alpheus.broker.Broker;
import alpheus.flink.BenchDevices.Form;
import alpheus.flink.BenchHost.Cost;
import alpheus.flink.BenchHost.Extent;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Runs a recording through each of the three jobs in turn, and checks every result. */
final class BenchThroughput {
    static final int STREAMS = 300;
    private static final int EVENTS = 20;
    private static final int PARTITIONS = 4;
    private static final Map<String, Form> JOBS = new LinkedHashMap<>();

    static {
        JOBS.put("vectors", Form.VECTORS);
        JOBS.put("ours", Form.FRAMES);
        JOBS.put("raw", Form.RAW);
    }

    private final Broker broker;
    private final Path examples;
    private final Path folder;
    private final boolean quick;

    BenchThroughput(Broker broker, Path examples, Path folder, boolean quick) {
        this.broker = broker;
        this.examples = examples;
        this.folder = folder;
        this.quick = quick;
    }

    void run(BenchReport report) throws Exception {
        measure(report, BenchApplication.padded(examples, "car-maintenance", 169, folder), quick ? 5 : 200);
        measure(report, BenchApplication.padded(examples, "fitness", 683, folder), quick ? 2 : 60);
    }

    private void measure(BenchReport report, BenchApplication application, int windows) throws Exception {
        Map<String, List<Double>> cpu = new LinkedHashMap<>();
        Map<String, List<Double>> wall = new LinkedHashMap<>();
        int words = application.words();
        List<BenchHost> hosts = new ArrayList<>();
        try (BenchInput input = new BenchInput(broker, "input" + words, application, STREAMS, windows, EVENTS,
                PARTITIONS, List.copyOf(JOBS.values()))) {
            Extent extent = new Extent(application, STREAMS, windows, BenchInput.START, 2, 1_000);
            for (String kind : JOBS.keySet()) {
                hosts.add(new BenchHost(broker, folder, kind, "1500m"));
            }
            // The first pass of each warms up the compiler.
            for (int pass = 0; pass < (quick ? 2 : 4); pass++) {
                for (BenchHost host : hosts) {
                    Cost cost = host.run(input.topic(JOBS.get(host.kind())), input.devices(), extent, BenchHost.NOTHING);
                    if (pass > 0) {
                        double thousands = input.events() / 1e3;
                        cpu.computeIfAbsent(host.kind(), made -> new ArrayList<>()).add(thousands / cost.cpu() * 1e3);
                        wall.computeIfAbsent(host.kind(), made -> new ArrayList<>()).add(thousands / cost.wall() * 1e3);
                    }
                }
            }
        } finally {
            hosts.forEach(BenchHost::close);
        }
        String at = application.name() + " (" + words + " words)";
        JOBS.keySet().forEach(kind -> {
            report.add("throughput", at + ": " + kind + ", processor time", "thousand records a second", cpu.get(kind));
            report.add("throughput", at + ": " + kind + ", by the clock", "thousand records a second", wall.get(kind));
        });
        for (String plain : List.of("vectors", "raw")) {
            report.add("throughput", at + ": ours beside " + plain + ", processor time", "ratio",
                    BenchReport.ratios(cpu.get("ours"), cpu.get(plain)));
            report.add("throughput", at + ": ours beside " + plain + ", by the clock", "ratio",
                    BenchReport.ratios(wall.get("ours"), wall.get(plain)));
        }
    }
}
