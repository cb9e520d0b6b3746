// A Kafka broker in its own process, on loopback, that tests may kill.
package alpheus.broker;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/**
 * A Kafka broker in its own process: KRaft, one node, loopback only. It has two listeners. On the open one
 * everything is allowed. On the one with SASL only access lists count. The broker ends with the JVM that
 * started it.
 */
public final class Broker implements AutoCloseable {
    /** A user without permissions until an access list grants them. The password is the name. */
    public static final String USER = "meter";

    private static final String LOOPBACK = "127.0.0.1";
    private static final long UP_SECONDS = 900;

    private final Path folder;
    private final int open;
    private final int secured;
    private final int controller;
    private Process process;

    private Broker(Path folder) throws IOException {
        this.folder = folder;
        try (ServerSocket one = free(); ServerSocket two = free(); ServerSocket three = free()) {
            this.open = one.getLocalPort();
            this.secured = two.getLocalPort();
            this.controller = three.getLocalPort();
        }
    }

    private static ServerSocket free() throws IOException {
        return new ServerSocket(0, 1, InetAddress.getByName(LOOPBACK));
    }

    /**
     * Starts an empty broker.
     *
     * @return the broker, which answers
     * @throws IOException if its folder cannot be made
     */
    public static Broker start() throws IOException {
        Broker broker = new Broker(Files.createTempDirectory("broker"));
        broker.writeSettings();
        broker.run();
        return broker;
    }

    /** One broker for all tests of a JVM: starting one costs seconds. */
    private static final class Shared {
        static final Broker BROKER = started();

        private static Broker started() {
            try {
                Broker broker = start();
                Runtime.getRuntime().addShutdownHook(new Thread(broker::close));
                return broker;
            } catch (IOException failure) {
                throw new IllegalStateException("no broker", failure);
            }
        }
    }

    /**
     * The broker shared by all tests of this JVM.
     *
     * @return the broker, which answers
     */
    public static Broker shared() {
        return Shared.BROKER;
    }

    private void writeSettings() throws IOException {
        Properties settings = new Properties();
        settings.putAll(Map.of(
                "process.roles", "broker,controller",
                "node.id", "1",
                "controller.quorum.voters", "1@" + LOOPBACK + ":" + controller,
                "controller.listener.names", "CONTROLLER",
                "inter.broker.listener.name", "OPEN",
                "listeners", String.format("OPEN://%1$s:%2$d,SECURED://%1$s:%3$d,CONTROLLER://%1$s:%4$d",
                        LOOPBACK, open, secured, controller),
                "listener.security.protocol.map", "OPEN:PLAINTEXT,SECURED:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
                "log.dirs", folder.resolve("data").toString(),
                "auto.create.topics.enable", "false"));
        settings.putAll(Map.of(
                "sasl.enabled.mechanisms", "PLAIN",
                "listener.name.secured.plain.sasl.jaas.config",
                "org.apache.kafka.common.security.plain.PlainLoginModule required user_" + USER + "=\"" + USER + "\";",
                "authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users", "User:ANONYMOUS"));
        // One node, one partition of each inner topic, little memory.
        settings.putAll(Map.of(
                "offsets.topic.replication.factor", "1",
                "offsets.topic.num.partitions", "1",
                "transaction.state.log.replication.factor", "1",
                "transaction.state.log.min.isr", "1",
                "transaction.state.log.num.partitions", "1",
                "group.initial.rebalance.delay.ms", "0",
                "log.cleaner.dedupe.buffer.size", "4194304",
                "num.network.threads", "2",
                "num.io.threads", "2",
                "background.threads", "2"));
        try (var out = Files.newOutputStream(folder.resolve("server.properties"))) {
            settings.store(out, null);
        }
    }

