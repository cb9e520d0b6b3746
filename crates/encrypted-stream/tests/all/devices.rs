//! Devices of tick streams, and the service's check of their frames.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use alpheus_crypto::hash::Digest;
use alpheus_crypto::seal::SealingKey;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_encrypted_stream::producer::{EventVector, OpeningSecrets, Session, TickSession};
use alpheus_encrypted_stream::tick::ingest::Ingest;
use alpheus_encrypted_stream::transformer::{FrameEffect, IngestError, Transformer};
use alpheus_policy::ids::{SchemaId, StreamId};
use alpheus_time::{Span, Timestamp};
use chacha20::ChaCha20Rng;
use std::convert::Infallible;

pub(crate) const CERTIFICATE: Digest = Digest([41; 32]);
pub(crate) const INGEST: Digest = Digest([42; 32]);

pub(crate) fn device_key() -> SigningKey {
    SigningKey::from_seed(&Secret::from_bytes([43; 32]))
}

pub(crate) fn ingest_key() -> SealingKey {
    SealingKey::from_seed(&Secret::from_bytes([44; 32]))
}

/// What every device of these tests opens its sessions with.
pub(crate) fn secrets(authority: &VerifyingKey) -> OpeningSecrets {
    OpeningSecrets {
        device: device_key(),
        certificate: CERTIFICATE,
        authority: *authority,
        ingest: INGEST,
        ingest_key: ingest_key().public(),
    }
}

/// The service's check.
pub(crate) fn ingest(authority: VerifyingKey, schema: SchemaId, tick: Span) -> Ingest {
    Ingest::new(authority, schema, tick, [(INGEST, ingest_key())])
}

/// Checks a frame, and gives it to the transformer.
pub(crate) fn take(
    ingest: &mut Ingest,
    transformer: &mut Transformer,
    stream: StreamId,
    frame: &[u8],
    now: Timestamp,
) -> Result<FrameEffect, IngestError> {
    let device =
        |certificate: &Digest| (*certificate == CERTIFICATE).then(|| device_key().verifying_key());
    let opening = |session| transformer.opening(&stream, session);
    let frame = ingest.check(stream, frame, device, opening)?;
    let taken = transformer.handle_tick(0, &frame, now)?;
    ingest.keep(frame);
    Ok(taken)
}

/// A key of any authority.
pub(crate) fn authority() -> VerifyingKey {
    VerifyingKey::from_bytes(
        *SigningKey::from_seed(&Secret::from_bytes([45; 32])).verifying_key().as_bytes(),
    )
    .unwrap()
}

/// A stream's device of either kind, online.
#[expect(clippy::large_enum_variant, reason = "a test has few of them")]
pub(crate) enum Device {
    Events(Session),
    Ticks(Box<TickSession>),
}

impl Device {
    pub(crate) fn event(
        &mut self,
        t: Timestamp,
        encode: impl FnOnce(&mut EventVector<'_>) -> Result<(), Infallible>,
        rng: &mut ChaCha20Rng,
        sink: &mut impl FnMut(&[u8]),
    ) {
        match self {
            Device::Events(session) => session.event(t, encode, sink).unwrap(),
            Device::Ticks(session) => {
                session.advance(t, rng, sink).unwrap();
                session.event(t, encode).unwrap();
            }
        }
    }

    pub(crate) fn advance(
        &mut self,
        t: Timestamp,
        rng: &mut ChaCha20Rng,
        sink: &mut impl FnMut(&[u8]),
    ) {
        match self {
            Device::Events(session) => session.advance(t, sink).unwrap(),
            Device::Ticks(session) => session.advance(t, rng, sink).unwrap(),
        }
    }

    /// A device with a frame for each event sends borders of the time in which it slept.
    pub(crate) fn sleep(
        &mut self,
        t: Timestamp,
        rng: &mut ChaCha20Rng,
        sink: &mut impl FnMut(&[u8]),
    ) {
        match self {
            Device::Events(session) => session.advance(t, sink).unwrap(),
            Device::Ticks(session) => session.sleep_until(t, rng, sink).unwrap(),
        }
    }

    /// Ends the session in order.
    pub(crate) fn close(self, t: Timestamp, rng: &mut ChaCha20Rng, sink: &mut impl FnMut(&[u8])) {
        match self {
            Device::Events(session) => drop(session.close(t, sink).unwrap()),
            Device::Ticks(session) => drop(session.close(t, rng, sink).unwrap()),
        }
    }
}
