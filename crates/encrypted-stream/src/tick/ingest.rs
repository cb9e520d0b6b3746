//! The service's first check: whether a frame is its device's. Nothing counts before it.

use crate::frame::Words;
use crate::tick::claim::Claim;
use crate::tick::frame::{SessionKey, TickFrame, TickFrameError};
use crate::tick::opening::{OpeningContext, OpeningView};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::mac::Tag;
use alpheus_crypto::seal::SealingKey;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_policy::ids::{SchemaId, StreamId};
use alpheus_time::Span;
use std::collections::HashMap;
use std::mem;

/// Session keys of one stream that are kept open: those of the running session, of the one
/// before, and of one that is about to start.
const KEPT: usize = 3;

/// A frame that the session's device sent for this stream. Only [`Ingest::check`] makes one.
pub struct AuthenticFrame<'a> {
    stream: StreamId,
    frame: TickFrame<'a>,
    bytes: &'a [u8],
    mac: Tag,
    /// Of an opening.
    key: Option<SessionKey>,
}

impl<'a> AuthenticFrame<'a> {
    /// The stream.
    #[must_use]
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// What it states.
    #[must_use]
    pub fn claim(&self) -> Claim {
        match &self.frame {
            TickFrame::Opening(opening) => opening.claim(),
            TickFrame::Tick(claim, _) | TickFrame::Gap(claim) => *claim,
        }
    }

    /// The ciphertext of a tick.
    #[must_use]
    pub fn words(&self) -> Option<&Words<'a>> {
        match &self.frame {
            TickFrame::Tick(_, words) => Some(words),
            TickFrame::Opening(_) | TickFrame::Gap(_) => None,
        }
    }

    /// The frame as it came.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Its MAC. No other frame of the session has it.
    #[must_use]
    pub fn mac(&self) -> Tag {
        self.mac
    }
}

/// Why a frame counts for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthenticityError {
    /// The bytes are not a frame.
    #[error(transparent)]
    Malformed(#[from] TickFrameError),
    /// The opening names a certificate that no device of this stream has.
    #[error("the opening names no certificate of this stream's device; has its owner placed it?")]
    UnknownDevice,
    /// The device did not sign the opening.
    #[error("the opening is not signed by the stream's device for this deployment and schema")]
    BadSignature,
    /// The session's key is sealed to a key that this service does not have.
    #[error(
        "the session's key is sealed to another ingest key; the device must open a new session with the current one"
    )]
    UnknownIngestKey,
    /// The sealed key does not open.
    #[error("the session's key does not open with the ingest key that the opening names")]
    BadSessionKey,
    /// There is no opening of its session.
    #[error("the session has not been opened here; the device must open a new one")]
    UnknownSession,
    /// The MAC is not the session's.
    #[error("the frame's MAC does not verify under its session's key")]
    BadMac,
}

impl AuthenticityError {
    /// A short name for counters and answers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            AuthenticityError::Malformed(_) => "malformed",
            AuthenticityError::UnknownDevice => "unknown-device",
            AuthenticityError::BadSignature => "bad-signature",
            AuthenticityError::UnknownIngestKey => "unknown-ingest-key",
            AuthenticityError::BadSessionKey => "bad-session-key",
            AuthenticityError::UnknownSession => "unknown-session",
            AuthenticityError::BadMac => "bad-mac",
        }
    }
}

/// Checks the frames of one schema's streams. It holds the service's ingest keys, and keys of
/// sessions in memory.
///
/// # Privacy
/// None of its keys opens data.
pub struct Ingest {
    authority: VerifyingKey,
    schema: SchemaId,
    tick: Span,
    ingest: HashMap<Digest, SealingKey>,
    sessions: HashMap<StreamId, Vec<(u64, SessionKey)>>,
}

impl Ingest {
    /// For the streams of a schema with this tick. `ingest` are the service's keys, by the
    /// digest of their certificates: the one in use, and retired ones that devices may still
    /// have.
    #[must_use]
    pub fn new(
        authority: VerifyingKey,
        schema: SchemaId,
        tick: Span,
        ingest: impl IntoIterator<Item = (Digest, SealingKey)>,
    ) -> Self {
        let ingest = ingest.into_iter().collect();
        Self { authority, schema, tick, ingest, sessions: HashMap::new() }
    }

