// The process of a broker: formats its folder once, runs Kafka, and ends with its parent.
package alpheus.broker;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import kafka.Kafka;
import kafka.tools.StorageTool;

/** The process of a broker. Its only argument is the file of the broker's settings. */
public final class BrokerProcess {
    private static final String CLUSTER = "QWxwaGV1c1Rlc3RCcm9rZQ";

    private BrokerProcess() {}

    /**
     * Runs the broker until its input ends, as it does when the parent dies.
     *
     * @param arguments the file of its settings
     * @throws IOException if its folder cannot be read
     */
    public static void main(String[] arguments) throws IOException {
        endWithTheParent();
        Properties settings = new Properties();
        try (var in = Files.newInputStream(Path.of(arguments[0]))) {
            settings.load(in);
        }
        if (!Files.exists(Path.of(settings.getProperty("log.dirs"), "meta.properties"))) {
            StorageTool.execute(
                    new String[] {"format", "--ignore-formatted", "-t", CLUSTER, "-c", arguments[0]}, System.out);
        }
        Kafka.main(arguments);
    }

    private static void endWithTheParent() {
        Thread watch = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    // Ignores input until it ends.
                }
            } catch (IOException gone) {
                // The same as the end.
            }
            Runtime.getRuntime().halt(1);
        }, "parent");
        watch.setDaemon(true);
        watch.start();
    }
}
