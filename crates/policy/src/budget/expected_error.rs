//! The noise of rows and cells. It is for display only, so it uses floats.

use super::{RowNoise, RunningNoise};
use serde::{Deserialize, Serialize};

use crate::select::{ReleasePlan, SumLocation};

/// 95 % quantile of the magnitude of a normal variable, in standard deviations.
const NORMAL_95: f64 = 1.96;
/// The same of a Laplace variable: ln 20 / √2, rounded up. Sums of more shares than the
/// minimum of honest controllers lie between the two.
const LAPLACE_95: f64 = 2.12;
/// Up to this standard deviation integers matter, so quantiles are computed exactly.
const NARROW: f64 = 8.0;

/// The noise of a row: its standard deviation and its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// σ.
    pub deviation: f64,
    /// Half the width of the 95 % interval around the true value.
    pub within: f64,
}

/// The error of one output column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputError {
    /// The column.
    pub alias: String,
    /// In the unit of the column, for the worst bin if it has several. `None` if it depends
    /// on data that is not known.
    pub spread: Option<Spread>,
    /// Whether it is a bound, for values as far from zero as the schema allows.
    #[serde(default)]
    pub at_most: bool,
}

/// The shares of noise that controllers add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoiseShares {
    /// The number of honest controllers that each share is sized for.
    pub honest: u32,
    /// The number of controllers that add a share. For running totals, all that ever did.
    pub members: u32,
    /// The number of windows in running totals. Ignored without them.
    pub windows: u32,
    /// For running totals, the variance of all shares that were made but are in no result, in
    /// thousandths of a seed's variance ([`share_variance`]).
    pub lost: u64,
}

impl Spread {
    fn of(deviation: f64, quantile: f64) -> Spread {
        Spread { deviation, within: deviation * quantile }
    }

    /// The sum of independent noises, each multiplied by `weight`, with the wider quantile.
    pub(super) fn sum(parts: impl Iterator<Item = (Spread, f64)>) -> Spread {
        let (mut variance, mut quantile) = (0.0, NORMAL_95);
        for (part, weight) in parts {
            variance += (part.deviation * weight).powi(2);
            if part.deviation > 0.0 {
                quantile = f64::max(quantile, part.within / part.deviation);
            }
        }
        Spread::of(variance.sqrt(), quantile)
    }

    pub(super) fn scaled(self, factor: f64) -> Spread {
        Spread { deviation: self.deviation * factor, within: self.within * factor }
    }
}

/// The noise of a row with these shares. For running totals, that of the last total.
#[must_use]
pub fn row_spread(noise: &RowNoise, shared: NoiseShares) -> Spread {
    let (members, honest) = (f64::from(shared.members), f64::from(shared.honest.max(1)));
    match *noise {
        RowNoise::None => Spread::default(),
        RowNoise::Laplace { above, below } => {
            // 2q/(1 − q)² = 1/(cosh x − 1) = 1/(2·sinh²(x/2)).
            let x = above as f64 / below as f64;
            let deviation = (members / honest / 2.0).sqrt() / (x / 2.0).sinh();
            match deviation <= NARROW {
                true => Spread { deviation, within: narrow(x, members / honest) },
                false => Spread::of(deviation, LAPLACE_95),
            }
        }
        RowNoise::Skellam { above, below, granule } => {
            let (granule, variance) = (granule as f64, above as f64 / below.max(1) as f64);
            let smooth = members * (granule * granule - 1.0) / 12.0;
            let variance = granule * granule * variance * members / honest + smooth;
            Spread::of(variance.sqrt(), NORMAL_95)
        }
        RowNoise::Gaussian { variance } => {
            Spread::of((variance as f64 * members / honest).sqrt(), NORMAL_95)
        }
        RowNoise::Running(own) => running(&own, shared),
    }
}

