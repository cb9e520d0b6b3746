//! What a worker counts.

use alpheus_node::service::metrics::Metrics;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

/// A worker's counters. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    pub(crate) partitions: Gauge,
    pub(crate) part_partitions: Gauge,
    pub(crate) frames: Counter,
    pub(crate) bytes: Counter,
    pub(crate) refused: Counter,
    pub(crate) closed: Counter,
    pub(crate) sums: Counter,
    pub(crate) commits: Counter,
    pub(crate) repeated: Counter,
    pub(crate) given_up: Counter,
    pub(crate) beyond: Counter,
    pub(crate) joined: Counter,
}

impl Meter {
    /// Shows them.
    pub fn register(&self, metrics: &Metrics) {
        metrics.with(|registry| {
            let help = "Partitions of events that are this process's own";
            registry.register("worker_partitions", help, self.partitions.clone());
            let help = "Partitions of worker-parts that are this process's own";
            registry.register("worker_part_partitions", help, self.part_partitions.clone());
            for (name, help, counter) in [
                ("worker_frames", "Frames read from the log", &self.frames),
                ("worker_frame_bytes", "Bytes of frames read from the log", &self.bytes),
                ("worker_frames_refused", "Frames that became dead letters", &self.refused),
                ("worker_windows_closed", "Windows closed, by partition and plan", &self.closed),
                ("worker_sums", "Sums of windows written", &self.sums),
                ("worker_windows_given_up", "Windows whose sums never became whole", &self.given_up),
                (
                    "worker_partitions_beyond",
                    "Partitions given to this process that were added to events and that nobody reads",
                    &self.beyond,
                ),
                ("worker_commits", "Transactions", &self.commits),
                ("worker_steps_repeated", "Steps of another process repeated", &self.repeated),
                ("worker_joins", "How often the process has joined its group", &self.joined),
            ] {
                registry.register(name, help, counter.clone());
            }
        });
    }
}
