//! Skellam shares: differences of Poisson variables. n shares of variance V/n sum to
//! Skellam noise of variance V.

use super::NoiseError;
use super::coins::Coins;
use super::table::Table;
use num_bigint::BigUint;
use std::num::NonZeroU32;

/// The sampler of shares of one variance. Its table is public and serves every draw.
#[derive(Clone, Debug)]
pub(super) struct Skellam {
    half: Table,
}

impl Skellam {
    /// Makes the sampler for variance `above / (below · honest)`.
    ///
    /// # Errors
    /// If a share's variance exceeds 2^23, which needs a coarser granule.
    pub(super) fn new(
        (above, below): (u64, u64),
        honest: NonZeroU32,
    ) -> Result<Skellam, NoiseError> {
        if above == 0 || below == 0 {
            return Err(NoiseError::Zero);
        }
        let below = BigUint::from(below) * honest.get() * 2u8;
        Ok(Skellam { half: Table::poisson(&above.into(), &below)? })
    }

    /// The number of table entries that every draw compares with.
    pub(super) fn comparisons(&self) -> usize {
        2 * self.half.comparisons()
    }

    /// Draws one share, modulo 2^64.
    pub(super) fn draw(&self, coins: &mut Coins<'_>) -> u64 {
        self.half.draw(coins).wrapping_sub(self.half.draw(coins))
    }
}