/// The 95 % interval of the difference of two Pólya variables of this shape with q = e^−x.
/// With shape 1 this is the discrete Laplace distribution, of which 2·q^(w + 1)/(1 + q) is
/// beyond w.
fn narrow(x: f64, shape: f64) -> f64 {
    let q = (-x).exp();
    let mut one = vec![(1.0 - q).powf(shape)];
    let (mut next, mut sum, mut k) = (one[0], one[0], 0.0);
    while sum < 1.0 - 1e-12 && k < 4096.0 {
        k += 1.0;
        next *= q * (shape + k - 1.0) / k;
        sum += next;
        one.push(next);
    }
    let apart = |by: usize| one.iter().skip(by).zip(&one).map(|(a, b)| a * b).sum::<f64>();
    let (mut within, mut covered) = (0, apart(0));
    while covered < 0.95 && within < one.len() {
        within += 1;
        covered += 2.0 * apart(within);
    }
    within as f64
}

/// b_k = C(2k, k)/4^k, for as many windows as totals can have.
fn coefficients() -> impl Iterator<Item = f64> {
    (0..1u32 << 20).scan(1.0, |next, k| {
        let own = *next;
        *next *= f64::from(2 * k + 1) / f64::from(2 * k + 2);
        Some(own)
    })
}

/// `‖b‖²` over this number of windows.
fn norm(windows: u32) -> f64 {
    coefficients().take(windows as usize).map(|own| own * own).sum()
}

/// The variance of a controller's share of the window at index `place`, in thousandths of a
/// seed's variance, rounded up. The share is the difference to that of `last`, if any.
#[must_use]
pub fn share_variance(place: u32, last: Option<u32>) -> u64 {
    let Some(apart) = last.and_then(|last| place.checked_sub(last)) else {
        return thousandths(norm(place.saturating_add(1)));
    };
    let before = std::iter::repeat_n(0.0, apart as usize).chain(coefficients());
    let both = coefficients().zip(before).take(place as usize + 1);
    let sum: f64 = both.map(|(own, before)| (own - before).powi(2)).sum();
    thousandths(sum)
}

/// Rounded up.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a sum of squares below 2^21, and casts saturate"
)]
fn thousandths(sum: f64) -> u64 {
    (sum * 1000.0).ceil() as u64
}

/// An upper bound on [`share_variance`] for any last share. Weights of totals are above zero,
/// so a difference varies by no more than both, of which the later varies more.
#[must_use]
pub fn max_share_variance(place: u32) -> u64 {
    share_variance(place, None).saturating_mul(2)
}

/// Lost shares leave their differences in the totals. The differences of one controller are
/// correlated such that the sum of their variances is an upper bound.
fn running(noise: &RunningNoise, shared: NoiseShares) -> Spread {
    let grid = 2f64.powi(-i32::from(noise.fraction_bits));
    let seed = noise.seed_scale as f64 * 2f64.powi(-i32::from(noise.fine_bits)) * grid;
    let members = f64::from(shared.members);
    let seeds = norm(shared.windows) * members + shared.lost as f64 / 1000.0;
    Spread::of((seed * seed * seeds + grid * grid / 12.0 * members).sqrt(), NORMAL_95)
}

/// The noise of each of a plan's cells with these shares.
pub(super) fn cell_spreads(
    select: &ReleasePlan,
    noise: &[RowNoise],
    shared: NoiseShares,
) -> Vec<Spread> {
    // Rows of equal noise are many and beside each other.
    let mut rows: Vec<Spread> = Vec::with_capacity(noise.len());
    for (at, own) in noise.iter().enumerate() {
        let before = at.checked_sub(1).filter(|before| noise.get(*before) == Some(own));
        let known = before.and_then(|before| rows.get(before)).copied();
        rows.push(known.unwrap_or_else(|| row_spread(own, shared)));
    }
    let row = |row: u16| rows.get(usize::from(row)).copied().unwrap_or_default();
    let cell = |place: &SumLocation| match *place {
        SumLocation::Whole { row: own } | SumLocation::Digit { row: own, .. } => row(own),
        SumLocation::Limbs { low, high } => {
            Spread::sum([(row(low), 1.0), (row(high), 2f64.powi(32))].into_iter())
        }
    };
    select.cells.iter().map(cell).collect()
}

/// Whether noise has the peak and the tails of a Laplace variable.
pub(super) fn is_peaked(noise: Spread) -> bool {
    noise.within > noise.deviation * f64::midpoint(NORMAL_95, LAPLACE_95)
}
