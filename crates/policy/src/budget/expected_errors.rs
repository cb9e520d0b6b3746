//! The error from noise in each column, given the sums that it is added to. It is for display
//! only, so it uses floats.

use super::RowNoise;
use super::expected_error::{NoiseShares, OutputError, Spread, cell_spreads, is_peaked};
use crate::select::{
    Bins, ByOutput, CellRef, HistogramOutput, MomentOutput, RegressionOutput, ReleasePlan,
    Statistic,
};

/// The fourth moment over σ⁴ of a Laplace variable, and of a normal one.
const LAPLACE_KURTOSIS: f64 = 6.0;
const NORMAL_KURTOSIS: f64 = 3.0;
/// Share of a standard deviation over which slopes are measured.
const STEP: f64 = 0.125;

/// The errors of a query's columns with these shares of noise.
///
/// `sums` are the sums of the plan's cells, exact or as released. A sum that is not known is NaN or
/// missing. Columns that are linear in the sums do not need it. Others have no error then. Errors of
/// quotients, such as means, are exact up to the fourth power of the noise beside the sums.
#[must_use]
pub fn expected_errors(
    select: &ReleasePlan,
    noise: &[RowNoise],
    shared: NoiseShares,
    sums: &[f64],
) -> Vec<OutputError> {
    let noise = cell_spreads(select, noise, shared);
    let cells = Cells { sums, noise: &noise };
    let of = |item: &crate::select::SelectItem| OutputError {
        alias: item.alias.clone(),
        at_most: false,
        spread: cells.error(&item.statistic),
    };
    select.items.iter().map(of).collect()
}

/// The sums of a release and the noise in each.
struct Cells<'a> {
    sums: &'a [f64],
    noise: &'a [Spread],
}

/// A sum with the noise in it.
#[derive(Clone, Copy)]
struct Noisy {
    sum: f64,
    noise: Spread,
}

