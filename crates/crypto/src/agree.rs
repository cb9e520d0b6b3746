//! Key agreement between two parties: X25519.

use crate::kdf::derive;
use crate::labels;
use crate::secret::Secret;
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use x25519_dalek::{PublicKey, StaticSecret};

/// A private key for agreement. Not `Clone`, not `Debug`, wiped on drop.
pub struct AgreementKey {
    /// On the heap, so that moving the key leaves no copy behind.
    secret: Box<StaticSecret>,
    /// Every agreement is bound to it, so it is computed once.
    public: AgreementPublic,
}

/// The public half of an [`AgreementKey`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AgreementPublic(pub [u8; 32]);

/// All 255-bit encodings of u-coordinates of small order on the curve and its twist: 0, 1, the
/// two of order 8, −1, and p and p + 1, which are other encodings of 0 and 1.
const SMALL_ORDER: [[u8; 32]; 7] = [
    ends(0x00, 0x00, 0x00),
    ends(0x01, 0x00, 0x00),
    [
        0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4,
        0x6a, 0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49,
        0xb8, 0x00,
    ],
    [
        0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0, 0xb1, 0x55, 0x9c, 0x83, 0xef,
        0x5b, 0x04, 0x44, 0x5c, 0xc4, 0x58, 0x1c, 0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd, 0xd0, 0x9f,
        0x11, 0x57,
    ],
    ends(0xec, 0xff, 0x7f),
    ends(0xed, 0xff, 0x7f),
    ends(0xee, 0xff, 0x7f),
];

/// The lowest byte, thirty equal bytes, and the highest byte.
const fn ends(low: u8, middle: u8, high: u8) -> [u8; 32] {
    let mut bytes = [middle; 32];
    bytes[0] = low;
    bytes[31] = high;
    bytes
}

/// The other party's public key has small order, so everybody could compute the "shared"
/// secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the other party's public key has small order; do not agree on a key with that party")]
pub struct LowOrderError;

impl AgreementPublic {
    /// Whether everybody could compute a secret agreed with this key. Cheaper than agreement.
    #[must_use]
    pub fn has_small_order(&self) -> bool {
        let mut bytes = self.0;
        // The curve's arithmetic ignores the highest bit.
        bytes[31] &= 0x7f;
        SMALL_ORDER.contains(&bytes)
    }
}

impl AgreementKey {
    /// The key that a seed determines.
    #[must_use]
    pub fn from_seed(seed: &Secret<32>) -> Self {
        let secret = Box::new(StaticSecret::from(*seed.expose()));
        let public = AgreementPublic(PublicKey::from(&*secret).to_bytes());
        Self { secret, public }
    }

    /// Draws a random key.
    #[must_use]
    pub fn random(rng: &mut impl CryptoRng) -> Self {
        Self::from_seed(&Secret::random(rng))
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> AgreementPublic {
        self.public
    }

    /// The key shared with the owner of `their`. Both parties compute the same
    /// key, and HKDF binds it to both public keys.
    ///
    /// # Errors
    /// [`LowOrderError`] if their key would make the result public.
    pub fn agree(&self, their: &AgreementPublic) -> Result<Secret<32>, LowOrderError> {
        let shared = self.secret.diffie_hellman(&PublicKey::from(their.0));
        if !shared.was_contributory() {
            return Err(LowOrderError);
        }
        let ours = &self.public;
        let (low, high) = if ours <= their { (ours, their) } else { (their, ours) };
        Ok(derive(shared.as_bytes(), labels::AGREEMENT, &[&low.0, &high.0]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> AgreementKey {
        AgreementKey::from_seed(&Secret::from_bytes([seed; 32]))
    }

    #[test]
    fn both_sides_agree_and_others_do_not() {
        let (a, b, c) = (key(1), key(2), key(3));
        let ab = a.agree(&b.public()).unwrap();
        assert!(ab == b.agree(&a.public()).unwrap());
        assert!(ab != a.agree(&c.public()).unwrap());
    }

    /// A map that grows, or a `Vec`, would leave the secret in memory that nobody wipes.
    #[test]
    fn moving_a_key_copies_nothing_secret() {
        let moved = size_of::<AgreementKey>();
        assert_eq!(moved, size_of::<AgreementPublic>() + size_of::<usize>());
    }

    #[test]
    fn keys_of_small_order_are_refused() {
        for low in SMALL_ORDER {
            for high in [0, 0x80] {
                let mut low = AgreementPublic(low);
                low.0[31] |= high;
                assert!(low.has_small_order());
                assert_eq!(key(1).agree(&low).err(), Some(LowOrderError));
            }
        }
        for seed in 0..=255 {
            assert!(!key(seed).public().has_small_order());
            let mut near = AgreementPublic(SMALL_ORDER[usize::from(seed) % 7]);
            near.0[usize::from(seed) % 31] ^= 2 + (seed & 0x10);
            assert_eq!(near.has_small_order(), key(1).agree(&near).is_err());
        }
    }
}
