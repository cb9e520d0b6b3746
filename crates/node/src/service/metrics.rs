//! The process's metrics in Prometheus' text format; served at `/metrics`.
//!
//! # Privacy
//! Labels name kinds (a reason, a part, a topic of ours), never a stream, an
//! owner or a value: metrics are read by people who may see no data.

use super::health::{Health, State};
use alpheus_transport::{Stats, Store};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

/// The content type of what [`Metrics::text`] gives.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answered requests, by kind and status. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Requests(Family<Request, Counter>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    /// `login`, `submissions`, …
    request: String,
    /// `200`, …
    status: u16,
}

impl Requests {
    /// Counts one.
    pub fn count(&self, request: String, status: u16) {
        self.0.get_or_create(&Request { request, status }).inc();
    }
}

/// All metrics of the process. Cheap to clone; clones share them.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Metrics with version and uptime.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("alpheus");
        let version = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "Version of the program", version);
        registry.register_collector(Box::new(Uptime(Instant::now())));
        Self { registry: Arc::new(Mutex::new(registry)) }
    }

    /// Registers metrics: `metrics.with(|registry| registry.register(…))`.
    pub fn with<T>(&self, register: impl FnOnce(&mut Registry) -> T) -> T {
        register(&mut self.registry.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts requests under this name.
    #[must_use]
    pub fn requests(&self, name: &str) -> Requests {
        let requests = Requests::default();
        let help = "Requests, by kind and status";
        self.with(|registry| registry.register(name, help, requests.0.clone()));
        requests
    }

    /// Exports a store's statistics as `alpheus_store_…` while it is open.
    pub fn watch_store(&self, store: &Arc<dyn Store>) {
        let collector = StoreMetrics(Arc::downgrade(store));
        self.with(|registry| registry.register_collector(Box::new(collector)));
    }

    /// Exports the report on health: `alpheus_ready`, 0 or 1, and `alpheus_part_failed` for each part that has
    /// failed.
    pub fn watch_health(&self, health: &Health) {
        let collector = HealthMetrics(health.clone());
        self.with(|registry| registry.register_collector(Box::new(collector)));
    }

    /// Everything, as Prometheus reads it.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail; a failing collector only omits its part.
        let _ = self.with(|registry| encode(&mut text, registry));
        text
    }
}

#[derive(Debug)]
struct Uptime(Instant);

impl Collector for Uptime {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let uptime = ConstGauge::new(self.0.elapsed().as_secs_f64());
        let kind = uptime.metric_type();
        let help = "Time since the program started";
        let metric = encoder.encode_descriptor("uptime", help, Some(&Unit::Seconds), kind)?;
        uptime.encode(metric)
    }
}

#[derive(Debug)]
struct HealthMetrics(Health);

impl Collector for HealthMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let report = self.0.report();
        let ready = ConstGauge::new(i64::from(report.ready));
        let (help, kind) = ("Whether the process can do its work", ready.metric_type());
        ready.encode(encoder.encode_descriptor("ready", help, None, kind)?)?;
        let help = "A part of the process that cannot do its work";
        let mut family = encoder.encode_descriptor("part_failed", help, None, MetricType::Gauge)?;
        let failed = report.parts.into_iter().filter(|(_, state)| *state == State::Failed);
        failed.map(|(part, _)| part).try_for_each(|part| {
            ConstGauge::new(1_i64).encode(family.encode_family(&[("part", part)])?)
        })
    }
}

struct StoreMetrics(Weak<dyn Store>);

impl fmt::Debug for StoreMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreMetrics")
    }
}

impl Collector for StoreMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(store) = self.0.upgrade() else {
            return Ok(());
        };
        let Stats { batches, records, bytes, syncs, sync_time, staged_bytes, disk_bytes } =
            store.stats();
        let mut counter = |name, help, value: u64| {
            let metric = ConstCounter::new(value);
            metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
        };
        counter("store_batches", "Batches made durable", batches)?;
        counter("store_records", "Records made durable", records)?;
        counter("store_written_bytes", "Bytes made durable", bytes)?;
        counter("store_syncs", "Flushes of the disk on behalf of commits", syncs)?;
        let time = ConstCounter::new(sync_time.as_secs_f64());
        let help = "Time spent in flushes of the disk";
        let kind = time.metric_type();
        time.encode(encoder.encode_descriptor("store_sync", help, Some(&Unit::Seconds), kind)?)?;
        let mut gauge = |name, help, value: u64| {
            let metric = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
        };
        gauge("store_staged_bytes", "Bytes accepted and not yet durable", staged_bytes)?;
        gauge("store_disk_bytes", "Bytes that the store takes on disk", disk_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_transport::simulation::Machine;
    use alpheus_transport::{Batch, NewRecord, Topic};
    use prometheus_client::metrics::counter::Counter;

    #[test]
    fn health_is_exported() {
        let (metrics, health) = (Metrics::new(), Health::new());
        metrics.watch_health(&health);
        let has = |line: &str| metrics.text().lines().any(|known| known == line);
        assert!(has("alpheus_ready 1"));
        health.part("disk").set(State::Failed);
        health.part("engine").set(State::Ready);
        assert!(has("alpheus_ready 0") && has("alpheus_part_failed{part=\"disk\"} 1"));
        assert!(!metrics.text().contains("engine"), "{}", metrics.text());
    }

    #[test]
    fn counters_are_exported() {
        let metrics = Metrics::new();
        let refused = Counter::<u64>::default();
        metrics.with(|r| r.register("events_refused", "Events refused", refused.clone()));
        refused.inc_by(3);
        let store = Machine::new().open().unwrap();
        metrics.watch_store(&store);
        let partition = Topic::new("t").unwrap().partition(0);
        store.ensure_topic(&partition.topic, 1).unwrap();
        let mut batch = Batch::new();
        batch.append(&partition, &NewRecord::default()).unwrap();
        store.commit(batch).unwrap();
        let text = metrics.text();
        for line in [
            "alpheus_events_refused_total 3",
            "alpheus_store_records_total 1",
            "alpheus_store_staged_bytes 0",
            "# EOF",
        ] {
            assert!(text.lines().any(|l| l == line), "no {line:?} in:\n{text}");
        }
        assert!(text.contains("alpheus_uptime_seconds ") && text.contains("alpheus_build_info{"));
        drop(store);
        assert!(!metrics.text().contains("store_"), "a closed store is not shown");
    }
}