impl Cells<'_> {
    fn cell(&self, cell: CellRef) -> Noisy {
        let at = usize::from(cell);
        let sum = self.sums.get(at).copied().unwrap_or(f64::NAN);
        Noisy { sum, noise: self.noise.get(at).copied().unwrap_or_default() }
    }

    /// The sum of several cells.
    fn bin(&self, cells: &[CellRef]) -> Noisy {
        let all = || cells.iter().map(|cell| self.cell(*cell));
        let noise = Spread::sum(all().map(|one| (one.noise, 1.0)));
        Noisy { sum: all().map(|one| one.sum).sum(), noise }
    }

    fn error(&self, statistic: &Statistic) -> Option<Spread> {
        let noise = |cell: &CellRef| self.cell(*cell).noise;
        match statistic {
            Statistic::Sum { sum, scale, .. } | Statistic::SideSum { sum, scale, .. } => {
                Some(noise(sum).scaled(unit(*scale)))
            }
            Statistic::Count { count, .. } => Some(noise(count)),
            Statistic::Moments { output, count, sum, squares, scale } => {
                let squares = squares.map(|cell| self.cell(cell));
                moments(*output, self.cell(*count), self.cell(*sum), squares, *scale)
            }
            Statistic::Histogram { output: HistogramOutput::Counts, bins } => {
                self.worst(&bins.cells)
            }
            Statistic::Histogram {
                output: HistogramOutput::Quantile { numerator, denominator },
                bins,
            } => self.quantile(f64::from(*numerator) / f64::from(*denominator), bins),
            Statistic::By { output, counts, sums, squares, scale } => {
                self.buckets(*output, counts, sums.as_deref(), squares.as_deref(), *scale)
            }
            Statistic::Regression { .. } => self.regression(statistic),
            Statistic::Frequency { cells } => self.smallest(cells),
            Statistic::Histogram { .. }
            | Statistic::Any { .. }
            | Statistic::All { .. }
            | Statistic::Distinct { .. } => None,
        }
    }

    /// The widest noise of these sums of cells.
    fn worst(&self, bins: &[Vec<CellRef>]) -> Option<Spread> {
        Some(widest(bins.iter().map(|cells| self.bin(cells).noise)).unwrap_or_default())
    }

    /// The error of the smallest of these cells. Cells whose sums are not known count as equal, so that each
    /// can become the smallest.
    fn smallest(&self, cells: &[CellRef]) -> Option<Spread> {
        let all: Vec<Noisy> = cells.iter().map(|cell| self.cell(*cell)).collect();
        let widest = widest(all.iter().map(|own| own.noise))?;
        if all.len() == 1 || widest.deviation <= 0.0 {
            return Some(widest);
        }
        let truth = all.iter().map(|own| own.sum).fold(f64::INFINITY, f64::min);
        let is_known = all.iter().all(|own| own.sum.is_finite());
        let beyond = |own: &Noisy, error: f64| {
            let above = if is_known { own.sum - truth } else { 0.0 };
            share_beyond(own.noise, error - above)
        };
        // The smallest is above a number if all are.
        let beyond = |error: f64| all.iter().map(|own| beyond(own, error)).product::<f64>();
        // E[x²] = ∫ 2·t·P(|x| > t) dt, up to 16 deviations.
        let step = widest.deviation / 32.0;
        let (mut square, mut within) = (0.0, 0.0);
        for at in 0..512 {
            let error = (f64::from(at) + 0.5) * step;
            let outside = beyond(error) + 1.0 - beyond(-error);
            square += 2.0 * error * outside * step;
            if outside > 0.05 {
                within = error + step / 2.0;
            }
        }
        Some(Spread { deviation: square.sqrt(), within })
    }

    /// The widest error of a statistic over the buckets that have one.
    fn buckets(
        &self,
        output: ByOutput,
        counts: &Bins,
        sums: Option<&[Vec<CellRef>]>,
        squares: Option<&[Vec<CellRef>]>,
        scale: u8,
    ) -> Option<Spread> {
        let moment = match output {
            ByOutput::Count => return self.worst(&counts.cells),
            ByOutput::Sum => return self.worst(sums?).map(|own| own.scaled(unit(scale))),
            ByOutput::Mean => MomentOutput::Mean,
            ByOutput::Variance => MomentOutput::Variance,
        };
        let of = |(at, cells): (usize, &Vec<CellRef>)| {
            let sum = self.bin(sums?.get(at)?);
            let squares = squares.and_then(|all| all.get(at)).map(|cells| self.bin(cells));
            moments(moment, self.bin(cells), sum, squares, scale)
        };
        widest(counts.cells.iter().enumerate().filter_map(of))
    }

    fn regression(&self, statistic: &Statistic) -> Option<Spread> {
        let Statistic::Regression { output, count, x, y, xx, xy, yy, x_scale, y_scale } = statistic
        else {
            return None;
        };
        let absent = Noisy { sum: 0.0, noise: Spread::default() };
        let optional = |cell: &Option<CellRef>| cell.map_or(absent, |cell| self.cell(cell));
        let cell = |cell: &CellRef| self.cell(*cell);
        let all = [cell(count), cell(x), cell(y), optional(xx), cell(xy), optional(yy)];
        let of = |[n, x, y, xx, xy, yy]: [f64; 6]| {
            let (both, of_x, of_y) = (n * xy - x * y, n * xx - x * x, n * yy - y * y);
            match output {
                RegressionOutput::Slope => both / of_x,
                RegressionOutput::Intercept => (y - both / of_x * x) / n,
                RegressionOutput::RSquared => both * both / (of_x * of_y),
                RegressionOutput::Covariance => both / (n * n),
            }
        };
        let unit = match output {
            RegressionOutput::Slope => unit(*y_scale) / unit(*x_scale),
            RegressionOutput::Intercept => unit(*y_scale),
            RegressionOutput::RSquared => 1.0,
            RegressionOutput::Covariance => unit(*x_scale) * unit(*y_scale),
        };
        smooth(all, of).map(|own| own.scaled(unit))
    }

    /// The error of a quantile that is read from noisy bins, of which those below zero count as
    /// empty. It is returned as the edge of a bin, so its error is that of a few edges, each with
    /// its probability.
    fn quantile(&self, q: f64, bins: &Bins) -> Option<Spread> {
        let kept: Vec<(f64, f64)> = bins.cells.iter().map(|own| kept(self.bin(own))).collect();
        let sums: Vec<f64> = bins.cells.iter().map(|own| self.bin(own).sum.max(0.0)).collect();
        let total: f64 = sums.iter().sum();
        // A NaN is not above 0 either.
        if !(total > 0.0 && kept.iter().all(|(mean, _)| mean.is_finite())) {
            return None;
        }
        let mut below = 0.0;
        let reaches = |own: &f64| {
            below += own;
            below >= q * total
        };
        let truth = bins.edges.get(sums.iter().position(reaches)?).copied()? as f64;
        let errors = chances(q, &kept).into_iter().zip(&bins.edges);
        let mut errors: Vec<(f64, f64)> =
            errors.map(|(chance, edge)| ((*edge as f64 - truth).abs(), chance)).collect();
        let squares: f64 = errors.iter().map(|(error, chance)| error * error * chance).sum();
        errors.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut covered = 0.0;
        let enough = |(_, chance): &&(f64, f64)| {
            covered += chance;
            covered >= 0.95
        };
        let within = errors.iter().find(enough).or(errors.last()).map_or(0.0, |own| own.0);
        Some(Spread { deviation: squares.sqrt(), within }.scaled(unit(bins.scale)))
    }
}

