//! Secrets at rest: each is locked by XChaCha20-Poly1305 under a key that
//! Argon2id makes of what the operator keeps elsewhere.

use crate::kdf::derive;
use crate::labels;
use crate::secret::Secret;
use argon2::{Algorithm, Argon2, Params, Version};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// How hard guessing is made. The defaults are memory and passes of RFC 9106's second
/// choice, in one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hardness {
    /// KiB of memory.
    pub memory: u32,
    /// Passes over it.
    pub passes: u32,
}

impl Default for Hardness {
    fn default() -> Self {
        Hardness { memory: 64 * 1024, passes: 3 }
    }
}

impl Hardness {
    /// More is not tried: whoever could change a header could else eat the memory.
    pub const MOST: Hardness = Hardness { memory: 1 << 20, passes: 10 };
}

/// Locks and unlocks. Not `Clone`, not `Debug`; wiped on drop.
pub struct VaultKey(Secret<32>);

/// The parameters of the key derivation are out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key store asks for a key derivation that is out of range")]
pub struct BadHardness;

/// It was locked with another key, under another name, or is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the entry does not open: another key file, or it is damaged")]
pub struct Locked;

const NONCE: usize = 24;

impl VaultKey {
    /// The key of a passphrase or key file, and a salt that is not secret.
    ///
    /// # Errors
    /// [`BadHardness`] if the parameters are out of range.
    pub fn derive(
        passphrase: &[u8],
        salt: &[u8; 16],
        hardness: Hardness,
    ) -> Result<VaultKey, BadHardness> {
        if hardness.memory > Hardness::MOST.memory || hardness.passes > Hardness::MOST.passes {
            return Err(BadHardness);
        }
        let params = Params::new(hardness.memory, hardness.passes, 1, Some(32));
        let argon =
            Argon2::new(Algorithm::Argon2id, Version::V0x13, params.map_err(|_| BadHardness)?);
        let mut key = Zeroizing::new([0; 32]);
        argon.hash_password_into(passphrase, salt, &mut *key).map_err(|_| BadHardness)?;
        Ok(VaultKey(Secret::from_bytes(*key)))
    }

    /// A key that needs this one and `slot` both: who destroys the slot has
    /// destroyed what is locked under it, wherever copies lie.
    #[must_use]
    pub fn with_slot(&self, slot: &Secret<32>) -> VaultKey {
        let mut both = Zeroizing::new([0; 64]);
        both[..32].copy_from_slice(self.0.expose());
        both[32..].copy_from_slice(slot.expose());
        VaultKey(derive(&both[..], labels::VAULT_SLOT, &[]))
    }

    /// Locks a secret under a name, which unlocking must repeat.
    #[must_use]
    pub fn lock(&self, name: &[u8], secret: &[u8], rng: &mut impl CryptoRng) -> Vec<u8> {
        let mut nonce = [0; NONCE];
        rng.fill_bytes(&mut nonce);
        let payload = Payload { msg: secret, aad: name };
        let locked = self.cipher().encrypt(&XNonce::from(nonce), payload);
        #[expect(clippy::expect_used, reason = "only 256 GiB at once do not fit")]
        let locked = locked.expect("an entry is far shorter than the cipher's limit");
        [&nonce[..], &locked].concat()
    }

    /// Unlocks what was locked under the name.
    ///
    /// # Errors
    /// [`Locked`].
    pub fn unlock(&self, name: &[u8], locked: &[u8]) -> Result<Zeroizing<Vec<u8>>, Locked> {
        let (nonce, rest) = locked.split_first_chunk::<NONCE>().ok_or(Locked)?;
        let payload = Payload { msg: rest, aad: name };
        let opened = self.cipher().decrypt(&XNonce::from(*nonce), payload);
        opened.map(Zeroizing::new).map_err(|_| Locked)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(self.0.expose().into())
    }
}
