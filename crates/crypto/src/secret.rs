//! Bytes that must not leak: wiped on drop, never printed, compared in constant
//! time, and read only through [`Secret::expose`].

use rand_core::CryptoRng;
use subtle::{Choice, ConstantTimeEq};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// `N` secret bytes.
///
/// They are on the heap, so that moving the value leaves no copy behind, and are
/// wiped when it is dropped. There is no `Clone`, `Copy`, `Debug` or serde. Every
/// copy is explicit, with [`Secret::duplicate`] or [`Secret::expose`].
///
/// ```compile_fail
/// let secret = alpheus_crypto::secret::Secret::<32>::from_bytes([7; 32]);
/// println!("{secret:?}");
/// ```
pub struct Secret<const N: usize>(Box<[u8; N]>);

impl<const N: usize> Secret<N> {
    /// Takes the bytes and wipes the argument. The caller wipes its own copies.
    #[must_use]
    pub fn from_bytes(mut bytes: [u8; N]) -> Self {
        let mut secret = Box::new([0; N]);
        secret.copy_from_slice(&bytes);
        bytes.zeroize();
        Self(secret)
    }

    /// Copies `N` bytes directly to the heap. `None` if there are more or fewer.
    #[must_use]
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        (bytes.len() == N).then(|| Self::fill_with(|secret| secret.copy_from_slice(bytes)))
    }

    /// Draws random bytes.
    #[must_use]
    pub fn random(rng: &mut impl CryptoRng) -> Self {
        let mut secret = Box::new([0; N]);
        rng.fill_bytes(secret.as_mut_slice());
        Self(secret)
    }

    /// The bytes. To audit where secrets are read, search for this name.
    #[must_use]
    pub fn expose(&self) -> &[u8; N] {
        &self.0
    }

    /// An explicit copy.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        Self(self.0.clone())
    }

    /// Has a function write the bytes in place, so that no other copy exists.
    pub(crate) fn fill_with(fill: impl FnOnce(&mut [u8; N])) -> Self {
        let mut secret = Self(Box::new([0; N]));
        fill(&mut secret.0);
        secret
    }
}

impl<const N: usize> Drop for Secret<N> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl<const N: usize> ZeroizeOnDrop for Secret<N> {}

impl<const N: usize> ConstantTimeEq for Secret<N> {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.0.as_slice().ct_eq(other.0.as_slice())
    }
}

impl<const N: usize> PartialEq for Secret<N> {
    fn eq(&self, other: &Self) -> bool {
        self.ct_eq(other).into()
    }
}

impl<const N: usize> Eq for Secret<N> {}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::{ChaCha20Rng, rand_core::SeedableRng};

    #[test]
    fn secrets_are_equal_if_their_bytes_are() {
        let secret = Secret::from_bytes([1; 32]);
        assert!(secret == Secret::from_bytes([1; 32]));
        let mut other = [1; 32];
        other[31] = 2;
        assert!(secret != Secret::from_bytes(other));
        assert!(secret == secret.duplicate());
    }

    #[test]
    fn random_fills_every_byte() {
        let mut rng = ChaCha20Rng::from_seed([5; 32]);
        let drawn: Vec<Secret<32>> = (0..64).map(|_| Secret::random(&mut rng)).collect();
        for byte in 0..32 {
            assert!(drawn.iter().any(|secret| secret.expose()[byte] != 0));
        }
        assert!(drawn[0] != drawn[1]);
    }
}
