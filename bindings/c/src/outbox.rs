//! Frames that the service has not confirmed, as bodies of requests: `POST /v1/events` of
//! `docs/wire-formats.md`. They are ciphertext.

use crate::codes::Code;
use crate::randomness::Randomness;
use crate::refusal::Refusal;
use alpheus_policy::ids::StreamId;
use rand_core::Rng;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Maximum bytes of frames in an upload, unless one frame is larger.
const MAX_UPLOAD: usize = 256 << 10;

/// The frames of one stream that wait, in order.
pub struct Outbox {
    stream: StreamId,
    waiting: VecDeque<Vec<u8>>,
    name: [u8; 16],
    number: u64,
    /// Frames of the upload on its way. A repeated upload has the same number and content.
    sending: Option<usize>,
}

/// An upload, as the service reads it.
#[derive(Serialize)]
struct Upload<'a> {
    stream: StreamId,
    outbox: [u8; 16],
    number: u64,
    frames: Vec<&'a Vec<u8>>,
}

/// The answer to uploads.
#[derive(Deserialize)]
struct Receipt {
    uploads: Vec<UploadStatus>,
    refused: Vec<RefusedFrame>,
}

/// The outcome of an upload.
#[derive(Deserialize)]
enum UploadStatus {
    Taken,
    Before { last: u64 },
    Missing { next: u64 },
    NotYours,
    Malformed,
    Withdrawn,
}

/// A frame that counts for nothing.
#[derive(Deserialize)]
struct RefusedFrame {
    _stream: StreamId,
    _session: u64,
    reason: RefusalReason,
}

#[derive(Deserialize)]
enum RefusalReason {
    UnknownSession,
    UnknownIngestKey,
    UnknownDevice,
    SessionEnded,
    Late,
    BadMac,
    ConflictingFrame,
    #[expect(dead_code, reason = "it must be read to get past it")]
    Other(String),
}

/// What a caller does after an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UploadOutcome {
    /// The frames are durable at the service, and wait no longer.
    pub taken: bool,
    /// The service does not know the stream yet: ask again, later.
    pub early: bool,
    /// The stream's owner has withdrawn it, for good.
    pub withdrawn: bool,
    /// Frames that were taken, now or earlier, and count for nothing.
    pub refused: u32,
    /// Introduce the device and open another session.
    pub reopen: bool,
}

impl Outbox {
    /// An outbox under a fresh name.
    #[must_use]
    pub fn new(stream: StreamId, rng: &mut Randomness) -> Outbox {
        let mut outbox =
            Outbox { stream, waiting: VecDeque::new(), name: [0; 16], number: 1, sending: None };
        outbox.rename(rng);
        outbox
    }

    fn rename(&mut self, rng: &mut Randomness) {
        rng.fill_bytes(&mut self.name);
        (self.number, self.sending) = (1, None);
    }

    /// Adds a frame.
    pub fn put(&mut self, frame: &[u8]) {
        self.waiting.push_back(frame.to_vec());
    }

    /// Frames that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The oldest frame, if none is on its way.
    ///
    /// # Errors
    /// [`Code::ArgumentWrong`] if it is part of an upload that has no answer yet.
    pub fn oldest(&self) -> Result<Option<&[u8]>, Refusal> {
        match self.sending {
            None => Ok(self.waiting.front().map(Vec::as_slice)),
            Some(_) => Err(Refusal::argument(
                "UploadOnItsWay",
                "an upload has no answer yet; use uploads or single frames, not both",
            )),
        }
    }

    /// Drops the oldest frame, which the caller has.
    pub fn drop_oldest(&mut self) {
        self.waiting.pop_front();
    }

    /// The body of the next upload, or of the one on its way; empty if no frame waits.
    ///
    /// # Errors
    /// [`Code::InternalError`]; never in practice.
    pub fn upload(&self) -> Result<(usize, Vec<u8>), Refusal> {
        let count = self.sending.unwrap_or_else(|| self.fitting());
        if count == 0 {
            return Ok((0, Vec::new()));
        }
        let frames = self.waiting.iter().take(count).collect();
        let Outbox { stream, name, number, .. } = *self;
        let body = postcard::to_allocvec(&[Upload { stream, outbox: name, number, frames }][..]);
        Ok((count, body.map_err(|error| Refusal::of(Code::InternalError, &error))?))
    }

    /// Notes that an upload of so many frames is on its way.
    pub fn sends(&mut self, count: usize) {
        self.sending = (count > 0).then_some(count);
    }

    fn fitting(&self) -> usize {
        let mut bytes = 0;
        let fits = |frame: &&Vec<u8>| {
            let first = bytes == 0;
            bytes += frame.len();
            first || bytes <= MAX_UPLOAD
        };
        self.waiting.iter().take_while(fits).count()
    }

    /// Takes the service's answer to the upload on its way.
    ///
    /// # Errors
    /// [`Code::ServerOtherVersion`] if it is no answer to an upload; then nothing has changed.
    pub fn answer(&mut self, body: &[u8], rng: &mut Randomness) -> Result<UploadOutcome, Refusal> {
        let Some(count) = self.sending else {
            return Err(Refusal::argument("NoUpload", "no upload is on its way"));
        };
        let other = "the answer is not a receipt; is it the body of a response with status 200?";
        let other = || Refusal::new(Code::ServerOtherVersion, "BadAnswer", other);
        let receipt: Receipt = postcard::from_bytes(body).map_err(|_| other())?;
        let status = receipt.uploads.first().ok_or_else(other)?;
        let refused = u32::try_from(receipt.refused.len()).unwrap_or(u32::MAX);
        let reopen = receipt.refused.iter().any(|frame| frame.reason.heals());
        let answered = UploadOutcome { refused, reopen, ..UploadOutcome::default() };
        match status {
            // The service's state is an older copy. What waits is sent under a new name.
            UploadStatus::Before { last } if *last > self.number => self.rename(rng),
            UploadStatus::Missing { next } if *next != self.number => self.rename(rng),
            UploadStatus::Withdrawn => return Ok(UploadOutcome { withdrawn: true, ..answered }),
            UploadStatus::NotYours | UploadStatus::Missing { .. } => {
                return Ok(UploadOutcome { early: true, ..answered });
            }
            UploadStatus::Taken | UploadStatus::Before { .. } | UploadStatus::Malformed => {
                self.waiting.drain(..count.min(self.waiting.len()));
                (self.number, self.sending) = (self.number.saturating_add(1), None);
                let malformed = matches!(status, UploadStatus::Malformed);
                let lost = if malformed { u32::try_from(count).unwrap_or(u32::MAX) } else { 0 };
                let refused = refused.saturating_add(lost);
                return Ok(UploadOutcome { taken: !malformed, refused, ..answered });
            }
        }
        Ok(answered)
    }
}

impl RefusalReason {
    /// Whether a new session heals it.
    fn heals(&self) -> bool {
        matches!(
            self,
            RefusalReason::UnknownSession
                | RefusalReason::UnknownIngestKey
                | RefusalReason::UnknownDevice
                | RefusalReason::SessionEnded
        )
    }
}