    /// Checks a frame of a stream. `device` returns the key of the stream's device, if it has
    /// the certificate with this digest. `opening` returns the stored opening of a session.
    ///
    /// # Errors
    /// [`AuthenticityError`] names the first check that fails.
    pub fn check<'a, 'b>(
        &mut self,
        stream: StreamId,
        bytes: &'a [u8],
        device: impl FnOnce(&Digest) -> Option<VerifyingKey>,
        opening: impl FnOnce(u64) -> Option<&'b [u8]>,
    ) -> Result<AuthenticFrame<'a>, AuthenticityError> {
        let frame = TickFrame::parse(bytes, self.tick)?;
        let key = match &frame {
            TickFrame::Opening(view) => Some(self.open(stream, view, bytes, device)?),
            TickFrame::Tick(claim, _) | TickFrame::Gap(claim) => {
                let key = self.key_of(stream, claim.session, opening)?;
                key.verify(&stream, bytes).map_err(|_| AuthenticityError::BadMac)?;
                None
            }
        };
        let mac = bytes.split_last_chunk().map_or(Tag([0; 16]), |(_, mac)| Tag(*mac));
        Ok(AuthenticFrame { stream, frame, bytes, mac, key })
    }

    /// Keeps the key of an opening that was accepted, so that it need not be unsealed again.
    pub fn keep(&mut self, opening: AuthenticFrame<'_>) {
        let session = opening.claim().session;
        if let Some(key) = opening.key {
            self.remember(opening.stream, session, key);
        }
    }

    /// Uses these ingest keys no more, by the digests of their certificates. Devices whose
    /// sessions rest on them learn that the key is unknown.
    pub fn revoke(&mut self, revoked: impl Fn(&Digest) -> bool) {
        let before = self.ingest.len();
        self.ingest.retain(|digest, _| !revoked(digest));
        if self.ingest.len() != before {
            self.sessions.clear();
        }
    }

    /// Forgets the keys of a stream.
    pub fn forget(&mut self, stream: &StreamId) {
        self.sessions.remove(stream);
    }

    fn open(
        &self,
        stream: StreamId,
        opening: &OpeningView<'_>,
        bytes: &[u8],
        device: impl FnOnce(&Digest) -> Option<VerifyingKey>,
    ) -> Result<SessionKey, AuthenticityError> {
        let device = device(&opening.certificate).ok_or(AuthenticityError::UnknownDevice)?;
        let context = self.context(stream);
        // Before the ingest key: a device that hears of an unknown one opens another session, so only
        // the device may bring it about.
        opening.verify(&context, &device).map_err(|_| AuthenticityError::BadSignature)?;
        let ingest = self.ingest.get(&opening.head.ingest);
        let ingest = ingest.ok_or(AuthenticityError::UnknownIngestKey)?;
        let key = opening.open_key(ingest, &context);
        let key = key.map_err(|_| AuthenticityError::BadSessionKey)?;
        key.verify(&stream, bytes).map_err(|_| AuthenticityError::BadMac)?;
        Ok(key)
    }

    fn context(&self, stream: StreamId) -> OpeningContext<'_> {
        OpeningContext { authority: &self.authority, stream, schema: self.schema }
    }

    fn key_of<'b>(
        &mut self,
        stream: StreamId,
        session: u64,
        opening: impl FnOnce(u64) -> Option<&'b [u8]>,
    ) -> Result<&SessionKey, AuthenticityError> {
        let known = self.sessions.get(&stream);
        if !known.is_some_and(|known| known.iter().any(|(id, _)| *id == session)) {
            let bytes = opening(session).ok_or(AuthenticityError::UnknownSession)?;
            let key = self.unseal(stream, bytes)?;
            self.remember(stream, session, key);
        }
        let known = self.sessions.get(&stream).into_iter().flatten();
        let own = known.rev().find(|(id, _)| *id == session).map(|(_, key)| key);
        own.ok_or(AuthenticityError::UnknownSession)
    }

    /// The key of an opening that was accepted before a restart.
    fn unseal(&self, stream: StreamId, bytes: &[u8]) -> Result<SessionKey, AuthenticityError> {
        let TickFrame::Opening(opening) = TickFrame::parse(bytes, self.tick)? else {
            return Err(AuthenticityError::UnknownSession);
        };
        let ingest = self.ingest.get(&opening.head.ingest);
        let ingest = ingest.ok_or(AuthenticityError::UnknownIngestKey)?;
        let key = opening.open_key(ingest, &self.context(stream));
        key.map_err(|_| AuthenticityError::BadSessionKey)
    }

    fn remember(&mut self, stream: StreamId, session: u64, key: SessionKey) {
        let known = self.sessions.entry(stream).or_default();
        known.retain(|(id, _)| *id != session);
        if known.len() >= KEPT {
            drop(mem::replace(&mut known[0], (session, key)));
            known.rotate_left(1);
        } else {
            known.push((session, key));
        }
    }
}
