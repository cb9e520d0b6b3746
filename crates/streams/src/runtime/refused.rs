//! Frames that were taken into the log but count for nothing, for their devices to know.

use alpheus_encrypted_stream::tick::ingest::AuthenticityError;
use alpheus_encrypted_stream::transformer::IngestError;
use alpheus_policy::ids::StreamId;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Refused frames that are kept of a stream, and streams for which any are kept.
const KEPT: usize = 8;
const MAX_STREAMS: usize = 10_000;

/// Why a device's frame counts for nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefusalReason {
    /// The service does not know the session.
    UnknownSession,
    /// The service does not have the ingest key that the opening names.
    UnknownIngestKey,
    /// The service does not have the device's certificate.
    UnknownDevice,
    /// The session has ended here.
    SessionEnded,
    /// Its windows are closed.
    Late,
    /// Its MAC is not the session's.
    BadMac,
    /// Another frame for the same time came before.
    ConflictingFrame,
    /// Another reason, by its short name.
    Other(String),
}

impl RefusalReason {
    /// Whether a new session heals it.
    #[must_use]
    pub fn heals(&self) -> bool {
        matches!(
            self,
            RefusalReason::UnknownSession
                | RefusalReason::UnknownIngestKey
                | RefusalReason::UnknownDevice
                | RefusalReason::SessionEnded
        )
    }

    /// A short name, as counters have it.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            RefusalReason::UnknownSession => "unknown-session",
            RefusalReason::UnknownIngestKey => "unknown-ingest-key",
            RefusalReason::UnknownDevice => "unknown-device",
            RefusalReason::SessionEnded => "session-ended",
            RefusalReason::Late => "late",
            RefusalReason::BadMac => "bad-mac",
            RefusalReason::ConflictingFrame => "conflicting-frame",
            RefusalReason::Other(name) => name,
        }
    }
}

impl From<&IngestError> for RefusalReason {
    fn from(error: &IngestError) -> RefusalReason {
        match error {
            IngestError::UnknownSession
            | IngestError::NotAuthentic(AuthenticityError::UnknownSession) => {
                RefusalReason::UnknownSession
            }
            IngestError::NotAuthentic(AuthenticityError::UnknownIngestKey) => {
                RefusalReason::UnknownIngestKey
            }
            IngestError::NotAuthentic(AuthenticityError::UnknownDevice) => {
                RefusalReason::UnknownDevice
            }
            IngestError::NotAuthentic(AuthenticityError::BadMac) => RefusalReason::BadMac,
            IngestError::SessionEnded => RefusalReason::SessionEnded,
            IngestError::Late => RefusalReason::Late,
            IngestError::Conflicting => RefusalReason::ConflictingFrame,
            other => RefusalReason::Other(other.name().to_owned()),
        }
    }
}

/// A frame that counts for nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedFrame {
    /// The stream.
    pub stream: StreamId,
    /// The session that the frame names.
    pub session: u64,
    /// Why.
    pub reason: RefusalReason,
}

/// The latest refused frames of streams. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct RefusedFrames(Arc<Mutex<HashMap<StreamId, Vec<RefusedFrame>>>>);

impl RefusedFrames {
    /// Notes a refused frame. The device repeated one that counts already: that is no refusal.
    pub(super) fn note(&self, stream: StreamId, frame: &[u8], error: &IngestError) {
        if matches!(error, IngestError::Frozen | IngestError::SessionKnown) {
            return;
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_STREAMS && !all.contains_key(&stream) {
            return;
        }
        let session = frame.get(1..9).and_then(|bytes| bytes.try_into().ok());
        let session = session.map_or(0, u64::from_le_bytes);
        let known = all.entry(stream).or_default();
        if known.len() >= KEPT {
            known.remove(0);
        }
        known.push(RefusedFrame { stream, session, reason: error.into() });
    }

    /// Takes those of a stream out.
    #[must_use]
    pub fn take(&self, stream: &StreamId) -> Vec<RefusedFrame> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(stream).unwrap_or_default()
    }
}
