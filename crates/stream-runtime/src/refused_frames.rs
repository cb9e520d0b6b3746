//! Frames that were taken into the log but count for nothing, for their devices to know.

use alpheus_encrypted_stream::tick::frame::OPENING;
use alpheus_encrypted_stream::tick::ingest::AuthenticityError;
use alpheus_encrypted_stream::transformer::IngestError;
use alpheus_policy::ids::StreamId;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Refused frames that are kept of a stream, and streams for which any are kept.
const KEPT: usize = 8;
const MAX_STREAMS: usize = 10_000;
/// Why an opening is refused that is not signed with the key of the stream's device.
const UNSIGNED: [AuthenticityError; 2] =
    [AuthenticityError::UnknownDevice, AuthenticityError::BadSignature];

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

    /// The reason with this short name.
    fn named(name: &str) -> RefusalReason {
        let all = [
            RefusalReason::UnknownSession,
            RefusalReason::UnknownIngestKey,
            RefusalReason::UnknownDevice,
            RefusalReason::SessionEnded,
            RefusalReason::Late,
            RefusalReason::BadMac,
            RefusalReason::ConflictingFrame,
        ];
        let known = all.into_iter().find(|reason| reason.name() == name);
        known.unwrap_or_else(|| RefusalReason::Other(name.to_owned()))
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
    /// Notes a frame that was refused for the reason with this short name. If the device
    /// repeated a frame that counts already, that is no refusal. An opening that no device has signed is
    /// nothing to tell one: anyone can write one down, and the device would give up the session that it
    /// names. A device whose certificate is not known learns it with the session's next frame.
    pub(super) fn note(&self, stream: StreamId, frame: &[u8], reason: &str) {
        if [IngestError::Frozen.name(), IngestError::SessionKnown.name()].contains(&reason) {
            return;
        }
        if frame.first() == Some(&OPENING) && UNSIGNED.iter().any(|by| by.name() == reason) {
            return;
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Names of streams that nobody has must not keep out others for ever: a device whose refusal is
        // dropped has the next one soon.
        if all.len() >= MAX_STREAMS
            && !all.contains_key(&stream)
            && let Some(other) = all.keys().next().copied()
        {
            all.remove(&other);
        }
        let session = frame.get(1..9).and_then(|bytes| bytes.try_into().ok());
        let session = session.map_or(0, u64::from_le_bytes);
        let refused = RefusedFrame { stream, session, reason: RefusalReason::named(reason) };
        let known = all.entry(stream).or_default();
        if known.contains(&refused) {
            return;
        }
        if known.len() >= KEPT {
            known.remove(0);
        }
        known.push(refused);
    }

    /// Takes those of a stream out.
    #[must_use]
    pub fn take(&self, stream: &StreamId) -> Vec<RefusedFrame> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(stream).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_refused_frames_of_a_stream_are_kept_and_repeated_ones_are_none() {
        let (refused, stream) = (RefusedFrames::default(), StreamId([1; 16]));
        for reason in ["duplicate", "session-known"] {
            refused.note(stream, &[0; 9], reason);
        }
        assert_eq!(refused.take(&stream), []);
        for session in 0..=KEPT {
            let frame = [&[0x21][..], &(session as u64).to_le_bytes()].concat();
            refused.note(stream, &frame, "unknown-session");
        }
        refused.note(stream, &[], "too-many-gaps");
        let kept = refused.take(&stream);
        let sessions: Vec<u64> = kept.iter().map(|frame| frame.session).collect();
        assert_eq!(sessions, [2, 3, 4, 5, 6, 7, 8, 0]);
        assert!(kept[0].reason.heals());
        assert_eq!(kept[7].reason, RefusalReason::Other("too-many-gaps".to_owned()));
        assert_eq!(refused.take(&stream), []);
    }

    /// In both engines: the job's refusals come with the same names.
    #[test]
    fn no_device_learns_of_an_opening_that_nobody_signed() {
        let (refused, stream) = (RefusedFrames::default(), StreamId([1; 16]));
        let opening = [&[OPENING][..], &7u64.to_le_bytes()].concat();
        for reason in UNSIGNED {
            refused.note(stream, &opening, reason.name());
        }
        assert_eq!(refused.take(&stream), []);
        // The device signed one under a key that the service has no more; and a tick is none.
        refused.note(stream, &opening, AuthenticityError::UnknownIngestKey.name());
        refused.note(stream, &[0x21; 9], AuthenticityError::UnknownDevice.name());
        let heard = refused.take(&stream);
        assert_eq!(heard.len(), 2);
        assert!(heard.iter().all(|frame| frame.reason.heals()));
    }

    #[test]
    fn names_of_streams_that_nobody_has_keep_out_no_device() {
        let (refused, device) = (RefusedFrames::default(), StreamId([0xff; 16]));
        for number in 0..=MAX_STREAMS as u64 {
            let stream = StreamId([number.to_le_bytes(), [0; 8]].concat().try_into().unwrap());
            refused.note(stream, &[0x21; 9], "unknown-session");
        }
        for _ in 0..2 {
            refused.note(device, &[0x21; 9], "unknown-session");
        }
        assert_eq!(refused.take(&device).len(), 1);
    }
}
