//! From a requested privacy loss to the noise of each row and the cost for each attribute.

use super::amount::{Epsilon, Rho};
use super::convert::{last, max_rho};
use super::noise::{RowNoise, RunningNoise};
use super::running_totals::calibrate_running;
use super::sensitivity::{Change, RowGroup};
use crate::fraction::gcd;
use num_bigint::BigUint;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// Kinds of noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Mechanism {
    /// Discrete Laplace from Pólya shares: pure ε.
    Laplace,
    /// Skellam: zCDP.
    Skellam,
    /// Discrete Gaussian: zCDP, for a handful of controllers.
    Gaussian,
    /// Running totals by the square-root matrix mechanism: zCDP for all windows together.
    Matrix(Horizon),
}

/// The extent of running totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Horizon {
    /// Number of windows.
    pub windows: u32,
    /// Maximum number of windows that the events of one unit of protection span
    /// ([`windows_of`](super::windows_of)).
    pub touched: u32,
}

/// The cost of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cost {
    /// ε-differential privacy.
    Pure(Epsilon),
    /// ρ-zero-concentrated differential privacy.
    Concentrated(Rho),
}

/// A request for noise for one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoiseRequest {
    /// How noise is drawn.
    pub mechanism: Mechanism,
    /// ε of one window, in millionths. For running totals, ε of all windows together.
    pub micro_epsilon: u64,
    /// Its δ in units of 10^−18, 0 only for [`Mechanism::Laplace`].
    pub atto_delta: u64,
    /// Number of events of one unit of protection in one window
    /// ([`events_of`](super::events_of)).
    pub events: u128,
}

/// Noise for a release, and its cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// The noise of each row of the release.
    pub rows: Vec<RowNoise>,
    /// The cost of the whole release.
    pub cost: Cost,
    /// The cost for each attribute, ascending: that of the groups of rows that derive from it.
    /// A row that derives from two attributes is charged to both.
    pub charges: Vec<(u16, Cost)>,
}

/// No noise meets the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalibrationError {
    /// ε = 0.
    #[error("epsilon is 0, which leaves nothing to release; use a larger one")]
    NoEpsilon,
    /// Concentrated noise without δ.
    #[error(
        "running totals, Gaussian noise and Skellam noise need a delta above 0; set one, such as `delta = 1e-9`, or use Laplace noise in tumbling windows"
    )]
    NoDelta,
    /// More seeds than controllers can hold.
    #[error(
        "running totals of {rows} rows over {windows} windows need more than {MAX_SEEDS} seeds; use a shorter SIZE, a longer STEP or fewer columns"
    )]
    TooManySeeds {
        /// Rows with noise.
        rows: usize,
        /// Number of windows.
        windows: u32,
    },
    /// The loss is so small, or the sensitivity so large, that the noise does not fit.
    #[error("the noise would not fit in its words; use a larger epsilon or narrower bounds")]
    TooWide,
}

/// Maximum variance of Skellam noise, in granules². Shares are drawn from tables of its
/// square root.
const MAX_SKELLAM: u64 = 1 << 21;
/// Maximum rows times windows of running totals. Each has a seed of 16 bytes, which a
/// restarted controller expands again in about half a millisecond.
pub(super) const MAX_SEEDS: u64 = 1 << 18;
/// Maximum width of noise, which is drawn as signed words.
const MAX_WIDTH: u128 = 1 << 55;

/// Splits the requested loss evenly over the groups of rows, and sizes the noise.
///
/// # Errors
/// [`CalibrationError`] if no noise meets the request.
pub fn calibrate(
    request: &NoiseRequest,
    groups: &[RowGroup],
    outputs: usize,
) -> Result<Calibration, CalibrationError> {
    calibrate_for(request, groups, outputs, NonZeroU32::MIN)
}

