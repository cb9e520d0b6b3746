//! A secret for one party alone: HPKE (RFC 9180), base mode,
//! DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, ChaCha20-Poly1305.

use crate::hash::labelled;
use crate::secret::Secret;
use hpke::aead::ChaCha20Poly1305;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::{Deserializable, Kem, OpModeR, OpModeS, Serializable};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

type PrivateKey = <X25519HkdfSha256 as Kem>::PrivateKey;
type PublicKey = <X25519HkdfSha256 as Kem>::PublicKey;
type Encapsulated = <X25519HkdfSha256 as Kem>::EncappedKey;

/// Opens what was sealed for its public half. Not `Clone`, not `Debug`; the
/// library wipes it on drop.
pub struct SealingKey {
    secret: PrivateKey,
    public: SealingPublic,
}

/// Its public half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SealingPublic(pub [u8; 32]);

/// A sealed secret. Public.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    encapsulated: [u8; 32],
    ciphertext: Vec<u8>,
}

impl SealingPublic {
    /// Whether something can be sealed for it that not everybody opens: it is no point of
    /// small order.
    #[must_use]
    pub fn is_good(&self) -> bool {
        // Any scalar will do: it is a multiple of 8, and no product of large order vanishes.
        x25519_dalek::x25519([9; 32], self.0) != [0; 32]
    }
}

impl Sealed {
    /// Its bytes: those of the secret, and 48.
    #[must_use]
    pub fn length(&self) -> usize {
        self.encapsulated.len() + self.ciphertext.len()
    }

    /// What opens for nobody, of so many bytes: in the place of what there is no key for.
    #[must_use]
    pub fn nothing(length: usize) -> Self {
        Self { encapsulated: [0; 32], ciphertext: vec![0; length.saturating_sub(32)] }
    }

    /// Encapsulated key, then ciphertext.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [&self.encapsulated, self.ciphertext.as_slice()].concat()
    }

    /// Reads what [`Sealed::to_bytes`] gave; none if it is shorter than anything sealed.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (encapsulated, ciphertext) = bytes.split_first_chunk()?;
        let enough = ciphertext.len() >= 16;
        enough.then(|| Self { encapsulated: *encapsulated, ciphertext: ciphertext.to_vec() })
    }
}

/// The key that something is to be sealed for is none: nobody could open it, or
/// everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the public key to seal for is not a good one; refuse that party")]
pub struct BadSealingKey;

/// It is sealed for another key, under another label or context, or damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what is sealed does not open with this key for this use")]
pub struct NotSealed;

impl SealingKey {
    /// The key that belongs to a seed.
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
    /// [`NotSealed`].
    pub fn open<const N: usize>(
        &self,
        label: &str,
        context: &[&[u8]],
        sealed: &Sealed,
    ) -> Result<Secret<N>, NotSealed> {
        let opened = self.open_bytes(label, context, sealed)?;
        Secret::from_slice(&opened).ok_or(NotSealed)
    }

    /// The same for a secret of any length, which [`seal_bytes`] has sealed.
    ///
    /// # Errors
    /// [`NotSealed`].
    pub fn open_bytes(
        &self,
        label: &str,
        context: &[&[u8]],
        sealed: &Sealed,
    ) -> Result<Zeroizing<Vec<u8>>, NotSealed> {
        let encapsulated = Encapsulated::from_bytes(&sealed.encapsulated).map_err(|_| NotSealed)?;
        let opened = hpke::single_shot_open::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
            &OpModeR::Base,
            &self.secret,
            &encapsulated,
            labelled(label, context).as_ref(),
            &sealed.ciphertext,
            &[],
        );
        opened.map(Zeroizing::new).map_err(|_| NotSealed)
    }
}

/// Seals a secret for the holder of a key. Label and context are bound to it:
/// it opens only for the same use.
///
/// # Errors
/// [`BadSealingKey`].
pub fn seal<const N: usize>(
    to: &SealingPublic,
    label: &str,
    context: &[&[u8]],
    secret: &Secret<N>,
    rng: &mut impl CryptoRng,
) -> Result<Sealed, BadSealingKey> {
    seal_bytes(to, label, context, secret.expose(), rng)
}

/// The same for a secret of any length. Whoever is told what `rng` gave can seal
/// the same again and so see what was sealed.
///
/// # Errors
/// [`BadSealingKey`].
pub fn seal_bytes(
    to: &SealingPublic,
    label: &str,
    context: &[&[u8]],
    secret: &[u8],
    rng: &mut impl CryptoRng,
) -> Result<Sealed, BadSealingKey> {
    let public = PublicKey::from_bytes(&to.0).map_err(|_| BadSealingKey)?;
    let sealed = hpke::single_shot_seal_with_rng::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
        &OpModeS::Base,
        &public,
        labelled(label, context).as_ref(),
        secret,
        &[],
        rng,
    );
    let (key, ciphertext) = sealed.map_err(|_| BadSealingKey)?;
    let mut encapsulated = [0; 32];
    encapsulated.copy_from_slice(&key.to_bytes());
    Ok(Sealed { encapsulated, ciphertext })
}
