//! Where random numbers come from: the system, or a script for known answers.

use crate::codes::Code;
use crate::refusal::Refusal;
use chacha20::ChaCha20Rng;
use rand_core::{Rng, SeedableRng, TryCryptoRng, TryRng};
use std::collections::VecDeque;
use std::convert::Infallible;
use zeroize::Zeroizing;

/// A source of random numbers. C has no way to choose one: a number that comes twice could use a pad twice.
pub enum Randomness {
    /// A generator that the system seeded.
    System(Box<ChaCha20Rng>),
    /// Numbers that a test chose, and ones after them.
    Scripted(VecDeque<u8>),
}

impl Randomness {
    /// A generator with a fresh seed from the system.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn system() -> Result<Randomness, Refusal> {
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(seed.as_mut()).map_err(|error| Refusal::of(Code::IoFailed, &error))?;
        Ok(Randomness::System(Box::new(ChaCha20Rng::from_seed(*seed))))
    }

    /// These bytes, in their order.
    #[must_use]
    pub fn scripted(bytes: &[u8]) -> Randomness {
        Randomness::Scripted(bytes.iter().copied().collect())
    }
}

impl TryRng for Randomness {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        match self {
            Randomness::System(rng) => rng.fill_bytes(out),
            Randomness::Scripted(bytes) => {
                out.iter_mut().for_each(|byte| *byte = bytes.pop_front().unwrap_or(1));
            }
        }
        Ok(())
    }
}

impl TryCryptoRng for Randomness {}
