//! The noise of each row of a release, in exact numbers.

use serde::{Deserialize, Serialize};

/// Noise that the honest members of an opening set add to one row in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RowNoise {
    /// None: the check row, and rows that reveal only what is public.
    None,
    /// Discrete Laplace: P(x) ∝ `e^(−|x|·above/below)`.
    Laplace {
        /// Above the line; not 0.
        above: u64,
        /// Below the line; not 0.
        below: u128,
    },
    /// `granule` times a Skellam variable of the variance `above / below`, plus
    /// a uniform one on the granule for each share.
    Skellam {
        /// Variance in granules², above the line; not 0.
        above: u64,
        /// Below the line; not 0.
        below: u64,
        /// Odd; 1: integers as they are.
        granule: u64,
    },
    /// Discrete Gaussian of this variance: for a handful of controllers.
    Gaussian {
        /// Not 0.
        variance: u128,
    },
}

/// The noise of one controller's share of a row's running totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningNoise {
    /// Standard deviation of a seed, in units of `2^−(fraction_bits + fine_bits)`.
    pub seed_scale: u128,
    /// f: results are in units of 2^−f, so tokens and sums are multiplied by 2^f.
    pub fraction_bits: u8,
    /// How much finer the seeds' grid is.
    pub fine_bits: u8,
}
