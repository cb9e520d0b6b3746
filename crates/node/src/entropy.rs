//! The operating system's randomness. Keys and nonces come from nowhere else.

use crate::failure::{Blame, Category, Failure};
use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;

/// A generator with a fresh seed.
///
/// # Errors
/// If the operating system has no randomness.
pub fn rng() -> Result<ChaCha20Rng, Failure> {
    let mut seed = [0; 32];
    fill(&mut seed).blame(Category::Io)?;
    Ok(ChaCha20Rng::from_seed(seed))
}

/// Random bytes.
///
/// # Errors
/// If the operating system has no randomness.
pub fn fill(bytes: &mut [u8]) -> Result<(), getrandom::Error> {
    getrandom::fill(bytes)
}
