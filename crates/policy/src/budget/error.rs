//! What error noise makes, before a query runs. Told, never decided on: floats.

use super::{RowNoise, RunningNoise};
use serde::{Deserialize, Serialize};

use crate::select::{Bins, ByOutput, HistogramOutput, MomentOutput, Place, ReleasePlan, Statistic};

/// Quantile of a normal variable's size, in standard deviations.
const NORMAL_95: f64 = 1.96;
/// Of a Laplace variable's: ln 20 / √2, rounded up. Sums of more shares than
/// the honest floor needs lie between the two.
const LAPLACE_95: f64 = 2.12;
/// Up to this standard deviation whole numbers matter: quantiles are the exact ones.
const NARROW: f64 = 8.0;

/// The noise of one row: standard deviation, and what 95 of 100 draws stay within.
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
    /// In the column's own unit; of the worst bin where it has several. None
    /// where it depends on the data.
    pub spread: Option<Spread>,
}

/// Who adds shares of noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shared {
    /// How many honest ones each share is sized for.
    pub honest: u32,
    /// How many add one; of running totals all that ever did.
    pub members: u32,
    /// Windows in the totals; of no meaning for others.
    pub windows: u32,
}

impl Spread {
    fn of(deviation: f64, quantile: f64) -> Spread {
        Spread { deviation, within: deviation * quantile }
    }

    /// The sum of independent noises, each `weight` times; the wider quantile.
    fn sum(parts: impl Iterator<Item = (Spread, f64)>) -> Spread {
        let (mut variance, mut quantile) = (0.0, NORMAL_95);
        for (part, weight) in parts {
            variance += (part.deviation * weight).powi(2);
            if part.deviation > 0.0 {
                quantile = f64::max(quantile, part.within / part.deviation);
            }
        }
        Spread::of(variance.sqrt(), quantile)
    }

    fn scaled(self, factor: f64) -> Spread {
        Spread { deviation: self.deviation * factor, within: self.within * factor }
    }
}

/// The noise of a row when `members` controllers add shares sized for `honest`.
#[must_use]
pub fn row_spread(noise: &RowNoise, honest: u32, members: u32) -> Spread {
    let (members, honest) = (f64::from(members), f64::from(honest.max(1)));
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
        // Of the first total.
        RowNoise::Running(own) => running(&own, 1.0, members),
    }
}

/// The least number that 95 of 100 draws stay within, of the difference of two Pólya
/// variables of this shape and q = e^−x: with shape 1 the discrete Laplace distribution,
/// of which 2·q^(w + 1)/(1 + q) is beyond w.
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

/// The noise of a row's running total after the last of `windows`.
#[must_use]
pub fn running_spread(noise: &RunningNoise, windows: u32, members: u32) -> Spread {
    running(noise, norm(windows), members.into())
}

/// `Σ C(2k, k)²/16^k` over k < `windows`.
fn norm(windows: u32) -> f64 {
    let next = |b: &mut f64, k: u32| {
        let own = *b;
        *b *= f64::from(2 * k + 1) / f64::from(2 * k + 2);
        Some(own * own)
    };
    (0..windows.min(1 << 20)).scan(1.0, next).sum()
}

fn running(noise: &RunningNoise, norm: f64, members: f64) -> Spread {
    let grid = 2f64.powi(-i32::from(noise.fraction_bits));
    let seed = noise.seed_scale as f64 * 2f64.powi(-i32::from(noise.fine_bits)) * grid;
    let one = seed * seed * norm + grid * grid / 12.0;
    Spread::of((one * members).sqrt(), NORMAL_95)
}

/// The errors of a query's columns when these controllers add shares, and there are
/// `values` values in a window, or in all that running totals add up.
#[must_use]
pub fn expected_errors(
    select: &ReleasePlan,
    noise: &[RowNoise],
    shared: Shared,
    values: u64,
) -> Vec<OutputError> {
    let Shared { honest, members, windows } = shared;
    let totals = norm(windows);
    errors(select, values, |row| match noise.get(row) {
        Some(RowNoise::Running(own)) => running(own, totals, members.into()),
        Some(own) => row_spread(own, honest, members),
        None => Spread::default(),
    })
}

fn errors(select: &ReleasePlan, values: u64, row: impl Fn(usize) -> Spread) -> Vec<OutputError> {
    let cell = |cell: &u16| match select.cells.get(usize::from(*cell)) {
        Some(Place::Whole { row: own } | Place::Digit { row: own, .. }) => row((*own).into()),
        Some(Place::Limbs { low, high }) => {
            let parts = [(row((*low).into()), 1.0), (row((*high).into()), 2f64.powi(32))];
            Spread::sum(parts.into_iter())
        }
        None => Spread::default(),
    };
    let item = |statistic: &Statistic| item_error(statistic, values, &cell);
    let of = |item: &crate::select::SelectItem, spread| OutputError {
        alias: item.alias.clone(),
        spread,
    };
    select.items.iter().map(|own| of(own, item(&own.statistic))).collect()
}

fn item_error(
    statistic: &Statistic,
    values: u64,
    cell: &impl Fn(&u16) -> Spread,
) -> Option<Spread> {
    let unit = |scale: u8| 10f64.powi(-i32::from(scale));
    let all = |cells: &[u16]| Spread::sum(cells.iter().map(|own| (cell(own), 1.0)));
    let worst = |bins: &[Vec<u16>]| {
        bins.iter().map(|bin| all(bin)).fold(Spread::default(), |worst, own| {
            if own.deviation > worst.deviation { own } else { worst }
        })
    };
    match statistic {
        Statistic::Sum { sum, scale, .. } | Statistic::SideSum { sum, scale, .. } => {
            Some(cell(sum).scaled(unit(*scale)))
        }
        Statistic::Count { count, .. } => Some(cell(count)),
        // Of a count that noise leaves alone; a noisy one adds to it.
        Statistic::Moments { output: MomentOutput::Mean, sum, count, scale, .. }
            if values > 0 && cell(count).deviation == 0.0 =>
        {
            Some(cell(sum).scaled(unit(*scale) / values as f64))
        }
        Statistic::Histogram { output: HistogramOutput::Counts, bins: Bins { cells, .. } } => {
            Some(worst(cells))
        }
        Statistic::By { output: ByOutput::Count, counts, .. } => Some(worst(&counts.cells)),
        Statistic::By { output: ByOutput::Sum, sums: Some(sums), scale, .. } => {
            Some(worst(sums).scaled(unit(*scale)))
        }
        Statistic::Frequency { cells } => Some(worst(std::slice::from_ref(cells))),
        _ => None,
    }
}