/// A bound on the error of a quantile's rank, as a share of `values` values: the returned quantile
/// is that of a share which is at most this far from the requested one, in 95 of 100 cases.
/// Counts below zero are taken for empty, so empty bins count for a little.
#[must_use]
pub fn rank_margin(
    select: &ReleasePlan,
    noise: &[RowNoise],
    shared: NoiseShares,
    bins: &Bins,
    values: f64,
) -> f64 {
    let noise = cell_spreads(select, noise, shared);
    let cells = Cells { sums: &[], noise: &noise };
    let all = Spread::sum(bins.cells.iter().map(|own| (cells.bin(own).noise, 1.0)));
    // E[max(0, x)] is at most 0.4 σ.
    let lifted: f64 = bins.cells.iter().map(|own| 0.4 * cells.bin(own).noise.deviation).sum();
    (all.within + lifted) / values.max(1.0)
}

/// The probability that a quantile is in each bin, from the mean and variance of each bin's
/// count. It is in the first bin up to which the counts reach the share q of all. Their
/// surplus is nearly normal, since it sums over all bins.
fn chances(q: f64, counts: &[(f64, f64)]) -> Vec<f64> {
    let (mut mean, mut variance) = (0.0, 0.0);
    for (own, spread) in counts {
        mean -= q * own;
        variance += q * q * spread;
    }
    let mut reached = 0.0;
    let mut chances = Vec::with_capacity(counts.len());
    for (position, (own, spread)) in counts.iter().enumerate() {
        mean += own;
        variance += ((1.0 - q).powi(2) - q * q) * spread;
        // All counts together always reach their share.
        let by_here = match position + 1 == counts.len() {
            true => 1.0,
            false => above_zero(mean, variance).max(reached),
        };
        chances.push(by_here - reached);
        reached = by_here;
    }
    chances
}

/// The probability that a normal variable is above zero.
fn above_zero(mean: f64, variance: f64) -> f64 {
    if variance <= 0.0 {
        return if mean >= 0.0 { 1.0 } else { 0.0 };
    }
    normal(mean / variance.sqrt())
}

/// The probability that noise is greater than a number.
fn share_beyond(noise: Spread, number: f64) -> f64 {
    if !is_peaked(noise) {
        return above_zero(-number, noise.deviation.powi(2));
    }
    let half = (-number.abs() * std::f64::consts::SQRT_2 / noise.deviation).exp() / 2.0;
    if number > 0.0 { half } else { 1.0 - half }
}

/// The normal distribution function, within 1.5e-7 (Abramowitz, Stegun 1964, 7.1.26).
fn normal(x: f64) -> f64 {
    let z = x.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let series = [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592];
    let tail = series.iter().fold(0.0, |sum, own| (sum + own) * t) * (-z * z).exp() / 2.0;
    if x >= 0.0 { 1.0 - tail } else { tail }
}

