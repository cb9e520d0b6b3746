//! The issuer's key, which also verifies presentations. Anyone who has it can issue credentials.
//! Its scalars are [`SecretScalar`]s, which no variable-time code accepts.

use crate::error::KeyError;
use alpheus_crypto::group::{Element, IdentityError, SecretScalar};
use alpheus_crypto::secret::Secret;
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

/// x0, x1, x2, xb. Not `Clone`, not `Debug`, wiped on drop.
pub struct IssuerKey {
    pub(crate) x0: SecretScalar,
    pub(crate) x1: SecretScalar,
    pub(crate) x2: SecretScalar,
    pub(crate) xb: SecretScalar,
    public: IssuerPublic,
}

/// X0 = x0·G + xb·H, X1 = x1·H, X2 = x2·H. Part of the signed configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuerPublic {
    /// X0.
    pub x0: Element,
    /// X1.
    pub x1: Element,
    /// X2.
    pub x2: Element,
}

impl IssuerKey {
    /// Draws a key.
    ///
    /// # Errors
    /// [`KeyError`] if X0 is the identity, which has a probability of 2^-252.
    pub fn random(rng: &mut impl CryptoRng) -> Result<Self, KeyError> {
        let mut draw = || SecretScalar::random(rng);
        Self::of([draw(), draw(), draw(), draw()])
    }

    /// Reads a stored key: x0, x1, x2, xb, each 32 bytes.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn from_bytes(bytes: &Secret<128>) -> Result<Self, KeyError> {
        let scalar = |j: usize| {
            let mut part = [0; 32];
            part.copy_from_slice(&bytes.expose()[32 * j..32 * (j + 1)]);
            let scalar = SecretScalar::from_bytes(&Secret::from_bytes(part));
            part.zeroize();
            scalar
        };
        Self::of([scalar(0)?, scalar(1)?, scalar(2)?, scalar(3)?])
    }

    /// The key's bytes, for storage.
    #[must_use]
    pub fn expose(&self) -> Secret<128> {
        let mut bytes = [0; 128];
        let scalars = [&self.x0, &self.x1, &self.x2, &self.xb];
        for (part, scalar) in bytes.chunks_exact_mut(32).zip(scalars) {
            part.copy_from_slice(scalar.expose().expose());
        }
        let secret = Secret::from_bytes(bytes);
        bytes.zeroize();
        secret
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> &IssuerPublic {
        &self.public
    }

    fn of([x0, x1, x2, xb]: [SecretScalar; 4]) -> Result<Self, KeyError> {
        let (g, h) = (Element::base(), Element::second_base());
        let public = || -> Result<IssuerPublic, IdentityError> {
            Ok(IssuerPublic {
                x0: Element::combine(&[(&x0, &g), (&xb, &h)], &[], &[])?,
                x1: h.times(&x1)?,
                x2: h.times(&x2)?,
            })
        };
        let public = public().map_err(|IdentityError| KeyError::Vanished)?;
        Ok(Self { x0, x1, x2, xb, public })
    }
}
