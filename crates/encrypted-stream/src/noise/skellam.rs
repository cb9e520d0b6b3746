//! Skellam shares: differences of Poisson variables. n of variance V/n sum to
//! one of variance V.

use super::Unfit;
use super::coins::Coins;
use super::table::Table;
use num_bigint::BigUint;
use std::num::NonZeroU32;

/// Shares of one variance; public, and reused for every draw.
#[derive(Clone, Debug)]
pub(super) struct Skellam {
    half: Table,
}

impl Skellam {
    /// Shares of the variance `above / (below · honest)`.
    ///
    /// # Errors
    /// A share's variance beyond 2^23: a coarser granule is needed.
    pub(super) fn new((above, below): (u64, u64), honest: NonZeroU32) -> Result<Skellam, Unfit> {
        if above == 0 || below == 0 {
            return Err(Unfit::Zero);
        }
        let below = BigUint::from(below) * honest.get() * 2u8;
        Ok(Skellam { half: Table::poisson(&above.into(), &below)? })
    }

    /// Table entries that every draw compares with.
    pub(super) fn comparisons(&self) -> usize {
        2 * self.half.comparisons()
    }

    /// One share, modulo 2^64.
    pub(super) fn draw(&self, coins: &mut Coins<'_>) -> u64 {
        self.half.draw(coins).wrapping_sub(self.half.draw(coins))
    }
}