/// Mean and variance of a count with noise, where less than zero counts as zero.
fn kept(own: Noisy) -> (f64, f64) {
    let (count, deviation) = (own.sum.max(0.0), own.noise.deviation);
    if own.sum.is_nan() {
        return (f64::NAN, f64::NAN);
    }
    if deviation <= 0.0 {
        return (count, 0.0);
    }
    let (mean, square) = if is_peaked(own.noise) {
        let b = deviation / std::f64::consts::SQRT_2;
        let below = (-count / b).exp();
        (count + b / 2.0 * below, count * count + 2.0 * b * b - b * b * below)
    } else {
        let z = count / deviation;
        let (density, share) =
            ((-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt() * deviation, normal(z));
        (count * share + density, (count * count + deviation * deviation) * share + count * density)
    };
    (mean, (square - mean * mean).max(0.0))
}

fn moments(
    output: MomentOutput,
    count: Noisy,
    sum: Noisy,
    squares: Option<Noisy>,
    scale: u8,
) -> Option<Spread> {
    let mean = |[n, s]: [f64; 2]| if n > 0.0 { s / n } else { f64::NAN };
    let variance = |[n, s, q]: [f64; 3]| if n > 0.0 { q / n - (s / n).powi(2) } else { f64::NAN };
    let own = match (output, squares) {
        // Over an exact count, the sum itself does not matter.
        (MomentOutput::Mean, _) if count.noise.deviation <= 0.0 => {
            smooth([count, Noisy { sum: 0.0, ..sum }], mean)
        }
        (MomentOutput::Mean, _) => smooth([count, sum], mean),
        (_, None) => None,
        (MomentOutput::Variance, Some(squares)) => {
            smooth([count, sum, squares], variance).map(|own| own.scaled(unit(scale)))
        }
        (MomentOutput::Deviation, Some(squares)) => {
            smooth([count, sum, squares], |all| variance(all).sqrt())
        }
    };
    own.map(|own| own.scaled(unit(scale)))
}

/// The error of a smooth function of noisy sums. Slopes alone give it while noise is small beside
/// the sums, and fall short of it otherwise: by 3 % for the deviation of values whose variance is
/// known within 24 %. So the function is evaluated on a grid, where it has a value there.
fn smooth<const N: usize>(at: [Noisy; N], of: impl Fn([f64; N]) -> f64) -> Option<Spread> {
    let sums = at.map(|own| own.sum);
    let mut parts = Vec::with_capacity(N);
    for (position, Noisy { noise, .. }) in at.iter().enumerate() {
        let step = noise.deviation * STEP;
        if step <= 0.0 {
            continue;
        }
        let (mut above, mut below) = (sums, sums);
        above.get_mut(position).into_iter().for_each(|own| *own += step);
        below.get_mut(position).into_iter().for_each(|own| *own -= step);
        parts.push((*noise, (of(above) - of(below)) / (2.0 * step)));
    }
    let known = of(sums).is_finite() && parts.iter().all(|(_, slope)| slope.is_finite());
    let first = known.then(|| Spread::sum(parts.into_iter()))?;
    let grid = Some(on_grid(&at, &of, of(sums))).filter(|square| square.is_finite());
    Some(match grid {
        Some(square) if first.deviation > 0.0 => first.scaled(square.sqrt() / first.deviation),
        _ => first,
    })
}

/// The mean of the squared error over a grid of three points for each sum. The grid has the first
/// five moments of the noise, so the result is exact up to its fourth power.
fn on_grid<const N: usize>(at: &[Noisy; N], of: &impl Fn([f64; N]) -> f64, truth: f64) -> f64 {
    let mut points = vec![(at.map(|own| own.sum), 1.0)];
    for (position, own) in at.iter().enumerate().filter(|(_, own)| own.noise.deviation > 0.0) {
        let tailed = if is_peaked(own.noise) { LAPLACE_KURTOSIS } else { NORMAL_KURTOSIS };
        let (step, outer) = (own.noise.deviation * tailed.sqrt(), 0.5 / tailed);
        let three = [(0.0, 1.0 - 2.0 * outer), (step, outer), (-step, outer)];
        let moved = |(point, weight): ([f64; N], f64)| {
            three.map(|(by, part)| {
                let mut point = point;
                point.get_mut(position).into_iter().for_each(|own| *own += by);
                (point, weight * part)
            })
        };
        points = points.into_iter().flat_map(moved).collect();
    }
    let square = |(point, weight): ([f64; N], f64)| weight * (of(point) - truth).powi(2);
    points.into_iter().map(square).sum()
}

fn widest(all: impl Iterator<Item = Spread>) -> Option<Spread> {
    all.reduce(|worst, own| if own.deviation > worst.deviation { own } else { worst })
}

fn unit(scale: u8) -> f64 {
    10f64.powi(-i32::from(scale))
}
