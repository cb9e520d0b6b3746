//! The noise of each row of a release, in exact numbers.

use serde::{Deserialize, Serialize};

/// The noise that the honest members of an opening set add to a row in total.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RowNoise {
    /// None: the check row, and rows that reveal only public facts.
    None,
    /// Discrete Laplace: P(x) ∝ `e^(−|x|·above/below)`.
    Laplace {
        /// The numerator, not 0.
        above: u64,
        /// The denominator, not 0.
        below: u128,
    },
    /// `granule` times a Skellam variable of variance `above / below`, plus a uniform
    /// variable on the granule for each share.
    Skellam {
        /// Numerator of the variance in granules², not 0.
        above: u64,
        /// Its denominator, not 0.
        below: u64,
        /// Odd. With 1, the noise is a plain integer.
        granule: u64,
    },
    /// Discrete Gaussian of this variance: for a handful of controllers.
    Gaussian {
        /// Not 0.
        variance: u128,
    },
    /// Running totals: the noise of each controller's own share.
    Running(RunningNoise),
}

/// The noise of one controller's share of a row's running totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningNoise {
    /// Standard deviation of a seed, in units of `2^−(fraction_bits + fine_bits)`.
    pub seed_scale: u128,
    /// f: results are in units of 2^−f, so tokens and sums are multiplied by 2^f.
    pub fraction_bits: u8,
    /// How many bits finer the seeds' grid is.
    pub fine_bits: u8,
}

/// Slightly more than `64·ln 2`: larger noise has probability below 2^−64.
const TAIL: u128 = 46;

impl RowNoise {
    /// The noise of `members` shares, each sized for `honest`, exceeds this magnitude with
    /// probability below 2^−62 times ⌈members/honest⌉. A row holds its sums if the largest
    /// sum plus this is below 2^63.
    #[must_use]
    pub fn tail(&self, honest: u32, members: u32) -> u128 {
        let times = u128::from(members.div_ceil(honest.max(1)));
        match *self {
            RowNoise::None => 0,
            // At most that many Laplace variables, each within 46 scales.
            RowNoise::Laplace { above, below } => below
                .saturating_mul(TAIL)
                .div_ceil(u128::from(above.max(1)))
                .saturating_add(1)
                .saturating_mul(times),
            RowNoise::Skellam { above, below, granule } => {
                let variance = u128::from(above).div_ceil(u128::from(below.max(1)));
                let unit = bernstein(variance.saturating_mul(times));
                let smooth = u128::from(granule).saturating_mul(u128::from(members));
                unit.saturating_mul(u128::from(granule)).saturating_add(smooth)
            }
            RowNoise::Gaussian { variance } => bernstein(variance.saturating_mul(times)),
            RowNoise::Running(own) => own.tail(1, members),
        }
    }

    /// f: how many bits finer the row's unit is than that of its sums.
    #[must_use]
    pub const fn fraction_bits(&self) -> u32 {
        match self {
            RowNoise::Running(own) => own.fraction_bits as u32,
            _ => 0,
        }
    }
}

impl RunningNoise {
    /// The noise of totals over `windows`, in units of 2^−f, exceeds this with probability
    /// below 2^−62, whichever openings of `members` were lost. ‖b‖² is below 5 up to 2^17
    /// windows, and lost shares omit differences over spans that cover at most all windows.
    /// These are correlated: together they vary by at most two seeds per window, though a
    /// single one may vary by six.
    #[must_use]
    pub fn tail(&self, windows: u32, members: u32) -> u128 {
        let seed = (self.seed_scale >> self.fine_bits.min(127)).saturating_add(1);
        let times = (5 + 2 * u128::from(windows)).saturating_mul(members.into());
        bernstein(seed.saturating_mul(seed).saturating_mul(times))
    }
}

/// A t with t²/(2(V + t/3)) ≥ 46, which bounds the tails of Skellam and discrete Gaussian
/// variables of variance V.
fn bernstein(variance: u128) -> u128 {
    let deviations = variance.saturating_mul(2 * TAIL).isqrt();
    deviations.saturating_add(1 + 2 * TAIL / 3)
}
