//! Secrets at rest. Each is encrypted with XChaCha20-Poly1305. Argon2id derives the key from
//! a passphrase or key file that the operator keeps elsewhere. A file of 32 random bytes cannot be
//! guessed, and HKDF derives the key from it.

use crate::kdf::derive;
use crate::labels;
use crate::secret::Secret;
use argon2::{Algorithm, Argon2, Params, Version};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use data_encoding::BASE64;
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// The cost of a guess. The defaults are the memory and passes of RFC 9106's second
/// recommendation, in one lane.
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
    /// Without Argon2id: guesses are cheap, and there are 2^256 of them.
    const RANDOM: Hardness = Hardness { memory: 0, passes: 0 };

    /// What a new key from this secret costs: nothing if it is 32 random bytes in base64, as by
    /// `head -c 32 /dev/urandom | base64`, and otherwise the default.
    #[must_use]
    pub fn of(secret: &[u8]) -> Hardness {
        if is_random(secret) { Self::RANDOM } else { Self::default() }
    }

    /// The upper limit. Without it, anyone who can change a header could exhaust the memory.
    pub const MAX: Hardness = Hardness { memory: 1 << 20, passes: 10 };
}

/// Locks and unlocks secrets. Not `Clone`, not `Debug`, wiped on drop.
pub struct VaultKey(Secret<32>);

/// The parameters of the key derivation are out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the cost of the key derivation is out of range: at most {} KiB of memory and {} passes",
    Hardness::MAX.memory,
    Hardness::MAX.passes
)]
pub struct HardnessError;

/// The entry is damaged, or was locked with another key or under another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the entry does not open: the key file or passphrase is wrong, or the entry is damaged")]
pub struct UnlockError;

const NONCE: usize = 24;

impl VaultKey {
    /// Derives the key from a passphrase or key file and a salt, which is public.
    ///
    /// # Errors
    /// [`HardnessError`] if the parameters are out of range.
    pub fn derive(
        passphrase: &[u8],
        salt: &[u8; 16],
        hardness: Hardness,
    ) -> Result<VaultKey, HardnessError> {
        if hardness.memory > Hardness::MAX.memory || hardness.passes > Hardness::MAX.passes {
            return Err(HardnessError);
        }
        if hardness == Hardness::RANDOM {
            return Ok(VaultKey(derive(passphrase, labels::VAULT_RANDOM, &[salt])));
        }
        let params = Params::new(hardness.memory, hardness.passes, 1, Some(32));
        let argon =
            Argon2::new(Algorithm::Argon2id, Version::V0x13, params.map_err(|_| HardnessError)?);
        let mut key = Zeroizing::new([0; 32]);
        argon.hash_password_into(passphrase, salt, &mut *key).map_err(|_| HardnessError)?;
        Ok(VaultKey(Secret::from_bytes(*key)))
    }

    /// A key that depends on both this one and `slot`. Destroying the slot destroys everything
    /// that is locked under it, including all copies.
    #[must_use]
    pub fn with_slot(&self, slot: &Secret<32>) -> VaultKey {
        let mut both = Zeroizing::new([0; 64]);
        both[..32].copy_from_slice(self.0.expose());
        both[32..].copy_from_slice(slot.expose());
        VaultKey(derive(&both[..], labels::VAULT_SLOT, &[]))
    }

    /// A key that depends on a slot alone. Destroying the slot destroys everything that is locked
    /// under it.
    #[must_use]
    pub fn of_slot(slot: &Secret<32>) -> VaultKey {
        VaultKey(derive(slot.expose(), labels::VAULT_SLOT, &[b"alone"]))
    }

    /// Locks a secret under a name. Unlocking needs the same name.
    #[must_use]
    pub fn lock(&self, name: &[u8], secret: &[u8], rng: &mut impl CryptoRng) -> Vec<u8> {
        let mut nonce = [0; NONCE];
        rng.fill_bytes(&mut nonce);
        let payload = Payload { msg: secret, aad: name };
        let locked = self.cipher().encrypt(&XNonce::from(nonce), payload);
        #[expect(clippy::expect_used, reason = "only more than 256 GiB do not fit")]
        let locked = locked.expect("an entry is far shorter than the cipher's limit");
        [&nonce[..], &locked].concat()
    }

    /// Unlocks a secret that was locked under the name.
    ///
    /// # Errors
    /// [`UnlockError`].
    pub fn unlock(&self, name: &[u8], locked: &[u8]) -> Result<Zeroizing<Vec<u8>>, UnlockError> {
        let (nonce, rest) = locked.split_first_chunk::<NONCE>().ok_or(UnlockError)?;
        let payload = Payload { msg: rest, aad: name };
        let opened = self.cipher().decrypt(&XNonce::from(*nonce), payload);
        opened.map(Zeroizing::new).map_err(|_| UnlockError)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(self.0.expose().into())
    }
}

/// Whether a secret is the base64 of 32 bytes that look drawn. Text and patterns do not: of random bytes
/// fewer than one in 10^9 would be taken for them.
fn is_random(secret: &[u8]) -> bool {
    let Ok(bytes) = BASE64.decode(secret.trim_ascii_end()).map(Zeroizing::new) else {
        return false;
    };
    let mut seen = [false; 256];
    bytes.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    let different = seen.iter().filter(|seen| **seen).count();
    bytes.len() == 32 && different >= 20 && !bytes.iter().all(u8::is_ascii)
}