/// The same, if every opening set has at least `honest` honest controllers. Running totals
/// size the seeds of each controller by that number, once for all windows.
///
/// # Errors
/// [`CalibrationError`] if no noise meets the request.
pub fn calibrate_for(
    request: &NoiseRequest,
    groups: &[RowGroup],
    outputs: usize,
    honest: NonZeroU32,
) -> Result<Calibration, CalibrationError> {
    if let Mechanism::Matrix(Horizon { windows, touched }) = request.mechanism {
        let sized = calibrate_running(request, groups, outputs, windows, touched, honest)?;
        let row = |row: Option<RunningNoise>| row.map_or(RowNoise::None, RowNoise::Running);
        let rows = sized.rows.into_iter().map(row).collect();
        return Ok(Calibration { rows, cost: sized.cost, charges: sized.charges });
    }
    if request.micro_epsilon == 0 {
        return Err(CalibrationError::NoEpsilon);
    }
    let count = u32::try_from(groups.len().max(1)).map_err(|_| CalibrationError::TooWide)?;
    let share = share_of(request, count)?;
    let mut rows = vec![RowNoise::None; outputs];
    let mut charges: BTreeMap<u16, Cost> = BTreeMap::new();
    for group in groups {
        let change = group.event.times(request.events).ok_or(CalibrationError::TooWide)?;
        let noise = match share {
            Cost::Pure(_) => laplace(request.micro_epsilon, count, change)?,
            Cost::Concentrated(rho) if request.mechanism == Mechanism::Gaussian => {
                gaussian(rho, change)?
            }
            Cost::Concentrated(rho) => skellam(rho, change, group.rows.len())?,
        };
        for row in &group.rows {
            rows.get_mut(usize::from(*row)).into_iter().for_each(|row| *row = noise);
        }
        for attribute in distinct(group) {
            let sum = charges.get(&attribute).map_or(share, |sum| sum.plus(share));
            charges.insert(attribute, sum);
        }
    }
    let cost = match share {
        Cost::Pure(_) => Cost::Pure(Epsilon::from_micro(request.micro_epsilon)),
        Cost::Concentrated(rho) => Cost::Concentrated(Rho(rho.0.saturating_mul(count.into()))),
    };
    Ok(Calibration { rows, cost, charges: charges.into_iter().collect() })
}

/// The attributes that a group derives from, each once.
pub(super) fn distinct(group: &RowGroup) -> impl Iterator<Item = u16> {
    let mut attributes: Vec<u16> = group.statistic.attributes().collect();
    attributes.dedup();
    attributes.into_iter()
}

/// The loss of each of `count` groups. ε is rounded up, since it is charged. ρ is rounded
/// down, since it determines the noise.
pub(super) fn share_of(request: &NoiseRequest, count: u32) -> Result<Cost, CalibrationError> {
    if request.mechanism == Mechanism::Laplace {
        let above = BigUint::from(request.micro_epsilon);
        return Ok(Cost::Pure(Epsilon::at_least(&above, &(BigUint::from(count) * 1_000_000u32))));
    }
    if request.atto_delta == 0 {
        return Err(CalibrationError::NoDelta);
    }
    let rho = max_rho(Epsilon::from_micro(request.micro_epsilon), request.atto_delta).0;
    match rho / u128::from(count) {
        0 => Err(CalibrationError::TooWide),
        share => Ok(Cost::Concentrated(Rho(share))),
    }
}

/// P(x) ∝ e^(−|x|·ε/Δ₁), where ε is exactly the given millionths divided by `count`.
fn laplace(micro: u64, count: u32, change: Change) -> Result<RowNoise, CalibrationError> {
    let below = change.l1.checked_mul(u128::from(count) * 1_000_000);
    let below = below.ok_or(CalibrationError::TooWide)?;
    let divisor = gcd(below, u128::from(micro)).max(1);
    let above =
        u64::try_from(u128::from(micro) / divisor).map_err(|_| CalibrationError::TooWide)?;
    let below = below / divisor;
    if below / u128::from(above) >= MAX_WIDTH {
        return Err(CalibrationError::TooWide);
    }
    Ok(RowNoise::Laplace { above, below })
}

/// σ² = Δ₂²/2ρ, rounded up (Canonne, Kamath, Steinke 2020, theorem 4).
fn gaussian(rho: Rho, change: Change) -> Result<RowNoise, CalibrationError> {
    let above = BigUint::from(change.l2_squared) * BigUint::from(10u8).pow(24);
    let below = BigUint::from(rho.0) * 2u8;
    let variance = (above + &below - 1u8) / below;
    match u128::try_from(variance) {
        Ok(variance) if variance < MAX_WIDTH * MAX_WIDTH => Ok(RowNoise::Gaussian { variance }),
        _ => Err(CalibrationError::TooWide),
    }
}

