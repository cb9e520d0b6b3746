//! What the service says of frames that count for nothing.

use alpheus_node::service::metrics::Metrics;
use alpheus_stream_runtime::refused_frames::RefusedFrame;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of refused sessions that wait for the device to see.
const MAX_REFUSED: usize = 64;

/// Sessions that the service does not take any more, for the device to open another.
#[derive(Clone, Default)]
pub struct RefusedSessions {
    sessions: Arc<Mutex<BTreeSet<u64>>>,
    /// Frames that counted for nothing, by reason.
    frames: Family<Reason, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: String,
}

impl RefusedSessions {
    /// Counts refused frames as `alpheus_device_frames_refused`.
    pub fn register(&self, metrics: &Metrics) {
        let help = "Frames that the service accepted but that do not count, by reason";
        metrics.with(|registry| {
            registry.register("device_frames_refused", help, self.frames.clone());
        });
    }

    /// Whether a session is among them. All are forgotten then.
    #[must_use]
    pub fn take(&self, session: u64) -> bool {
        let mut refused = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let is_refused = refused.contains(&session);
        if is_refused {
            refused.clear();
        }
        is_refused
    }

    pub(super) fn note(&self, frames: &[RefusedFrame]) {
        for frame in frames {
            tracing::warn!(
                reason = frame.reason.name(),
                "the service accepted a frame that does not count"
            );
            let reason = frame.reason.name().to_owned();
            self.frames.get_or_create(&Reason { reason }).inc();
            if frame.reason.heals() {
                let mut refused = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
                // A device has one session at a time.
                if refused.len() < MAX_REFUSED {
                    refused.insert(frame.session);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_policy::ids::StreamId;
    use alpheus_stream_runtime::refused_frames::RefusalReason;

    #[test]
    fn refused_frames_are_counted_and_a_session_that_heals_is_opened_again_once() {
        let (refused, metrics) = (RefusedSessions::default(), Metrics::new());
        refused.register(&metrics);
        let frame = |session, reason| RefusedFrame { stream: StreamId([1; 16]), session, reason };
        let (unknown, late) = (RefusalReason::UnknownSession, RefusalReason::Late);
        refused.note(&[frame(5, unknown.clone()), frame(5, unknown), frame(6, late)]);
        assert!(!refused.take(6), "a late frame ends no session");
        assert!(refused.take(5) && !refused.take(5));
        let text = metrics.text();
        for line in ["{reason=\"unknown-session\"} 2", "{reason=\"late\"} 1"] {
            let line = format!("alpheus_device_frames_refused_total{line}");
            assert!(text.contains(&line), "{text}");
        }
    }
}
