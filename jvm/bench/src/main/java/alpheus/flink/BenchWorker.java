// A process that runs jobs one after another, and reports the cost of each.
package alpheus.flink;

import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.flink.api.common.JobStatus;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * Runs jobs in a separate process. Commands on standard input: {@code run KIND FILE PARALLELISM} starts a
 * job, {@code go} admits its events, {@code stop} ends it. The answer to each is one line. The answer to
 * {@code stop} is the processor time of all threads since {@code go}, in milliseconds.
 */
public final class BenchWorker {
    private static final OperatingSystemMXBean SYSTEM =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private JobClient job;
    private long cpuAtGo;
    private volatile boolean stopping;

    private BenchWorker() {}

    /**
     * Runs until its input ends.
     *
     * @param arguments none
     * @throws Exception if a job cannot be run
     */
    public static void main(String[] arguments) throws Exception {
        BenchWorker worker = new BenchWorker();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println("answer " + worker.answer(line.split(" ")));
        }
        Runtime.getRuntime().halt(0);
    }

    private String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "run" -> {
                Path file = Path.of(words[2]);
                run(words[1], config(file), settings(file.resolveSibling("checkpoints")), Integer.parseInt(words[3]));
                return "running";
            }
            case "go" -> {
                cpuAtGo = SYSTEM.getProcessCpuTime();
                BenchGate.open();
                return "gone";
            }
            default -> {
                long spent = SYSTEM.getProcessCpuTime() - cpuAtGo;
                stopping = true;
                job.cancel().get();
                return Double.toString(spent / 1e6);
            }
        }
    }

    private static JobConfig config(Path file) throws Exception {
        Properties read = new Properties();
        try (var in = Files.newInputStream(file)) {
            read.load(in);
        }
        Map<String, Object> settings = new HashMap<>();
        read.stringPropertyNames().forEach(name -> settings.put(name, read.getProperty(name)));
        settings.put("interceptor.classes", BenchGate.class.getName());
        settings.put(BenchGate.EVENTS, read.getProperty(JobConfig.EVENTS));
        return new JobConfig(settings);
    }

    private void run(String kind, JobConfig config, Configuration settings, int parallelism) throws Exception {
        BenchGate.shut();
        stopping = false;
        StreamExecutionEnvironment flink = StreamExecutionEnvironment.createLocalEnvironment(parallelism, settings);
        switch (kind) {
            case "ours" -> WindowSumsJob.assemble(flink, config);
            case "vectors" -> PlainJob.assemble(flink, config, null);
            default -> PlainJob.assemble(flink, config, config.getString(JobConfig.SCHEMA));
        }
        job = flink.executeAsync(kind);
        job.getJobExecutionResult().whenComplete((result, failure) -> {
            if (failure != null && !stopping) {
                failure.printStackTrace();
                Runtime.getRuntime().halt(1);
            }
        });
        while (job.getJobStatus().get() != JobStatus.RUNNING) {
            Thread.sleep(50);
        }
    }

    private static Configuration settings(Path checkpoints) {
        Configuration settings = new Configuration();
        // State in the job manager's memory must be small.
        settings.set(CheckpointingOptions.CHECKPOINTS_DIRECTORY, checkpoints.toUri().toString());
        settings.set(RestartStrategyOptions.RESTART_STRATEGY, "none");
        settings.set(TaskManagerOptions.MANAGED_MEMORY_SIZE, MemorySize.ofMebiBytes(8));
        settings.set(TaskManagerOptions.NETWORK_MEMORY_MIN, MemorySize.ofMebiBytes(128));
        settings.set(TaskManagerOptions.NETWORK_MEMORY_MAX, MemorySize.ofMebiBytes(128));
        return settings;
    }
}
