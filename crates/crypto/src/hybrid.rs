//! Secrets that only one party can open, and that stay secret if one of X25519 and ML-KEM-768
//! is broken: HPKE (RFC 9180), base mode, with the KEM X-Wing (draft-connolly-cfrg-xwing-kem,
//! number 0x647a), HKDF-SHA256, ChaCha20-Poly1305. For what strangers can keep until they have
//! a quantum computer.
//!
//! Nothing is negotiated: what is sealed here opens here only. [`seal`](crate::seal) is the
//! same without ML-KEM-768.

use crate::hash::{Digest, labelled_hash};
use crate::hpke_base;
use crate::labels;
use crate::seal::{SealingKeyError, SealingPublic, UnsealError};
use crate::secret::Secret;
use hpke::kem::XWing;
use hpke::{Deserializable, Kem, Serializable};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

type PrivateKey = <XWing as Kem>::PrivateKey;
type PublicKey = <XWing as Kem>::PublicKey;

/// Bytes of a public key: 1,184 of ML-KEM-768, then 32 of X25519.
pub const PUBLIC_BYTES: usize = 1184 + 32;
/// Bytes of an encapsulated key: 1,088 of ML-KEM-768, then 32 of X25519.
pub const ENCAPSULATED_BYTES: usize = 1088 + 32;
const X25519: usize = 32;
const AEAD_TAG: usize = 16;

/// Opens secrets that were sealed for its public half. Not `Clone`, not `Debug`. The
/// library wipes it on drop.
pub struct HybridKey {
    secret: PrivateKey,
    public: HybridPublic,
}

/// The public half of a [`HybridKey`].
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<u8>", into = "Vec<u8>")]
pub struct HybridPublic(Vec<u8>);

/// A sealed secret: the encapsulated key, then the ciphertext. Public.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<u8>", into = "Vec<u8>")]
pub struct HybridSealed(Vec<u8>);

/// The bytes have another length than a key or a sealed secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a hybrid public key has 1216 bytes, and a sealed secret at least 1136; these are of another kind or version"
)]
pub struct HybridLengthError;

impl TryFrom<Vec<u8>> for HybridPublic {
    type Error = HybridLengthError;

    fn try_from(bytes: Vec<u8>) -> Result<Self, HybridLengthError> {
        if bytes.len() == PUBLIC_BYTES { Ok(Self(bytes)) } else { Err(HybridLengthError) }
    }
}

impl From<HybridPublic> for Vec<u8> {
    fn from(key: HybridPublic) -> Self {
        key.0
    }
}

impl TryFrom<Vec<u8>> for HybridSealed {
    type Error = HybridLengthError;

    fn try_from(bytes: Vec<u8>) -> Result<Self, HybridLengthError> {
        let is_enough = bytes.len() >= ENCAPSULATED_BYTES + AEAD_TAG;
        is_enough.then_some(Self(bytes)).ok_or(HybridLengthError)
    }
}

impl From<HybridSealed> for Vec<u8> {
    fn from(sealed: HybridSealed) -> Self {
        sealed.0
    }
}

impl std::fmt::Debug for HybridPublic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HybridPublic({})", labelled_hash("", &[&self.0]))
    }
}

impl std::fmt::Debug for HybridSealed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HybridSealed({} bytes)", self.0.len())
    }
}

impl HybridPublic {
    /// The encoding.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Names the key where its 1,216 bytes are too many.
    #[must_use]
    pub fn digest(&self) -> Digest {
        labelled_hash(labels::HYBRID_KEY, &[&self.0])
    }

    /// Whether both halves of the key are usable. A key of which one is not would rest on the
    /// other alone.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.decoded().is_some()
    }

    fn decoded(&self) -> Option<PublicKey> {
        let point = self.0.last_chunk::<X25519>()?;
        if !SealingPublic(*point).is_good() {
            return None;
        }
        PublicKey::from_bytes(&self.0).ok()
    }
}

impl HybridSealed {
    /// The encoding.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl HybridKey {
    /// The key that a seed determines.
    #[must_use]
    pub fn from_seed(seed: &Secret<32>) -> HybridKey {
        #[expect(clippy::expect_used, reason = "every 32 bytes are a key of X-Wing")]
        let secret = PrivateKey::from_bytes(seed.expose()).expect("32 bytes are a key");
        let public = HybridPublic(XWing::sk_to_pk(&secret).to_bytes().to_vec());
        HybridKey { secret, public }
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> &HybridPublic {
        &self.public
    }

    /// Opens a secret that was sealed for this key, under this label and context.
    ///
    /// # Errors
    /// [`UnsealError`].
    pub fn open<const N: usize>(
        &self,
        label: &str,
        context: &[&[u8]],
        sealed: &HybridSealed,
    ) -> Result<Secret<N>, UnsealError> {
        let opened = self.open_bytes(label, context, sealed)?;
        Secret::from_slice(&opened).ok_or(UnsealError)
    }

    /// Like [`HybridKey::open`], for a secret of any length sealed by [`seal_bytes`].
    ///
    /// # Errors
    /// [`UnsealError`].
    pub fn open_bytes(
        &self,
        label: &str,
        context: &[&[u8]],
        sealed: &HybridSealed,
    ) -> Result<Zeroizing<Vec<u8>>, UnsealError> {
        let split = sealed.0.split_at_checked(ENCAPSULATED_BYTES);
        let (encapsulated, ciphertext) = split.ok_or(UnsealError)?;
        hpke_base::open::<XWing>(&self.secret, label, context, encapsulated, ciphertext)
            .map_err(|_| UnsealError)
    }
}

/// Seals a secret for the holder of a key. It opens only under the same label and context.
///
/// # Errors
/// [`SealingKeyError`].
pub fn seal<const N: usize>(
    to: &HybridPublic,
    label: &str,
    context: &[&[u8]],
    secret: &Secret<N>,
    rng: &mut impl CryptoRng,
) -> Result<HybridSealed, SealingKeyError> {
    seal_bytes(to, label, context, secret.expose(), rng)
}

/// Like [`seal`], for a secret of any length. It draws 64 bytes. Anyone who learns them can seal
/// candidates and compare them, and so find out what was sealed.
///
/// # Errors
/// [`SealingKeyError`].
pub fn seal_bytes(
    to: &HybridPublic,
    label: &str,
    context: &[&[u8]],
    secret: &[u8],
    rng: &mut impl CryptoRng,
) -> Result<HybridSealed, SealingKeyError> {
    let public = to.decoded().ok_or(SealingKeyError)?;
    let sealed = hpke_base::seal::<XWing>(&public, label, context, secret, rng);
    let (key, ciphertext) = sealed.map_err(|_| SealingKeyError)?;
    Ok(HybridSealed([key.to_bytes().as_slice(), &ciphertext].concat()))
}
