//! All messages between client and gateway other than the credential's, byte by byte. Integers
//! are big-endian; lengths are fixed.

use crate::error::GatewayError;
use alpheus_anonymous_credential::messages::{SessionId, TagId};
use alpheus_anonymous_credential::schedule::Epoch;
use alpheus_anonymous_credential::sessions;
use alpheus_crypto::agree::AgreementPublic;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::mac::Tag;
use alpheus_crypto::sign::Signature;
use alpheus_time::Timestamp;

/// A gateway's configuration fingerprint, and the values that a connection is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Fingerprint of the gateway's configuration, for the client to compare.
    pub fingerprint: Digest,
    /// To be signed within 30 seconds.
    pub challenge: Challenge,
    /// The gateway's agreement key.
    pub agreement: AgreementPublic,
}

/// `time:64 ‖ random:64 ‖ tag:128`. The gateway recognises it without storing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge(pub [u8; 32]);

/// Connects a session to this gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connect {
    /// The session.
    pub session: SessionId,
    /// The gateway's challenge.
    pub challenge: Challenge,
    /// The client's agreement key, for this connection alone.
    pub agreement: AgreementPublic,
    /// By the session's holder, over the challenge and both agreement keys.
    pub signature: Signature,
}

/// Confirms that the gateway has the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectResponse {
    /// When the session lapses unless it is carried on.
    pub until: Timestamp,
    /// MAC over the connection, by the agreed key.
    pub confirmation: Tag,
}

/// A login or re-up is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The session.
    pub session: SessionId,
    /// The epoch that it has reached.
    pub epoch: Epoch,
}

impl From<sessions::Acknowledgement> for Acknowledgement {
    fn from(sessions::Acknowledgement { session, epoch }: sessions::Acknowledgement) -> Self {
        Self { session, epoch }
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], GatewayError> {
    let (part, rest) = bytes.split_first_chunk().ok_or(GatewayError::Malformed)?;
    *bytes = rest;
    Ok(*part)
}

fn end<T>(bytes: &[u8], value: T) -> Result<T, GatewayError> {
    if bytes.is_empty() { Ok(value) } else { Err(GatewayError::Malformed) }
}

fn session(bytes: &mut &[u8]) -> Result<SessionId, GatewayError> {
    Ok(SessionId(TagId(Digest(take(bytes)?))))
}

impl Hello {
    /// Decodes.
    ///
    /// # Errors
    /// [`GatewayError::Malformed`].
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self, GatewayError> {
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
    /// [`GatewayError::Malformed`].
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self, GatewayError> {
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

impl ConnectResponse {
    /// Decodes.
    ///
    /// # Errors
    /// [`GatewayError::Malformed`].
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self, GatewayError> {
        let bytes = &mut bytes;
        let until = Timestamp(u64::from_be_bytes(take(bytes)?));
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
    /// [`GatewayError::Malformed`].
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self, GatewayError> {
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
