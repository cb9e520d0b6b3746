//! A key that two parties share: X25519.

use crate::kdf::derive;
use crate::labels;
use crate::secret::Secret;
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use x25519_dalek::{PublicKey, StaticSecret};

/// A private key for agreement. Not `Clone`, not `Debug`, wiped on drop.
pub struct AgreementKey {
    secret: StaticSecret,
    /// Kept, since every agreement is bound to it.
    public: AgreementPublic,
}

/// Its public half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AgreementPublic(pub [u8; 32]);

/// The other's public key has small order: the "shared" secret would be known
/// to everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the other party's public key has small order; refuse that party")]
pub struct LowOrder;

impl AgreementKey {
    /// The key that belongs to a seed.
    #[must_use]
    pub fn from_seed(seed: &Secret<32>) -> Self {
        let secret = StaticSecret::from(*seed.expose());
        let public = AgreementPublic(PublicKey::from(&secret).to_bytes());
        Self { secret, public }
    }

    /// Draws a fresh key.
    #[must_use]
    pub fn random(rng: &mut impl CryptoRng) -> Self {
        Self::from_seed(&Secret::random(rng))
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> AgreementPublic {
        self.public
    }

    /// The key shared with `their` owner: both get the same, and it is bound to
    /// both public keys by HKDF.
    ///
    /// # Errors
    /// [`LowOrder`] if their key would make the result public.
    pub fn agree(&self, their: &AgreementPublic) -> Result<Secret<32>, LowOrder> {
        let shared = self.secret.diffie_hellman(&PublicKey::from(their.0));
        if !shared.was_contributory() {
            return Err(LowOrder);
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

    #[test]
    fn keys_of_small_order_are_refused() {
        let mut one = [0; 32];
        one[0] = 1;
        for low in [[0; 32], one] {
            assert_eq!(key(1).agree(&AgreementPublic(low)).err(), Some(LowOrder));
        }
    }
}
