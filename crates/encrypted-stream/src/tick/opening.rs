//! The first frame of a session. The device signs it, and seals the session's key for the
//! service in it.
//!
//! | bytes | |
//! | --- | --- |
//! | 1 | `0x20` |
//! | 8 | session |
//! | 8 | time |
//! | 16 | tag under the stream's border key |
//! | 32 | id of the ingest key |
//! | 1, 8, 8 | 1 if the device knows its previous session, else 0; that session; its last border |
//! | 80 | the session's key, sealed |
//! | 32 | digest of the device's certificate |
//! | 64 | signature |
//! | 16 | MAC of the session key |

use crate::tick::claim::{Claim, ClaimKind, RootPrefix};
use crate::tick::frame::{Fields, MAC_LEN, OPENING, SessionKey, TickFrameError, too_long};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::mac::Tag;
use alpheus_crypto::seal::{
    SealedSecret, SealingKey, SealingKeyError, SealingPublic, UnsealError, seal,
};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::{Signature, SignatureError, SigningKey, VerifyingKey};
use alpheus_policy::ids::{SchemaId, StreamId};
use alpheus_time::Timestamp;
use rand_core::CryptoRng;

/// Bytes of the sealed key: an encapsulated key, 32 bytes, and a tag.
pub const SEALED_LEN: usize = 80;
/// Bytes up to the sealed key, which it is sealed over.
const CONTEXT_LEN: usize = 82;
/// Bytes that are signed.
const SIGNED_LEN: usize = CONTEXT_LEN + SEALED_LEN + 32;
/// Bytes of the frame.
pub const OPENING_LEN: usize = SIGNED_LEN + 64 + MAC_LEN;

/// Where an opening belongs. It is signed and sealed over this, besides its own bytes.
#[derive(Clone, Copy, Debug)]
pub struct OpeningContext<'a> {
    /// The key of the deployment's authority.
    pub authority: &'a VerifyingKey,
    /// The stream.
    pub stream: StreamId,
    /// Its schema.
    pub schema: SchemaId,
}

impl OpeningContext<'_> {
    fn with(&self, bytes: &[u8]) -> Vec<u8> {
        [self.authority.as_bytes().as_slice(), &self.stream.0, &self.schema.0, bytes].concat()
    }
}

/// What an opening states, apart from key and signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpeningHead {
    /// The session.
    pub session: u64,
    /// Its first border.
    pub at: Timestamp,
    /// The tag of its claim.
    pub tag: Tag,
    /// The ingest key that the session's key is sealed for: the digest of its certificate.
    pub ingest: Digest,
    /// The session before it, with its last border, if the device knows it.
    pub previous: Option<(u64, Timestamp)>,
}

impl OpeningHead {
    /// The frame's bytes up to the sealed key.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(OPENING_LEN);
        out.push(OPENING);
        out.extend(self.session.to_le_bytes());
        out.extend(self.at.0.to_le_bytes());
        out.extend(self.tag.0);
        out.extend(self.ingest.as_bytes());
        let (session, last) = self.previous.unwrap_or((0, Timestamp(0)));
        out.push(u8::from(self.previous.is_some()));
        out.extend(session.to_le_bytes());
        out.extend(last.0.to_le_bytes());
        out
    }

    /// Seals a session's key for the service.
    ///
    /// # Errors
    /// [`SealingKeyError`] if the ingest key is not usable.
    pub fn seal_key(
        &self,
        key: &Secret<32>,
        ingest: &SealingPublic,
        context: &OpeningContext<'_>,
        rng: &mut impl CryptoRng,
    ) -> Result<[u8; SEALED_LEN], SealingKeyError> {
        let over = context.with(&self.to_bytes());
        let sealed = seal(ingest, labels::SESSION_KEY, &[&over], key, rng)?;
        sealed.to_bytes().try_into().map_err(|_| SealingKeyError)
    }
}

