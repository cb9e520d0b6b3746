// The embedded runtime over the same words and streams, as `alpheus-bench streams` measures it.
package alpheus.flink;

import alpheus.document.DocumentException;
import alpheus.document.Node;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The embedded runtime, compared with the jobs of {@link BenchThroughput}: from a log to a durable row,
 * with every word released.
 */
final class BenchEmbedded {
    /** Events of a window that the program sends for each stream. */
    private static final int EVENTS = 20;
    private static final String COST = ": ingest and merge, CPU a window";

    private final Path alpheus;
    private final Path examples;
    private final Path folder;
    private final boolean quick;

    BenchEmbedded(Path alpheus, Path examples, Path folder, boolean quick) {
        this.alpheus = alpheus;
        this.examples = examples;
        this.folder = folder;
        this.quick = quick;
    }

    void run(BenchReport report) throws Exception {
        measure(report, BenchApplication.padded(examples, "car-maintenance", 169, folder));
        measure(report, BenchApplication.padded(examples, "fitness", 683, folder));
    }

    private void measure(BenchReport report, BenchApplication application) throws Exception {
        Map<String, List<Double>> rates = new LinkedHashMap<>();
        for (int pass = 0; pass < (quick ? 1 : 3); pass++) {
            for (Node each : figures(application)) {
                Map<String, Node> figure = each.map();
                String name = figure.get("name").text();
                if (name.contains("all words") && name.endsWith(COST)) {
                    boolean raw = name.contains("raw attributes");
                    add(rates, raw ? "raw" : "ours", figure.get("ours"));
                    add(rates, "vectors", figure.get("floor"));
                }
            }
        }
        String at = application.name() + " (" + application.words() + " words)";
        rates.forEach((job, samples) -> report.add("embedded", at + ": " + job + ", processor time",
                "thousand records a second", samples));
    }

    /** Converts milliseconds of a window, if that figure exists, to thousands of records in a second. */
    private static void add(Map<String, List<Double>> rates, String job, Node millis) throws DocumentException {
        if (!millis.isNothing()) {
            rates.computeIfAbsent(job, made -> new ArrayList<>())
                    .add(BenchThroughput.STREAMS * EVENTS / Double.parseDouble(millis.text()));
        }
    }

    private List<Node> figures(BenchApplication application) throws Exception {
        Process process = new ProcessBuilder(alpheus.resolveSibling("alpheus-bench").toString(), "streams", "--only", "end-to-end",
                        "--application", application.name(), "--schema", application.file().toString(),
                        "--producers", Integer.toString(BenchThroughput.STREAMS),
                        "--windows", quick ? "3" : "30", "--format", "json")
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        String report = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        if (process.waitFor() != 0) {
            throw new IOException(alpheus.resolveSibling("alpheus-bench") + " streams failed; run it manually to see the error");
        }
        // JSON is also YAML. Our JSON reader rejects fractions.
        return Node.fromYaml(report).map().get("figures").list();
    }
}
