//! Secrets that only one party can open: HPKE (RFC 9180), base mode,
//! DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, ChaCha20-Poly1305.

use crate::hpke_base;
use crate::secret::Secret;
use hpke::kem::X25519HkdfSha256;
use hpke::{Deserializable, Kem, Serializable};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

type PrivateKey = <X25519HkdfSha256 as Kem>::PrivateKey;
type PublicKey = <X25519HkdfSha256 as Kem>::PublicKey;

/// Opens secrets that were sealed for its public half. Not `Clone`, not `Debug`. The
/// library wipes it on drop.
pub struct SealingKey {
    secret: PrivateKey,
    public: SealingPublic,
}

/// The public half of a [`SealingKey`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SealingPublic(pub [u8; 32]);

/// A sealed secret. Public.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedSecret {
    encapsulated: [u8; 32],
    ciphertext: Vec<u8>,
}

impl SealingPublic {
    /// Whether the key is usable: not a point of small order, for which everybody could open
    /// what is sealed.
    #[must_use]
    pub fn is_good(&self) -> bool {
        // Any scalar works: X25519 makes it a multiple of 8, so exactly the points of small
        // order give zero.
        x25519_dalek::x25519([9; 32], self.0) != [0; 32]
    }
}

impl SealedSecret {
    /// Its length in bytes: that of the secret, plus 48.
    #[must_use]
    pub fn length(&self) -> usize {
        self.encapsulated.len() + self.ciphertext.len()
    }

    /// A dummy of `length` bytes that nobody can open, for a recipient without a key.
    #[must_use]
    pub fn dummy(length: usize) -> Self {
        Self { encapsulated: [0; 32], ciphertext: vec![0; length.saturating_sub(32)] }
    }

    /// The encoding: encapsulated key, then ciphertext.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [&self.encapsulated, self.ciphertext.as_slice()].concat()
    }

    /// Decodes [`SealedSecret::to_bytes`]. `None` if the bytes are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (encapsulated, ciphertext) = bytes.split_first_chunk()?;
        let enough = ciphertext.len() >= 16;
        enough.then(|| Self { encapsulated: *encapsulated, ciphertext: ciphertext.to_vec() })
    }
}

/// The key to seal for is invalid: nobody or everybody could open the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the recipient's public key is invalid or of small order; seal nothing for that party")]
pub struct SealingKeyError;

/// It is damaged, or sealed for another key or under another label or context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sealed secret does not open: it is damaged, or sealed for another key or use")]
pub struct UnsealError;

impl SealingKey {
    /// The key that a seed determines.
    #[must_use]
    pub fn from_seed(seed: &Secret<32>) -> SealingKey {
        let (secret, public) = X25519HkdfSha256::derive_keypair(seed.expose());
        let mut bytes = [0; 32];
        bytes.copy_from_slice(&public.to_bytes());
        SealingKey { secret, public: SealingPublic(bytes) }
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> SealingPublic {
        self.public
    }

    /// Opens a secret that was sealed for this key, under this label and context.
    ///
    /// # Errors
    /// [`UnsealError`].
    pub fn open<const N: usize>(
        &self,
        label: &str,
        context: &[&[u8]],
        sealed: &SealedSecret,
    ) -> Result<Secret<N>, UnsealError> {
        let opened = self.open_bytes(label, context, sealed)?;
        Secret::from_slice(&opened).ok_or(UnsealError)
    }

    /// Like [`SealingKey::open`], for a secret of any length sealed by [`seal_bytes`].
    ///
    /// # Errors
    /// [`UnsealError`].
    pub fn open_bytes(
        &self,
        label: &str,
        context: &[&[u8]],
        sealed: &SealedSecret,
    ) -> Result<Zeroizing<Vec<u8>>, UnsealError> {
        let SealedSecret { encapsulated, ciphertext } = sealed;
        hpke_base::open::<X25519HkdfSha256>(&self.secret, label, context, encapsulated, ciphertext)
            .map_err(|_| UnsealError)
    }
}

/// Seals a secret for the holder of a key. It opens only under the same label and
/// context.
///
/// # Errors
/// [`SealingKeyError`].
pub fn seal<const N: usize>(
    to: &SealingPublic,
    label: &str,
    context: &[&[u8]],
    secret: &Secret<N>,
    rng: &mut impl CryptoRng,
) -> Result<SealedSecret, SealingKeyError> {
    seal_bytes(to, label, context, secret.expose(), rng)
}

/// Like [`seal`], for a secret of any length. Anyone who learns the output of `rng` can seal
/// candidates and compare them, and so find out what was sealed.
///
/// # Errors
/// [`SealingKeyError`].
pub fn seal_bytes(
    to: &SealingPublic,
    label: &str,
    context: &[&[u8]],
    secret: &[u8],
    rng: &mut impl CryptoRng,
) -> Result<SealedSecret, SealingKeyError> {
    let public = PublicKey::from_bytes(&to.0).map_err(|_| SealingKeyError)?;
    let sealed = hpke_base::seal::<X25519HkdfSha256>(&public, label, context, secret, rng);
    let (key, ciphertext) = sealed.map_err(|_| SealingKeyError)?;
    let mut encapsulated = [0; 32];
    encapsulated.copy_from_slice(&key.to_bytes());
    Ok(SealedSecret { encapsulated, ciphertext })
}