/// Writes an opening up to the MAC that
/// [`SessionKey::finish`](crate::tick::frame::SessionKey::finish) appends.
#[must_use]
pub fn body(
    head: &OpeningHead,
    sealed: &[u8; SEALED_LEN],
    certificate: &Digest,
    context: &OpeningContext<'_>,
    device: &SigningKey,
) -> Vec<u8> {
    let mut out = head.to_bytes();
    out.extend(sealed);
    out.extend(certificate.as_bytes());
    let signature = device.sign(labels::TICK_OPENING, &context.with(&out));
    out.extend(signature.to_bytes());
    out
}

/// An opening over received bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpeningView<'a> {
    bytes: &'a [u8],
    /// What it states.
    pub head: OpeningHead,
    /// Digest of the certificate of the device that signed it.
    pub certificate: Digest,
    signature: [u8; 64],
}

impl<'a> OpeningView<'a> {
    /// Reads an opening. Checks only its form: [`verify`](Self::verify) checks who signed it.
    ///
    /// # Errors
    /// [`TickFrameError`] if the bytes are no opening.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, TickFrameError> {
        if let Some(other) = bytes.first().filter(|kind| **kind != OPENING) {
            return Err(TickFrameError::UnknownKind(*other));
        }
        let mut fields = Fields::new(bytes, OPENING_LEN)?;
        if bytes.len() > OPENING_LEN {
            return Err(too_long(bytes, bytes.len() - OPENING_LEN));
        }
        let (session, at) = (fields.number(), fields.time()?);
        let (tag, ingest) = (Tag(fields.take()), Digest(fields.take()));
        let [known] = fields.take();
        let previous = (fields.number(), fields.time()?);
        let previous = match known {
            0 if previous == (0, Timestamp(0)) => None,
            1 => Some(previous),
            flag => return Err(TickFrameError::PreviousFlag(flag)),
        };
        let _sealed: [u8; SEALED_LEN] = fields.take();
        let certificate = Digest(fields.take());
        let head = OpeningHead { session, at, tag, ingest, previous };
        Ok(Self { bytes, head, certificate, signature: fields.take() })
    }

    /// The session's key, sealed: the encapsulated key, then the ciphertext.
    #[must_use]
    pub fn sealed(&self) -> &'a [u8] {
        self.bytes.get(CONTEXT_LEN..CONTEXT_LEN + SEALED_LEN).unwrap_or_default()
    }

    /// The claim of the session's first border.
    #[must_use]
    pub fn claim(&self) -> Claim {
        let OpeningHead { session, at, tag, .. } = self.head;
        let root = RootPrefix::default();
        Claim { kind: ClaimKind::Opening, session, from: at, to: at, masked_count: 0, root, tag }
    }

    /// Opens the session's key. [`verify`](Self::verify) comes first: anyone can seal.
    ///
    /// # Errors
    /// [`UnsealError`] if it was sealed for another ingest key, stream, schema, deployment or
    /// opening.
    pub fn open_key(
        &self,
        ingest: &SealingKey,
        context: &OpeningContext<'_>,
    ) -> Result<SessionKey, UnsealError> {
        let sealed = SealedSecret::from_bytes(self.sealed()).ok_or(UnsealError)?;
        let over = context.with(self.bytes.get(..CONTEXT_LEN).unwrap_or_default());
        let key = ingest.open(labels::SESSION_KEY, &[&over], &sealed)?;
        Ok(SessionKey::new(&key))
    }

    /// Checks that a device signed it for this stream.
    ///
    /// # Errors
    /// [`SignatureError`] if it did not.
    pub fn verify(
        &self,
        context: &OpeningContext<'_>,
        device: &VerifyingKey,
    ) -> Result<(), SignatureError> {
        let signed = self.bytes.get(..SIGNED_LEN).unwrap_or_default();
        let signature = Signature::from_bytes(&self.signature);
        device.verify(labels::TICK_OPENING, &context.with(signed), &signature)
    }
}
