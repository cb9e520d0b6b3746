// Controls a worker process, and the run of one job in it.
package alpheus.flink;

import alpheus.broker.Broker;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** A worker process. */
final class BenchHost implements AutoCloseable {
    private static final long PATIENCE_MILLIS = 180_000;
    /** All events are there already. */
    static final Meanwhile NOTHING = () -> { };

    private static int runs;

    private final Broker broker;
    private final Path folder;
    private final String kind;
    private final Process process;
    private final PrintWriter out;
    private final BufferedReader in;

    /** The extent of a run. */
    record Extent(BenchApplication application, int streams, int windows, long start, int parallelism,
            long checkpointMillis) {}

    /** The cost of a run, in milliseconds. */
    record Cost(double cpu, double wall, BenchClerk clerk) {}

    BenchHost(Broker broker, Path folder, String kind, String memory) throws IOException {
        this.broker = broker;
        this.folder = folder;
        this.kind = kind;
        this.process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Xmx" + memory, "-Xms" + memory, "-XX:+UseParallelGC",
                        "--add-opens=java.base/java.util=ALL-UNNAMED", "--add-opens=java.base/java.lang=ALL-UNNAMED",
                        "-cp", System.getProperty("java.class.path"), BenchWorker.class.getName())
                .redirectError(ProcessBuilder.Redirect.appendTo(folder.resolve(kind + ".err").toFile()))
                .start();
        this.out = new PrintWriter(new OutputStreamWriter(process.getOutputStream(), StandardCharsets.UTF_8), true);
        this.in = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    }

    String kind() {
        return kind;
    }

    private String ask(String line) throws IOException {
        out.println(line);
        for (String said = in.readLine(); said != null; said = in.readLine()) {
            if (said.startsWith("answer ")) {
                return said.substring("answer ".length());
            }
        }
        throw new IOException("a worker died with these errors:\n" + Files.readString(folder.resolve(kind + ".err")));
    }

    /** Something that goes on while a job runs. */
    @FunctionalInterface
    interface Meanwhile {
        void run() throws Exception;
    }

    /** Runs the job over a topic of events until all windows have a result. */
    Cost run(String events, BenchDevices devices, Extent extent, Meanwhile meanwhile) throws Exception {
        JobConfig config = config("run" + runs++, events, extent);
        try (Producer<byte[], byte[]> kafka = producer(broker)) {
            BenchClerk clerk = new BenchClerk(
                    config, devices, kafka, extent.streams, extent.application.words(), extent.start);
            int instructions = kind.equals("ours") ? clerk.begin() : 0;
            ask("run " + kind + " " + folder.resolve("job.properties") + " " + extent.parallelism);
            awaitInstructed(config, instructions);
            try (KafkaConsumer<byte[], byte[]> results = results(config)) {
                ask("go");
                long from = System.nanoTime();
                meanwhile.run();
                follow(config, clerk, results, extent.windows);
                double wall = (System.nanoTime() - from) / 1e6;
                return new Cost(Double.parseDouble(ask("stop")), wall, clerk);
            }
        }
    }

    static Producer<byte[], byte[]> producer(Broker broker) {
        return new KafkaProducer<>(
                Map.of("bootstrap.servers", broker.bootstrap(), "batch.size", "262144", "linger.ms", "5",
                        "max.request.size", "8000000", "buffer.memory", "134217728"),
                new ByteArraySerializer(), new ByteArraySerializer());
    }

    private JobConfig config(String name, String events, Extent extent) throws Exception {
        Map<String, String> settings = new HashMap<>(Map.of(
                "bootstrap.servers", broker.bootstrap(),
                "alpheus.schema", extent.application.file().toString(),
                "alpheus.job", name,
                "alpheus.checkpoint.ms", Long.toString(extent.checkpointMillis),
                "alpheus.idle.ms", "600000",
                "alpheus.disorder.ms", "0",
                "alpheus.skew.ms", "60000",
                "alpheus.topic.events", events,
                "max.request.size", "8000000"));
        for (String topic : List.of("instructions", "tokens", "sums", "summaries", "dead-letters")) {
            settings.put("alpheus.topic." + topic, name + "-" + topic);
            broker.createTopics(1, name + "-" + topic);
        }
        Properties file = new Properties();
        file.putAll(settings);
        try (var written = Files.newOutputStream(folder.resolve("job.properties"))) {
            file.store(written, null);
        }
        return new JobConfig(settings);
    }

    /** A stream must have joined before its events arrive. */
    private void awaitInstructed(JobConfig config, int instructions) throws Exception {
        TopicPartition only = new TopicPartition(config.getString(JobConfig.INSTRUCTIONS), 0);
        try (Admin admin = broker.admin()) {
            for (long read = 0; read < instructions; Thread.sleep(100)) {
                OffsetAndMetadata at = admin.listConsumerGroupOffsets(config.getString(JobConfig.NAME))
                        .partitionsToOffsetAndMetadata().get().get(only);
                read = at == null ? 0 : at.offset();
            }
        }
    }

    private KafkaConsumer<byte[], byte[]> results(JobConfig config) {
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
                Map.of("bootstrap.servers", broker.bootstrap(), "isolation.level", "read_committed",
                        "auto.offset.reset", "earliest", "max.partition.fetch.bytes", "8000000"),
                new ByteArrayDeserializer(), new ByteArrayDeserializer());
        List<TopicPartition> topics = new ArrayList<>();
        for (String topic : List.of(JobConfig.SUMS, JobConfig.SUMMARIES, JobConfig.DEAD_LETTERS)) {
            topics.add(new TopicPartition(config.getString(topic), 0));
        }
        consumer.assign(topics);
        return consumer;
    }

    private void follow(JobConfig config, BenchClerk clerk, KafkaConsumer<byte[], byte[]> results, int windows)
            throws IOException {
        long deadline = System.currentTimeMillis() + PATIENCE_MILLIS;
        while (clerk.done(windows) < windows) {
            for (ConsumerRecord<byte[], byte[]> record : results.poll(Duration.ofMillis(20))) {
                if (record.topic().equals(config.getString(JobConfig.SUMMARIES))) {
                    clerk.summary(record.value());
                } else if (record.topic().equals(config.getString(JobConfig.DEAD_LETTERS))) {
                    String reason = new String(record.headers().lastHeader(Outlet.REASON).value(), StandardCharsets.UTF_8);
                    throw new IOException(kind + ": a benchmark must not lose records, but one is rejected: " + reason);
                } else if (kind.equals("ours")) {
                    clerk.sum(record.value(), System.currentTimeMillis());
                } else {
                    clerk.plain(record.value(), System.currentTimeMillis());
                }
            }
            if (System.currentTimeMillis() > deadline || !process.isAlive()) {
                throw new IOException(kind + ": " + clerk.done(windows) + " of " + windows + " windows arrived; " + clerk.status()
                        + Files.readString(folder.resolve(kind + ".err")));
            }
        }
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }
}
