//! What the aggregator counts for its operator: requests, aggregates by how far they are, uploads
//! that were checked and those of them that were rejected.
//!
//! # Privacy
//! All of it stands in closings and results, which are public; no aggregate is named.

use crate::service::metrics::{Metrics, Requests};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// The counts. Clones are one.
#[derive(Clone)]
pub struct Counted {
    /// Requests that were answered.
    pub requests: Requests,
    aggregates: Family<State, Gauge>,
    checked: Counter,
    rejected: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct State {
    /// `open`, `closed`, `result` or `without`.
    state: &'static str,
}

/// How far aggregates are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stand {
    /// Not closed yet.
    pub open: i64,
    /// Closed, and not decrypted.
    pub closed: i64,
    /// With a result.
    pub result: i64,
    /// Ended without one.
    pub without: i64,
}

impl Counted {
    /// Nothing was counted.
    #[must_use]
    pub fn new(metrics: &Metrics) -> Self {
        let requests = metrics.requests("stats_requests");
        let aggregates = Family::<State, Gauge>::default();
        let (checked, rejected) = (Counter::default(), Counter::default());
        metrics.with(|registry| {
            let help = "Aggregates, by how far they are";
            registry.register("stats_aggregates", help, aggregates.clone());
            registry.register("stats_uploads_checked", "Uploads checked", checked.clone());
            registry.register("stats_uploads_rejected", "Of these, rejected", rejected.clone());
        });
        Self { requests, aggregates, checked, rejected }
    }

    /// An aggregate's uploads were checked.
    pub fn checked(&self, uploads: usize, rejected: usize) {
        self.checked.inc_by(uploads as u64);
        self.rejected.inc_by(rejected as u64);
    }

    /// How far aggregates are now.
    pub fn stand(&self, stand: Stand) {
        let Stand { open, closed, result, without } = stand;
        let all = [("open", open), ("closed", closed), ("result", result), ("without", without)];
        for (state, many) in all {
            self.aggregates.get_or_create(&State { state }).set(many);
        }
    }
}