    private void run() throws IOException {
        process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                        "-cp", System.getProperty("java.class.path"),
                        BrokerProcess.class.getName(), folder.resolve("server.properties").toString())
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(folder.resolve("out").toFile()))
                .start();
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(UP_SECONDS);
        while (!answers()) {
            if (!process.isAlive() || System.nanoTime() > deadline) {
                throw new IOException("the broker did not start:\n" + Files.readString(folder.resolve("out")));
            }
        }
    }

    private boolean answers() {
        try (Socket door = new Socket(LOOPBACK, open)) {
            return door.isConnected() && describes();
        } catch (IOException nobodyListensYet) {
            pause();
            return false;
        }
    }

    private static void pause() {
        try {
            Thread.sleep(100);
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    private boolean describes() {
        try (Admin admin = admin()) {
            return admin.describeCluster().nodes().get(10, TimeUnit.SECONDS).size() == 1;
        } catch (Exception notYet) {
            return false;
        }
    }

    /**
     * The open listener.
     *
     * @return host and port
     */
    public String bootstrap() {
        return LOOPBACK + ":" + open;
    }

    /**
     * A client's settings for the listener with SASL.
     *
     * @param password of {@link #USER}
     * @return settings
     */
    public Map<String, Object> secured(String password) {
        return new HashMap<>(Map.of(
                "bootstrap.servers", LOOPBACK + ":" + secured,
                "security.protocol", "SASL_PLAINTEXT",
                "sasl.mechanism", "PLAIN",
                "sasl.jaas.config", "org.apache.kafka.common.security.plain.PlainLoginModule required username=\""
                        + USER + "\" password=\"" + password + "\";"));
    }

    /**
     * An administration client for the open listener.
     *
     * @return the client, which the caller closes
     */
    public Admin admin() {
        return Admin.create(Map.of("bootstrap.servers", bootstrap()));
    }

    /**
     * Creates topics, and waits until the broker leads all of their partitions. Before that it may reject a
     * producer's first batch and accept the next one. The first is then out of sequence and expires.
     *
     * @param partitions of each
     * @param names their names
     * @throws ExecutionException if one exists
     * @throws InterruptedException if the thread is interrupted
     */
    public void createTopics(int partitions, String... names) throws ExecutionException, InterruptedException {
        try (Admin admin = admin()) {
            admin.createTopics(Stream.of(names).map(name -> new NewTopic(name, partitions, (short) 1)).toList())
                    .all().get();
            Map<TopicPartition, OffsetSpec> ends = new HashMap<>();
            for (String name : names) {
                for (int partition = 0; partition < partitions; partition++) {
                    ends.put(new TopicPartition(name, partition), OffsetSpec.latest());
                }
            }
            while (!leads(admin, ends)) {
                pause();
            }
        }
    }

    private static boolean leads(Admin admin, Map<TopicPartition, OffsetSpec> ends)
            throws ExecutionException, InterruptedException {
        try {
            admin.listOffsets(ends).all().get();
            return true;
        } catch (ExecutionException failed) {
            if (failed.getCause() instanceof UnknownTopicOrPartitionException) {
                return false;
            }
            throw failed;
        }
    }

    /**
     * Allows things. Returns when the broker knows: it answers the request before it has applied it.
     *
     * @param allowed access lists
     * @throws ExecutionException if the broker rejects them
     * @throws InterruptedException if the thread is interrupted
     */
    public void allow(AclBinding... allowed) throws ExecutionException, InterruptedException {
        try (Admin admin = admin()) {
            var wanted = List.of(allowed);
            admin.createAcls(wanted).all().get();
            while (!admin.describeAcls(AclBindingFilter.ANY).values().get().containsAll(wanted)) {
                Thread.sleep(20);
            }
        }
    }

    /** Kills the process, like a power cut that loses nothing on disk. */
    public void kill() {
        process.destroyForcibly();
        try {
            process.waitFor();
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    /**
     * Restarts it with its data, at the same ports.
     *
     * @throws IOException if it does not start
     */
    public void startAgain() throws IOException {
        run();
    }

    @Override
    public void close() {
        kill();
        try (Stream<Path> paths = Files.walk(folder)) {
            for (Path path : paths.sorted(Comparator.reverseOrder()).toList()) {
                Files.deleteIfExists(path);
            }
        } catch (IOException left) {
            // The rest stays in a temporary folder.
        }
    }
}
