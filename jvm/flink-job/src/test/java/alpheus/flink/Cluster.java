// A Flink cluster in this process, which can lose task managers.
package alpheus.flink;

import java.nio.file.Path;
import java.time.Duration;
import org.apache.flink.api.common.JobID;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.jobgraph.SavepointRestoreSettings;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** Two task managers with two slots each, and a job on them. */
final class Cluster {
    private final MiniCluster flink;
    private final Configuration settings = new Configuration();
    private JobID job;

    Cluster() throws Exception {
        settings.set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
        settings.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS, 1000);
        settings.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_DELAY, Duration.ofMillis(500));
        settings.set(TaskManagerOptions.MANAGED_MEMORY_SIZE, MemorySize.ofMebiBytes(8));
        settings.set(TaskManagerOptions.NETWORK_MEMORY_MIN, MemorySize.ofMebiBytes(64));
        settings.set(TaskManagerOptions.NETWORK_MEMORY_MAX, MemorySize.ofMebiBytes(64));
        flink = new MiniCluster(new MiniClusterConfiguration.Builder()
                .setConfiguration(settings)
                .setNumTaskManagers(2)
                .setNumSlotsPerTaskManager(2)
                .withRandomPorts()
                .build());
        flink.start();
    }

    /** Runs the job, from a savepoint if there is one. */
    void submit(JobConfig config, int parallelism, String savepoint) throws Exception {
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment(settings);
        environment.setParallelism(parallelism);
        WindowSumsJob.assemble(environment, config);
        JobGraph graph = environment.getStreamGraph().getJobGraph();
        if (savepoint != null) {
            graph.setSavepointRestoreSettings(SavepointRestoreSettings.forPath(savepoint));
        }
        job = graph.getJobID();
        flink.submitJob(graph).get();
    }

    /** Loses a task manager with everything that runs on it, and starts another. */
    void loseTaskManager() throws Exception {
        flink.terminateTaskManager(0).get();
        flink.startTaskManager();
    }

    /** Stops the job with a savepoint. */
    String stop(Path folder) throws Exception {
        String savepoint =
                flink.stopWithSavepoint(job, folder.toString(), false, SavepointFormatType.CANONICAL).get();
        flink.requestJobResult(job).get();
        return savepoint;
    }

    /** The state of the job and its last failure, for a test that waits for it. */
    String state() throws Exception {
        var graph = flink.getExecutionGraph(job).get();
        var failure = graph.getFailureInfo();
        return graph.getState() + (failure == null ? "" : ": " + failure.getExceptionAsString());
    }

    void close() throws Exception {
        flink.close();
    }
}
