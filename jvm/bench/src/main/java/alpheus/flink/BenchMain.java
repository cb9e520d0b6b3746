// The figures of the JVM side: `make bench-scale`.
package alpheus.flink;

import alpheus.broker.Broker;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/**
 * Measures part after part and writes one report. Arguments: {@code REPOSITORY ALPHEUS REPORT [PART ...]
 * [--quick]}, where {@code ALPHEUS} is the program, built for release.
 */
public final class BenchMain {
    private static final List<String> ALL = List.of("encrypt", "throughput", "embedded", "growth", "latency");

    private BenchMain() {}

    /**
     * Measures.
     *
     * @param arguments the repository, the program, the report's file, parts (all by default), whether to
     *     be quick
     * @throws Exception if a job's result is wrong, or a measurement fails
     */
    public static void main(String[] arguments) throws Exception {
        List<String> words = new ArrayList<>(List.of(arguments));
        boolean quick = words.remove("--quick");
        Path examples = Path.of(words.remove(0)).resolve("examples");
        Path alpheus = Path.of(words.remove(0));
        Path report = Path.of(words.remove(0));
        List<String> parts = words.isEmpty() ? ALL : words;
        Path folder = Files.createTempDirectory("bench");
        BenchReport figures = new BenchReport();
        try (Broker broker = Broker.start()) {
            for (String part : parts) {
                switch (part) {
                    case "encrypt" -> new BenchEncrypt(examples, folder, quick).run(figures);
                    case "throughput" -> new BenchThroughput(broker, examples, folder, quick).run(figures);
                    case "embedded" -> new BenchEmbedded(alpheus, examples, folder, quick).run(figures);
                    case "growth" -> new BenchGrowth(broker, examples, folder, quick).run(figures);
                    case "latency" -> new BenchLatency(broker, examples, folder, quick).run(figures);
                    default -> throw new IllegalArgumentException(
                            part + ": choose from " + String.join(", ", ALL));
                }
                // Finished measurements are kept if a later one fails.
                figures.write(report);
            }
        } finally {
            try (Stream<Path> left = Files.walk(folder)) {
                left.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
            }
        }
    }
}