/// The smallest variance that ρ allows, in granules. The granule is 1 if the noise then has
/// a table, else the smallest odd number for which it has one.
fn skellam(rho: Rho, change: Change, rows: usize) -> Result<RowNoise, CalibrationError> {
    let has_table = |change: Change| skellam_rho(MAX_SKELLAM, change) <= rho;
    let granule = granule(change, rows, has_table).ok_or(CalibrationError::TooWide)?;
    let steps = in_granules(change, rows, granule).ok_or(CalibrationError::TooWide)?;
    // One more than the largest that is not enough.
    let enough = |variance| skellam_rho(variance, steps) <= rho;
    let insufficient = last(u128::from(MAX_SKELLAM), |variance| {
        variance == 0 || !u64::try_from(variance).is_ok_and(enough)
    });
    let above = u64::try_from(insufficient + 1).map_err(|_| CalibrationError::TooWide)?;
    Ok(RowNoise::Skellam { above, below: 1, granule })
}

/// The smallest odd granule whose noise has a table. For a single row, k is the largest
/// change in granules that has one, so a granule is ⌈Δ/k⌉. For several rows, this tries 1,
/// 3, 7, 15, ….
fn granule(change: Change, rows: usize, has_table: impl Fn(Change) -> bool) -> Option<u64> {
    if has_table(change) {
        return Some(1);
    }
    if rows > 1 {
        let fits = |granule: &u64| in_granules(change, rows, *granule).is_some_and(&has_table);
        return (2..56).map(|bits| (1 << bits) - 1).find(fits);
    }
    // Variances stay below 2^21, so k² ≤ 2ρV stays far below 2^60.
    let most = last(change.l1.min(1 << 60), |k| has_table(Change { l1: k, l2_squared: k * k }));
    let granule = u64::try_from(change.l1.div_ceil(most.max(1)) | 1).ok()?;
    (most > 0 && granule < 1 << 56).then_some(granule)
}

/// A change in granules. Each row moves by ⌈c/g⌉ of them, so `Σ⌈c/g⌉ ≤ Δ₁/g + rows` and
/// `Σ⌈c/g⌉² ≤ Δ₂²/g² + 2Δ₁/g + rows`. For a single row this is exact.
fn in_granules(change: Change, rows: usize, granule: u64) -> Option<Change> {
    let granule = u128::from(granule);
    if granule == 1 {
        return Some(change);
    }
    if rows == 1 {
        let l1 = change.l1.div_ceil(granule);
        return Some(Change { l1, l2_squared: l1.checked_mul(l1)? });
    }
    let rows = rows as u128;
    let l1 = change.l1.div_ceil(granule);
    let squares = change.l2_squared.div_ceil(granule.checked_mul(granule)?);
    Some(Change { l1: l1 + rows, l2_squared: squares.checked_add(2 * l1)?.checked_add(rows)? })
}

/// ρ of Skellam noise of variance V, rounded up. Rényi divergences of order α are at most
/// αΔ₂²/2V + ((2α − 1)Δ₂² + 6Δ₁)/4V² (Agarwal, Kairouz, Liu 2021, theorem 3.5), hence at
/// most α·(Δ₂²/2V·(1 + 1/V) + 3Δ₁/2V²).
fn skellam_rho(variance: u64, change: Change) -> Rho {
    let v = BigUint::from(variance);
    let above = BigUint::from(change.l2_squared) * (&v + 1u8) + BigUint::from(change.l1) * 3u8;
    Rho::at_least(&above, &(&v * &v * 2u8))
}

impl Cost {
    /// The sum. If the kinds differ, the pure cost counts as its ρ.
    #[must_use]
    pub fn plus(self, other: Cost) -> Cost {
        match (self, other) {
            (Cost::Pure(one), Cost::Pure(other)) => Cost::Pure(one.plus(other)),
            (one, other) => Cost::Concentrated(one.rho().plus(other.rho())),
        }
    }

    /// The cost as zero-concentrated loss.
    #[must_use]
    pub fn rho(self) -> Rho {
        match self {
            Cost::Pure(epsilon) => epsilon.rho(),
            Cost::Concentrated(rho) => rho,
        }
    }
}

impl std::fmt::Display for Mechanism {
    /// As in queries. Queries do not choose the mechanism of running totals.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Mechanism::Laplace => "laplace",
            Mechanism::Skellam => "skellam",
            Mechanism::Gaussian => "gaussian",
            Mechanism::Matrix(_) => "square-root matrix",
        })
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cost::Pure(epsilon) => write!(f, "ε = {epsilon}"),
            Cost::Concentrated(rho) => write!(f, "ρ = {rho}"),
        }
    }
}
