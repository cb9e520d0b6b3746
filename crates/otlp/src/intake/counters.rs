//! What the receiver counts for its operator, and what it says once of each metric.

use super::Outcome;
use crate::point::PointError;
use alpheus_node::service::metrics::Metrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

/// What the receiver counts.
#[derive(Default)]
pub(super) struct Counters {
    points: Counter,
    repeated: Counter,
    overlapping: Counter,
    beyond: Counter,
    refused: Family<Reason, Counter>,
    /// Metrics of which it was said that several programs send them as one, and those with values
    /// beyond their buckets.
    said: Mutex<[BTreeSet<String>; 2]>,
}

impl Counters {
    pub(super) fn register(&self, metrics: &Metrics) {
        metrics.with(|registry| {
            let help = "Points that were counted, or were counted before";
            registry.register("otlp_points", help, self.points.clone());
            let help =
                "Points that added nothing: they were sent twice, or a later total contains them";
            registry.register("otlp_points_repeated", help, self.repeated.clone());
            let help = "Points that were counted although they overlap with others of their series";
            registry.register("otlp_points_overlapping", help, self.overlapping.clone());
            let help = "Values of exponential histograms that are beyond all buckets of the schema";
            registry.register("otlp_values_beyond", help, self.beyond.clone());
            let help = "Points that were refused, by reason";
            registry.register("otlp_points_refused", help, self.refused.clone());
        });
    }

    pub(super) fn refuse(&self, why: PointError, points: u64) {
        self.refused.get_or_create(&Reason { reason: why.label() }).inc_by(points);
    }

    /// Counts the points that a request has added.
    pub(super) fn count(&self, taken: &Outcome) {
        self.points.inc_by(taken.taken);
        self.repeated.inc_by(taken.repeated);
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let [shared, wide] = &mut *said;
        for (metric, values) in &taken.beyond {
            self.beyond.inc_by(*values);
            if wide.insert(metric.clone()) {
                tracing::warn!(
                    metric,
                    "values are beyond all buckets of the schema: they are in `_below` and `_above`; capture them and import again for more buckets"
                );
            }
        }
        for (metric, points) in &taken.overlapping {
            self.overlapping.inc_by(*points);
            if shared.insert(metric.clone()) {
                tracing::warn!(
                    metric,
                    "several programs send this metric with the same resource and attributes, and a point of one may be taken for a repetition of another's; give each its own service.instance.id"
                );
            }
        }
    }
}
