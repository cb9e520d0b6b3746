//! Ed25519 signatures over labelled bytes, with strict verification.

use crate::hash::{Digest, labelled_hash};
use crate::secret::Secret;
use ed25519_dalek::Signer as _;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A signing key. Not `Clone`, not `Debug`, wiped on drop.
pub struct SigningKey(ed25519_dalek::SigningKey);

/// A public key. Always a point of large order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "[u8; 32]", into = "[u8; 32]")]
pub struct VerifyingKey([u8; 32]);

/// A signature. Public.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Signature {
    r: [u8; 32],
    s: [u8; 32],
}

/// Why a signature was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The bytes are not a public key, or one of small order, under which anybody could sign.
    #[error("the public key is not a point of large order on the curve")]
    InvalidKey,
    /// The signature was not made by this key over this label and these bytes.
    #[error("the signature was not made by this key over this message")]
    Mismatch,
}

/// One signature of a batch.
pub struct BatchItem<'a> {
    /// The claimed signer.
    pub key: VerifyingKey,
    /// The label under which the message was signed.
    pub label: &'a str,
    /// The signed message.
    pub message: &'a [u8],
    /// The signature.
    pub signature: Signature,
}

impl SigningKey {
    /// The key that a seed determines.
    #[must_use]
    pub fn from_seed(seed: &Secret<32>) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(seed.expose()))
    }

    /// The public half.
    #[must_use]
    pub fn verifying_key(&self) -> VerifyingKey {
        VerifyingKey(self.0.verifying_key().to_bytes())
    }

    /// Signs the labelled digest of a message. Signing is deterministic: the same input
    /// gives the same signature.
    #[must_use]
    pub fn sign(&self, label: &str, message: &[u8]) -> Signature {
        self.sign_digest(&labelled_hash(label, &[message]))
    }

    /// Signs a digest that already contains its label.
    pub(crate) fn sign_digest(&self, digest: &Digest) -> Signature {
        Signature::from_bytes(&self.0.sign(digest.as_bytes()).to_bytes())
    }
}

impl VerifyingKey {
    /// Checks that the bytes are a public key of large order.
    ///
    /// # Errors
    /// [`SignatureError::InvalidKey`] if they are not a point, or one of small order.
    pub fn from_bytes(bytes: [u8; 32]) -> Result<Self, SignatureError> {
        let key = ed25519_dalek::VerifyingKey::from_bytes(&bytes)
            .map_err(|_| SignatureError::InvalidKey)?;
        if key.is_weak() { Err(SignatureError::InvalidKey) } else { Ok(Self(bytes)) }
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Checks a signature.
    ///
    /// # Errors
    /// [`SignatureError::Mismatch`] if key, label, message or signature differs, or if the
    /// signature is not in canonical form.
    pub fn verify(
        &self,
        label: &str,
        message: &[u8],
        signature: &Signature,
    ) -> Result<(), SignatureError> {
        self.verify_digest(&labelled_hash(label, &[message]), signature)
    }

    /// Checks a signature over a digest that already contains its label.
    pub(crate) fn verify_digest(
        &self,
        digest: &Digest,
        signature: &Signature,
    ) -> Result<(), SignatureError> {
        self.point()?
            .verify_strict(digest.as_bytes(), &signature.to_dalek())
            .map_err(|_| SignatureError::Mismatch)
    }

    fn point(&self) -> Result<ed25519_dalek::VerifyingKey, SignatureError> {
        ed25519_dalek::VerifyingKey::from_bytes(&self.0).map_err(|_| SignatureError::InvalidKey)
    }
}

/// Checks many signatures at about half the cost of checking each.
///
/// By components of small order, a signer can craft a signature of its own that a
/// batch accepts and a single check refuses. Nobody can forge another party's
/// signature. So use a batch where one party decides alone, not where several
/// parties must agree on whether a signature is valid.
///
/// # Errors
/// [`SignatureError`] if any signature fails. It does not tell which.
pub fn verify_batch(items: &[BatchItem<'_>]) -> Result<(), SignatureError> {
    let digested = |item: &BatchItem<'_>| {
        (item.key, labelled_hash(item.label, &[item.message]), item.signature)
    };
    verify_digests(&items.iter().map(digested).collect::<Vec<_>>())
}

/// Like [`verify_batch`], over digests that already contain their labels.
pub(crate) fn verify_digests(
    items: &[(VerifyingKey, Digest, Signature)],
) -> Result<(), SignatureError> {
    let messages: Vec<&[u8]> = items.iter().map(|(_, digest, _)| digest.as_ref()).collect();
    let signatures: Vec<_> = items.iter().map(|(.., signature)| signature.to_dalek()).collect();
    let keys = items.iter().map(|(key, ..)| key.point()).collect::<Result<Vec<_>, _>>()?;
    ed25519_dalek::verify_batch(&messages, &signatures, &keys).map_err(|_| SignatureError::Mismatch)
}

impl Signature {
    /// A signature from its 64 bytes. It is checked only when it is verified.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; 64]) -> Self {
        let (mut r, mut s) = ([0; 32], [0; 32]);
        r.copy_from_slice(&bytes[..32]);
        s.copy_from_slice(&bytes[32..]);
        Self { r, s }
    }

    /// Its 64 bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes[..32].copy_from_slice(&self.r);
        bytes[32..].copy_from_slice(&self.s);
        bytes
    }

    fn to_dalek(self) -> ed25519_dalek::Signature {
        ed25519_dalek::Signature::from_components(self.r, self.s)
    }
}

impl TryFrom<[u8; 32]> for VerifyingKey {
    type Error = SignatureError;

    fn try_from(bytes: [u8; 32]) -> Result<Self, SignatureError> {
        Self::from_bytes(bytes)
    }
}

impl From<VerifyingKey> for [u8; 32] {
    fn from(key: VerifyingKey) -> Self {
        key.0
    }
}

impl fmt::Display for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifyingKey({self})")
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signature(")?;
        self.to_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}
