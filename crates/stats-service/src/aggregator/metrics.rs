//! The aggregator's metrics for its operator: requests, aggregates by state, and checked and
//! rejected uploads.
//!
//! # Privacy
//! Of aggregates, closings and results contain all of it, and are public. No aggregate is named. Of an
//! open count they do not: each presentation is a request, and a commit of the store, so anyone who reads
//! these metrics sees the count grow, as the aggregator's operator does.

use alpheus_node::service::metrics::{Metrics, Requests};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// The metrics. Clones share their values.
#[derive(Clone)]
pub struct AggregatorMetrics {
    /// Answered requests.
    pub requests: Requests,
    aggregates: Family<State, Gauge>,
    checked: Counter,
    rejected: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct State {
    /// `open`, `closed`, `result` or `no_result`.
    state: &'static str,
}

/// The number of aggregates in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AggregateCounts {
    /// Not closed yet.
    pub open: i64,
    /// Closed, and not decrypted.
    pub closed: i64,
    /// With a result.
    pub result: i64,
    /// Ended without one.
    pub without: i64,
}

impl AggregatorMetrics {
    /// Registers the metrics.
    #[must_use]
    pub fn new(metrics: &Metrics) -> Self {
        let requests = metrics.requests("stats_requests");
        let aggregates = Family::<State, Gauge>::default();
        let (checked, rejected) = (Counter::default(), Counter::default());
        metrics.with(|registry| {
            let help = "Aggregates by state";
            registry.register("stats_aggregates", help, aggregates.clone());
            registry.register("stats_uploads_checked", "Uploads checked", checked.clone());
            registry.register(
                "stats_uploads_rejected",
                "Checked uploads that were rejected",
                rejected.clone(),
            );
        });
        Self { requests, aggregates, checked, rejected }
    }

    /// Counts an aggregate's checked uploads.
    pub fn checked(&self, uploads: usize, rejected: usize) {
        self.checked.inc_by(uploads as u64);
        self.rejected.inc_by(rejected as u64);
    }

    /// Sets the number of aggregates in each state.
    pub fn set_aggregates(&self, counts: AggregateCounts) {
        let AggregateCounts { open, closed, result, without } = counts;
        let all = [("open", open), ("closed", closed), ("result", result), ("no_result", without)];
        for (state, many) in all {
            self.aggregates.get_or_create(&State { state }).set(many);
        }
    }
}
