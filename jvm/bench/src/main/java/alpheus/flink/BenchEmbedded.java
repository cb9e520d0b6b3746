// The embedded runtime over the same words and streams, as `alpheus bench streams` measures it.
package alpheus.flink;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.snakeyaml.engine.v2.api.Load;
import org.snakeyaml.engine.v2.api.LoadSettings;

/** What stands beside the jobs of {@link BenchThroughput}: out of a log to a durable row, every word released. */
final class BenchEmbedded {
    private static final int STREAMS = 300;
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
            for (Map<?, ?> figure : figures(application)) {
                String name = (String) figure.get("name");
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

    /** Milliseconds of a window, if there is that figure, as thousands of records in a second. */
    private static void add(Map<String, List<Double>> rates, String job, Object millis) {
        if (millis instanceof Number number) {
            rates.computeIfAbsent(job, made -> new ArrayList<>()).add(STREAMS * EVENTS / number.doubleValue());
        }
    }

    private List<Map<?, ?>> figures(BenchApplication application) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(alpheus.toString(), "bench", "streams", "--only", "end-to-end",
                        "--application", application.name(), "--schema", application.file().toString(),
                        "--producers", Integer.toString(STREAMS), "--windows", quick ? "3" : "30", "--format", "json")
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        // JSON is YAML.
        Object report = new Load(LoadSettings.builder().build()).loadFromInputStream(process.getInputStream());
        if (process.waitFor() != 0 || !(report instanceof Map<?, ?> whole)) {
            throw new IOException(alpheus + " bench streams failed; run it by hand to see why");
        }
        List<Map<?, ?>> figures = new ArrayList<>();
        ((List<?>) whole.get("figures")).forEach(each -> figures.add((Map<?, ?>) each));
        return figures;
    }
}
