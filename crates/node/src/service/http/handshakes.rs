//! How many TLS handshakes a process has finished and refused, at all its listeners.

use crate::service::metrics::Metrics;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

static FINISHED: AtomicU64 = AtomicU64::new(0);
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// Counts one.
pub(super) fn note(is_finished: bool) {
    let count = if is_finished { &FINISHED } else { &REFUSED };
    count.fetch_add(1, Ordering::Relaxed);
}

/// Exports `alpheus_handshakes_total{outcome}`. Not for a process whose number of clients is secret.
pub fn register(metrics: &Metrics) {
    metrics.with(|registry| registry.register_collector(Box::new(Handshakes)));
}

#[derive(Debug)]
struct Handshakes;

impl Collector for Handshakes {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "TLS handshakes of clients";
        let mut family =
            encoder.encode_descriptor("handshakes", help, None, MetricType::Counter)?;
        for (outcome, count) in [("finished", &FINISHED), ("refused", &REFUSED)] {
            let count = ConstCounter::new(count.load(Ordering::Relaxed));
            count.encode(family.encode_family(&[("outcome", outcome)])?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handshakes_are_counted_by_outcome() {
        let metrics = Metrics::new();
        register(&metrics);
        let read = |outcome: &str| -> u64 {
            let text = metrics.text();
            let name = format!("alpheus_handshakes_total{{outcome=\"{outcome}\"}} ");
            let line = text.lines().find_map(|line| line.strip_prefix(&name));
            line.unwrap().parse().unwrap()
        };
        let before = read("refused");
        note(false);
        assert!(read("refused") > before);
    }
}
