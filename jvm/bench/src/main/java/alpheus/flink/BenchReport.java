// Figures as JSON, in the form of `alpheus-bench`'s.
package alpheus.flink;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/** Figures, each with its samples, and the environment. */
final class BenchReport {
    private final List<String> figures = new ArrayList<>();

    /** Adds a figure: the median of its samples. */
    void add(String group, String name, String unit, List<Double> samples) {
        double median = median(samples);
        System.err.printf(Locale.ROOT, "%-12s %-60s %12.3f %s%n", group, name, median, unit);
        figures.add(String.format(Locale.ROOT,
                "    {\"group\": \"%s\", \"name\": \"%s\", \"unit\": \"%s\", \"median\": %.4f, \"samples\": [%s]}",
                group, name, unit, median, samples.stream().map(each -> String.format(Locale.ROOT, "%.4f", each))
                        .collect(Collectors.joining(", "))));
    }

    static double median(List<Double> samples) {
        double[] sorted = samples.stream().mapToDouble(Double::doubleValue).sorted().toArray();
        int half = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
    }

    /** The samples of one figure, divided by the samples of another taken at the same time. */
    static List<Double> ratios(List<Double> ours, List<Double> theirs) {
        List<Double> ratios = new ArrayList<>();
        for (int i = 0; i < ours.size(); i++) {
            ratios.add(ours.get(i) / theirs.get(i));
        }
        return ratios;
    }

    void write(Path file) throws IOException {
        Files.writeString(file, "{\n  \"environment\": {\"date\": \"" + LocalDate.now() + "\", \"processor\": \""
                + processor() + "\", \"processors\": " + Runtime.getRuntime().availableProcessors()
                + ", \"kernel\": \"" + System.getProperty("os.version") + "\", \"java\": \""
                + System.getProperty("java.vm.version") + "\", \"flink\": \""
                + org.apache.flink.runtime.util.EnvironmentInformation.getVersion() + "\", \"kafka\": \""
                + org.apache.kafka.common.utils.AppInfoParser.getVersion() + "\"},\n  \"figures\": [\n"
                + String.join(",\n", figures) + "\n  ]\n}\n");
    }

    private static String processor() throws IOException {
        Path info = Path.of("/proc/cpuinfo");
        if (!Files.isReadable(info)) {
            return System.getProperty("os.arch");
        }
        return Arrays.stream(Files.readString(info).split("\n"))
                .filter(line -> line.startsWith("model name"))
                .map(line -> line.substring(line.indexOf(':') + 1).strip())
                .findFirst().orElse("unknown");
    }
}
