// A process that is killed and restarted never uses a key twice.
package alpheus.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import alpheus.stream.Frame;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RestartTest {
    private static final int TICK_MILLIS = 50;
    private static final int STARTS = 3;
    private static final int FRAMES = 40;

    @TempDir
    private Path folder;

    /** The process to kill: it sends events forever, and stores each frame before the next. */
    public static final class Victim {
        private Victim() {}

        /** Runs until killed. */
        public static void main(String[] arguments) throws Exception {
            TestDevice device = new TestDevice(Path.of(arguments[0]), TICK_MILLIS);
            MockProducer<byte[], byte[]> kafka =
                    new MockProducer<>(true, null, new ByteArraySerializer(), new ByteArraySerializer());
            EncryptingProducer<String, Object> producer =
                    new EncryptingProducer<>(device.settings, kafka, MicroClock.SYSTEM);
            DataOutputStream out = new DataOutputStream(System.out);
            for (int written = 0; true; Thread.sleep(1)) {
                producer.send(new ProducerRecord<>(TestDevice.TOPIC, Map.of("power", 1)));
                for (; written < kafka.history().size(); written++) {
                    byte[] frame = kafka.history().get(written).value();
                    out.writeInt(frame.length);
                    out.write(frame);
                    out.flush();
                }
            }
        }
    }

    @Test
    void noKeyIsUsedTwiceOverKills() throws Exception {
        Set<String> used = new HashSet<>();
        Set<Long> sessions = new HashSet<>();
        for (int start = 0; start < STARTS; start++) {
            run(used, sessions);
        }
        assertEquals(STARTS, sessions.size(), "a session of its own each start");
    }

    private void run(Set<String> used, Set<Long> sessions) throws Exception {
        Path java = Path.of(System.getProperty("java.home"), "bin", "java");
        Process process = new ProcessBuilder(
                        java.toString(), "-Xmx64m", "-cp", System.getProperty("java.class.path"),
                        Victim.class.getName(), Files.createDirectories(folder.resolve("device")).toString())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        try (DataInputStream in = new DataInputStream(process.getInputStream())) {
            for (int i = 0; i < FRAMES; i++) {
                Frame frame = Frame.parse(in.readNBytes(in.readInt()));
                assertTrue(used.add(frame.session() + " " + frame.time()), "used twice");
                sessions.add(frame.session());
            }
            process.destroyForcibly();
        } catch (EOFException early) {
            throw new AssertionError("it ended by itself: " + process.waitFor(), early);
        } finally {
            process.destroyForcibly();
            assertTrue(process.waitFor(30, TimeUnit.SECONDS));
        }
    }
}
