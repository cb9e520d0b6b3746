//! Signs that the service's state is older than what others have seen of it: it was restored from
//! a backup, or emptied.
//!
//! Nothing tells a restored service so but others. A device continues an outbox of which this
//! state has fewer uploads, or none. More controllers than may collude know windows of which it has
//! nothing: they have settled them, or given tokens for them. Devices open new sessions by
//! themselves, and controllers send their notices again. What is left is to say so: in the log, in
//! metrics, in `/healthz` and in the console.

use alpheus_node::clock;
use alpheus_node::service::health::{Health, Note};
use alpheus_node::service::metrics::Metrics;
use alpheus_policy::ids::StreamId;
use alpheus_time::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Streams that are counted; more change nothing.
const MAX_STREAMS: usize = 100_000;

/// The signs so far. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct LostState(Arc<Mutex<Signs>>);

#[derive(Debug, Default)]
struct Signs {
    streams: BTreeSet<StreamId>,
    windows: u64,
    since: Option<Timestamp>,
    note: Option<Note>,
}

/// What the signs say, for people and for monitoring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostStateReport {
    /// When this was first noticed, in milliseconds since the Unix epoch.
    pub since: u64,
    /// Streams whose devices have sent what this state does not know.
    pub streams: u64,
    /// Windows without a row here that controllers have settled, or given tokens for.
    pub windows: u64,
}

impl LostState {
    /// Shows the signs in metrics and in the report on health.
    pub fn register(&self, metrics: &Metrics, health: &Health) {
        self.signs().note = Some(health.note("state"));
        metrics.with(|registry| registry.register_collector(Box::new(self.clone())));
    }

    fn signs(&self) -> MutexGuard<'_, Signs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A device continues an outbox beyond what this state has of it.
    pub fn note_stream(&self, stream: StreamId) {
        let mut signs = self.signs();
        if signs.streams.len() < MAX_STREAMS && signs.streams.insert(stream) {
            signs.say();
        }
    }

    /// So many windows were begun in the state that was lost.
    pub fn note_windows(&self, windows: u64) {
        let mut signs = self.signs();
        if signs.windows != windows {
            signs.windows = windows;
            signs.say();
        }
    }

    /// What the signs say; none if there are none.
    #[must_use]
    pub fn report(&self) -> Option<LostStateReport> {
        let signs = self.signs();
        let since = signs.since?.0 / 1000;
        Some(LostStateReport { since, streams: signs.streams.len() as u64, windows: signs.windows })
    }
}

impl Signs {
    fn say(&mut self) {
        let (streams, windows) = (self.streams.len(), self.windows);
        if self.since.is_none() {
            self.since = Some(clock::now());
            tracing::warn!(
                "the state is older than what devices or controllers have seen: it was restored from a backup, or emptied; devices open new sessions, and what was sent since the copy was made is lost"
            );
        }
        if let Some(note) = &self.note {
            note.set(format!(
                "restored from a backup or emptied: {streams} streams and {windows} windows are ahead of this state"
            ));
        }
    }
}

impl Collector for LostState {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let signs = self.signs();
        let streams = ConstGauge::new(signs.streams.len() as f64);
        let windows = ConstGauge::new(signs.windows as f64);
        drop(signs);
        let help = "Streams whose devices have sent what this state does not know";
        let kind = streams.metric_type();
        let name = "stream_state_lost_streams";
        streams.encode(encoder.encode_descriptor(name, help, None, kind)?)?;
        let help = "Windows that began in a state that was lost, and have no row here";
        let kind = windows.metric_type();
        let name = "stream_state_lost_windows";
        windows.encode(encoder.encode_descriptor(name, help, None, kind)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_a_lost_state_are_said_everywhere() {
        let (lost, metrics, health) = (LostState::default(), Metrics::new(), Health::new());
        lost.register(&metrics, &health);
        assert_eq!((lost.report(), health.report().notes.len()), (None, 0));
        assert!(metrics.text().contains("alpheus_stream_state_lost_streams 0"));
        lost.note_windows(0);
        assert_eq!(lost.report(), None, "no window is no sign");
        lost.note_stream(StreamId([1; 16]));
        lost.note_stream(StreamId([1; 16]));
        lost.note_windows(3);
        let report = lost.report().unwrap();
        assert_eq!((report.streams, report.windows), (1, 3));
        let text = metrics.text();
        assert!(text.contains("alpheus_stream_state_lost_streams 1"), "{text}");
        assert!(text.contains("alpheus_stream_state_lost_windows 3"), "{text}");
        let report = health.report();
        assert!(report.notes["state"].contains("1 streams and 3 windows"), "{report:?}");
        assert!(report.ready, "it works");
    }
}
