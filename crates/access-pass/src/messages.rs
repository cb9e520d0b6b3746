//! All that crosses between client and gateway beside the credential's own
//! messages, byte by byte. Integers are big-endian; lengths are fixed.

use crate::error::Denied;
use alpheus_anonymous_credential::messages::{SessionId, TagId};
use alpheus_anonymous_credential::schedule::{Epoch, Time};
use alpheus_anonymous_credential::sessions::Acknowledged;
use alpheus_crypto::agree::AgreementPublic;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::mac::Tag;
use alpheus_crypto::sign::Signature;

/// A gateway says what it works by, and what a connection is to be bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Of the configuration that it works by: the client compares it.
    pub fingerprint: Digest,
    /// To be signed within half a minute.
    pub challenge: Challenge,
    /// The gateway's agreement key.
    pub agreement: AgreementPublic,
}

/// `time:64 ‖ random:64 ‖ tag:128`: the gateway recognises it without keeping it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge(pub [u8; 32]);

/// A holder speaks for a session on this gateway from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connect {
    /// The session.
    pub session: SessionId,
    /// The gateway's challenge.
    pub challenge: Challenge,
    /// The client's agreement key, for this connection alone.
    pub agreement: AgreementPublic,
    /// By the session's holder, over challenge and both agreement keys.
    pub signature: Signature,
}

/// The gateway has the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connected {
    /// When the session lapses unless it is carried on, in microseconds.
    pub until: Time,
    /// Over the connection, by the agreed key.
    pub confirmation: Tag,
}

/// A login or re-up is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The session.
    pub session: SessionId,
    /// The epoch that it has come to.
    pub epoch: Epoch,
}

impl From<Acknowledged> for Acknowledgement {
    fn from(Acknowledged { session, epoch }: Acknowledged) -> Self {
        Self { session, epoch }
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], Denied> {
    let (part, rest) = bytes.split_first_chunk().ok_or(Denied::Malformed)?;
    *bytes = rest;
    Ok(*part)
}

fn end<T>(bytes: &[u8], value: T) -> Result<T, Denied> {
    if bytes.is_empty() { Ok(value) } else { Err(Denied::Malformed) }
}

fn session(bytes: &mut &[u8]) -> Result<SessionId, Denied> {
    Ok(SessionId(TagId(Digest(take(bytes)?))))
}

impl Hello {
    /// Decodes.
    ///
    /// # Errors
    /// [`Denied::Malformed`].
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self, Denied> {
        let bytes = &mut bytes;
        let hello = Self {
            fingerprint: Digest(take(bytes)?),
            challenge: Challenge(take(bytes)?),
            agreement: AgreementPublic(take(bytes)?),
        };
        end(bytes, hello)
    }

    /// Encodes: 96 bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.fingerprint.as_bytes().as_slice(), &self.challenge.0, &self.agreement.0].concat()
    }
}

impl Connect {
    /// Decodes.
    ///
    /// # Errors
    /// [`Denied::Malformed`].
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self, Denied> {
        let bytes = &mut bytes;
        let connect = Self {
            session: session(bytes)?,
            challenge: Challenge(take(bytes)?),
            agreement: AgreementPublic(take(bytes)?),
            signature: Signature::from_bytes(&take(bytes)?),
        };
        end(bytes, connect)
    }

    /// Encodes: 160 bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let session = self.session.0.0;
        let signature = self.signature.to_bytes();
        [session.as_bytes().as_slice(), &self.challenge.0, &self.agreement.0, &signature].concat()
    }
}

impl Connected {
    /// Decodes.
    ///
    /// # Errors
    /// [`Denied::Malformed`].
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self, Denied> {
        let bytes = &mut bytes;
        let until = Time(u64::from_be_bytes(take(bytes)?));
        let connected = Self { until, confirmation: Tag(take(bytes)?) };
        end(bytes, connected)
    }

    /// Encodes: 24 bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.until.0.to_be_bytes().as_slice(), &self.confirmation.0].concat()
    }
}

impl Acknowledgement {
    /// Decodes.
    ///
    /// # Errors
    /// [`Denied::Malformed`].
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self, Denied> {
        let bytes = &mut bytes;
        let session = session(bytes)?;
        let epoch = Epoch(u64::from_be_bytes(take(bytes)?));
        end(bytes, Self { session, epoch })
    }

    /// Encodes: 40 bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.session.0.0.as_bytes().as_slice(), &self.epoch.0.to_be_bytes()].concat()
    }
}
