//! Pólya shares: n of them sum to discrete Laplace noise.
//!
//! A share is X − Y, where both are negative binomial of shape r = 1/n. NB(r, q) is the
//! sum of k · Poisson(r·q^k/k) over k ≥ 1, so a share is a number of *jumps* of either
//! sign. Sizes k fall into blocks [2^j, 2^(j+1)). Candidates arrive at rate 2r·q^(2^j) in
//! block j, uniformly within it. Each is kept with probability (2^j/k)·q^(k−2^j), the
//! last factor bit by bit. Thinning a Poisson process like this results in a Poisson
//! process of rate r·q^k/k for each k and sign. It is exact and needs no loop of random
//! length.

use super::NoiseError;
use super::coins::{Coins, below, low_word, select_or_zero};
use super::exponent::Exponent;
use super::table::Table;
use num_bigint::BigUint;
use std::num::NonZeroU32;
use subtle::{ConditionallySelectable, ConstantTimeLess};

/// Fractional bits of rates.
const RATE_BITS: u64 = 256;
/// Jumps are below 2^62, so that signed words hold them.
const MAX_BLOCKS: u64 = 62;
/// `e^−80 < 2^−115`: blocks with a lower rate are left out.
const CUTOFF: u32 = 80;

/// The sampler of shares of shape 1/n for one scale. Its tables are public and serve
/// every draw.
#[derive(Clone, Debug)]
pub(super) struct Polya {
    /// The number of candidates.
    candidates: Table,
    /// The number of a candidate's block.
    block: Table,
    /// ⌊2^128 · q^(2^i)⌋.
    bits: Vec<u128>,
    blocks: u32,
}

impl Polya {
    /// Makes the sampler for q = e^−exponent and n = `honest`.
    ///
    /// # Errors
    /// If the scale (1 / exponent) exceeds 2^55.
    pub(super) fn new(exponent: &Exponent, honest: NonZeroU32) -> Result<Polya, NoiseError> {
        let count = (1..=MAX_BLOCKS).find(|j| exponent.doubled(*j).reaches(CUTOFF));
        let count = count.ok_or(NoiseError::TooWide)?;
        let rates: Vec<BigUint> =
            (0..count).map(|j| exponent.doubled(j).scaled(RATE_BITS)).collect();
        let twice = rates.iter().sum::<BigUint>() * 2u8;
        let below = BigUint::from(honest.get()) << RATE_BITS;
        Ok(Polya {
            candidates: Table::poisson(&twice, &below)?,
            block: Table::new(0, &rates),
            bits: (0..count - 1).map(|i| exponent.doubled(i).chance()).collect(),
            blocks: u32::try_from(count).unwrap_or(u32::MAX),
        })
    }

    /// The number of candidates that every draw processes.
    pub(super) fn slots(&self) -> u64 {
        self.candidates.last()
    }

    /// Units of 16 random bytes that every draw uses.
    pub(super) fn words(&self) -> u64 {
        1 + self.slots() * u64::from(self.blocks + 2)
    }

    /// The number of table entries that every draw compares with.
    pub(super) fn comparisons(&self) -> usize {
        let slots = usize::try_from(self.slots()).unwrap_or(usize::MAX);
        self.candidates.comparisons() + slots.saturating_mul(self.block.comparisons())
    }

    /// Draws one share, modulo 2^64.
    pub(super) fn draw(&self, coins: &mut Coins<'_>) -> u64 {
        let count = self.candidates.draw(coins);
        let mut share = 0u64;
        for slot in 0..self.slots() {
            let jump = self.jump(coins);
            share = share.wrapping_add(select_or_zero(slot.ct_lt(&count), jump));
        }
        share
    }

    /// Draws a candidate's jump, or 0 if it is not kept.
    #[inline]
    fn jump(&self, coins: &mut Coins<'_>) -> u64 {
        let block = self.block.draw(coins);
        // A shift by a register takes constant time.
        let start = 1u64 << (block & 63);
        let random = coins.uniform();
        let offset = low_word(random) & (start - 1);
        let size = start | offset;
        let mut kept = coins.flip_ratio(start, size);
        for (i, threshold) in self.bits.iter().enumerate() {
            let survives = coins.flip(*threshold);
            let absent = (offset >> (i & 63)) & 1 ^ 1;
            kept &= survives | below(0, u128::from(absent));
        }
        let negative = below(random >> 127, 1);
        let signed = u64::conditional_select(&size, &size.wrapping_neg(), negative);
        select_or_zero(kept, signed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(a: u64, b: u64, n: u32) -> Polya {
        let honest = NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        Polya::new(&Exponent::new(a, b), honest).unwrap_or_else(|_| unreachable!())
    }

    /// Computes the rate of kept jumps of each size and sign from the tables.
    #[test]
    fn jumps_arrive_at_the_rates_of_a_negative_binomial() {
        for (a, b, n) in [(1u64, 10u64, 4u32), (3, 2, 1), (1, 100, 50), (5, 1, 2)] {
            let (share, q) = (share(a, b, n), (-(a as f64) / b as f64).exp());
            let rates: f64 = (0..share.blocks).map(|j| q.powi(1 << j)).sum();
            let (count, r) = (2.0 * rates / f64::from(n), 1.0 / f64::from(n));
            let mean: f64 =
                (0..=share.slots()).map(|k| k as f64 * share.candidates.chance(k)).sum();
            assert!((mean / count - 1.0).abs() < 1e-9, "{mean} {count}");
            for k in 1..1u64 << share.blocks.min(10) {
                let j = k.ilog2();
                let kept = (0..j)
                    .filter(|i| (k >> i) & 1 == 1)
                    .fold(1.0, |kept, i| kept * share.bits[i as usize] as f64 / 2f64.powi(128))
                    / (k as f64 / 2f64.powi(j as i32));
                let rate = mean / 2.0 * share.block.chance(j.into()) / 2f64.powi(j as i32) * kept;
                let exact = r * (-(a as f64) * k as f64 / b as f64).exp() / k as f64;
                assert!((rate - exact).abs() < 1e-9 * exact + 1e-30, "{a}/{b} {n} {k}");
            }
        }
    }

    #[test]
    fn work_grows_with_the_logarithm_of_the_scale() {
        assert_eq!(share(1, 10, 10).blocks, 10);
        assert_eq!(share(1, 1 << 40, 10).blocks, 47);
        assert!(share(1, 1 << 40, 100).slots() < 40);
        let wide = Exponent::new(1u8, BigUint::from(1u8) << 60u8);
        assert_eq!(Polya::new(&wide, NonZeroU32::MIN).err(), Some(NoiseError::TooWide));
    }
}
