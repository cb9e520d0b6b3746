//! Small numbers with public probabilities. A draw compares one random number with every
//! entry of a table of cumulative thresholds.

use super::coins::{Coins, below};
use super::{CUT, NoiseError};
use num_bigint::BigUint;

/// Bits of a weight relative to the largest one.
const WEIGHT_BITS: u64 = 320;
/// Largest mean of a Poisson table. A larger one needs a coarser granule.
const MAX_MEAN: u32 = 1 << 22;

/// `⌊2^128 · P[X ≤ first + i]⌋` for all but the last value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    first: u64,
    thresholds: Vec<u128>,
}

impl Table {
    /// Makes a table of values from `first` on, in proportion to their weights.
    pub(super) fn new(first: u64, weights: &[BigUint]) -> Table {
        let total: BigUint = weights.iter().sum();
        let mut sum = BigUint::ZERO;
        let mut thresholds: Vec<u128> = weights
            .iter()
            .map(|weight| {
                sum += weight;
                u128::try_from((&sum << 128u8) / &total).unwrap_or(u128::MAX)
            })
            .collect();
        thresholds.pop();
        Table { first, thresholds }
    }

    /// Makes a Poisson table with mean `above / below`, cut where less than 2^−112 of the
    /// distribution is left. Each step away from the mode lowers the weight by a factor,
    /// so the omitted weight is at most 2^16 times the last kept one.
    ///
    /// # Errors
    /// If the mean exceeds 2^22.
    pub(super) fn poisson(above: &BigUint, below: &BigUint) -> Result<Table, NoiseError> {
        if *above >= below * MAX_MEAN {
            return Err(NoiseError::TooWide);
        }
        let mode = u64::try_from(above / below).unwrap_or_default();
        let one = BigUint::from(1u8) << WEIGHT_BITS;
        let least = BigUint::from(1u8) << (WEIGHT_BITS - u64::from(CUT) - 17);
        let mut weights = Vec::new();
        let (mut weight, mut k) = (one.clone(), mode);
        while k > 0 {
            weight = weight * below * k / above;
            if weight < least {
                break;
            }
            k -= 1;
            weights.push(weight.clone());
        }
        let first = k;
        weights.reverse();
        let (mut weight, mut k) = (one, mode);
        while weight >= least {
            weights.push(weight.clone());
            k += 1;
            weight = weight * above / (below * k);
        }
        Ok(Table::new(first, &weights))
    }

    /// The number of entries that a draw compares with.
    pub(super) fn comparisons(&self) -> usize {
        self.thresholds.len()
    }

    /// The largest value.
    pub(super) fn last(&self) -> u64 {
        self.first + self.thresholds.len() as u64
    }

    /// Draws one value. Uses 16 random bytes and reads every entry.
    #[inline]
    pub(super) fn draw(&self, coins: &mut Coins<'_>) -> u64 {
        let uniform = coins.uniform();
        let beyond = |threshold: &u128| u64::from((!below(uniform, *threshold)).unwrap_u8());
        self.first + self.thresholds.iter().map(beyond).sum::<u64>()
    }

    /// P[X = x].
    #[cfg(test)]
    pub(super) fn chance(&self, x: u64) -> f64 {
        let Some(i) = x.checked_sub(self.first).filter(|_| x <= self.last()) else { return 0.0 };
        let i = usize::try_from(i).unwrap_or_default();
        let up_to = |i: usize| self.thresholds.get(i).copied().unwrap_or(u128::MAX);
        let lower = if i == 0 { 0 } else { up_to(i - 1) };
        (up_to(i) - lower) as f64 / 2f64.powi(128)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poisson(above: u32, below: u32) -> Table {
        Table::poisson(&above.into(), &below.into()).unwrap_or_else(|_| unreachable!())
    }

    #[test]
    fn tables_hold_the_poisson_distribution() {
        for (above, below) in [(1u32, 3u32), (1, 100), (7, 2), (50, 1), (20_000, 3)] {
            let (table, mean) = (poisson(above, below), f64::from(above) / f64::from(below));
            let mut ln_factorial = 0.0;
            for k in 0..=table.last() {
                ln_factorial += if k > 1 { (k as f64).ln() } else { 0.0 };
                let exact = (k as f64 * mean.ln() - mean - ln_factorial).exp();
                assert!((table.chance(k) - exact).abs() < 1e-8 * exact.max(1e-3), "{mean} {k}");
            }
        }
    }

    /// Checks the bound that δ relies on against the exact series, far beyond the table.
    #[test]
    fn the_omitted_weight_of_a_table_is_below_the_bound() {
        for (above, below) in [(1u32, 1_000_000u32), (1, 3), (7, 2), (60, 1), (1000, 1)] {
            let (table, mean) = (poisson(above, below), f64::from(above) / f64::from(below));
            let ln_pmf = |k: u64| {
                let ln_factorial: f64 = (2..=k).map(|i| (i as f64).ln()).sum();
                k as f64 * mean.ln() - mean - ln_factorial
            };
            let beyond: f64 = (table.last() + 1..table.last() + 200).map(|k| ln_pmf(k).exp()).sum();
            let before: f64 = (0..table.first).map(|k| ln_pmf(k).exp()).sum();
            assert!(beyond + before < 2f64.powi(-112), "{mean}: {beyond} {before}");
        }
    }

    #[test]
    fn a_mean_beyond_the_bound_is_rejected() {
        let below = BigUint::from(1u8);
        assert_eq!(Table::poisson(&BigUint::from(MAX_MEAN), &below), Err(NoiseError::TooWide));
    }
}
