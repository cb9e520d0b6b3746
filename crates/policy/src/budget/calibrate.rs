//! From a loss that is asked for to the noise of each row, and what it costs
//! each attribute.

use super::amount::{Epsilon, Rho};
use super::convert::{last, most_rho};
use super::noise::{RowNoise, RunningNoise};
use super::running::calibrate_running;
use super::sensitivity::{Change, RowGroup};
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
    /// Running totals by the square-root matrix mechanism: zCDP, for all windows
    /// together.
    Matrix(Horizon),
}

/// How far running totals reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Horizon {
    /// Windows in all.
    pub windows: u32,
    /// Most of them that the events of one unit of protection lie in
    /// ([`windows_of`](super::windows_of)).
    pub touched: u32,
}

/// What a release costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cost {
    /// ε-differential privacy.
    Pure(Epsilon),
    /// ρ-zero-concentrated differential privacy.
    Concentrated(Rho),
}

/// What a query asks for one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// How.
    pub mechanism: Mechanism,
    /// ε of one window, in millionths; of running totals that of all together.
    pub micro_epsilon: u64,
    /// Its δ in units of 10^−18; 0 only for [`Mechanism::Laplace`].
    pub atto_delta: u64,
    /// Events of one unit of protection in one window
    /// ([`events_of`](super::events_of)).
    pub events: u128,
}

/// Noise for a release and its price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calibrated {
    /// One for each row of the release.
    pub rows: Vec<RowNoise>,
    /// Of the whole release.
    pub cost: Cost,
    /// Of each attribute, ascending: the groups of rows that derive from it. A
    /// row that derives from two is charged to both.
    pub charges: Vec<(u16, Cost)>,
}

impl Calibrated {
    /// Whether it is noise of running totals, whose cost is that of all windows.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.rows.iter().any(|row| matches!(row, RowNoise::Running(_)))
    }
}

/// Why there is no such noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Uncalibrated {
    /// ε = 0.
    #[error("an ε of 0 leaves nothing to release; ask for more")]
    NoEpsilon,
    /// Concentrated noise without δ.
    #[error(
        "running totals, Gaussian and Skellam noise need a δ above 0; give one or ask for Laplace noise in tumbling windows"
    )]
    NoDelta,
    /// More seeds than controllers keep.
    #[error(
        "running totals of {rows} rows over {windows} windows are more than {MOST_SEEDS} in all; ask for a shorter SIZE, longer steps or fewer columns"
    )]
    TooManySeeds {
        /// Rows with noise.
        rows: usize,
        /// Windows in all.
        windows: u32,
    },
    /// The loss is so small, or the sensitivity so large, that no noise of ours
    /// is wide enough.
    #[error("the noise would be wider than its words; ask for more ε or narrow the bounds")]
    TooWide,
}

/// Greatest variance, in granules², of Skellam noise: shares are drawn from
/// tables of its square root.
const MOST_SKELLAM: u64 = 1 << 21;
/// Rows times windows of running totals: a seed each, of 16 bytes, which a restarted
/// controller draws again in about half a millisecond.
pub(super) const MOST_SEEDS: u64 = 1 << 18;
/// Noise is drawn as signed words.
const MOST_WIDTH: u128 = 1 << 55;

/// Splits what is asked for evenly over the groups of rows and sizes the noise.
///
/// # Errors
/// [`Uncalibrated`], where there is no such noise.
pub fn calibrate(
    ask: &Ask,
    groups: &[RowGroup],
    outputs: usize,
) -> Result<Calibrated, Uncalibrated> {
    calibrate_for(ask, groups, outputs, NonZeroU32::MIN)
}

/// The same where at least so many honest controllers are in every opening set:
/// running totals size each one's seeds by it, once for all windows.
///
/// # Errors
/// [`Uncalibrated`], where there is no such noise.
pub fn calibrate_for(
    ask: &Ask,
    groups: &[RowGroup],
    outputs: usize,
    honest: NonZeroU32,
) -> Result<Calibrated, Uncalibrated> {
    if let Mechanism::Matrix(Horizon { windows, touched }) = ask.mechanism {
        let sized = calibrate_running(ask, groups, outputs, windows, touched, honest)?;
        let row = |row: Option<RunningNoise>| row.map_or(RowNoise::None, RowNoise::Running);
        let rows = sized.rows.into_iter().map(row).collect();
        return Ok(Calibrated { rows, cost: sized.cost, charges: sized.charges });
    }
    if ask.micro_epsilon == 0 {
        return Err(Uncalibrated::NoEpsilon);
    }
    let count = u32::try_from(groups.len().max(1)).map_err(|_| Uncalibrated::TooWide)?;
    let share = share_of(ask, count)?;
    let mut rows = vec![RowNoise::None; outputs];
    let mut charges: BTreeMap<u16, Cost> = BTreeMap::new();
    for group in groups {
        let change = group.event.times(ask.events).ok_or(Uncalibrated::TooWide)?;
        let noise = match share {
            Cost::Pure(_) => laplace(ask.micro_epsilon, count, change)?,
            Cost::Concentrated(rho) if ask.mechanism == Mechanism::Gaussian => {
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
        Cost::Pure(_) => Cost::Pure(Epsilon::from_micro(ask.micro_epsilon)),
        Cost::Concentrated(rho) => Cost::Concentrated(Rho(rho.0.saturating_mul(count.into()))),
    };
    Ok(Calibrated { rows, cost, charges: charges.into_iter().collect() })
}

/// The attributes that a group derives from, each once.
pub(super) fn distinct(group: &RowGroup) -> impl Iterator<Item = u16> {
    let mut attributes: Vec<u16> = group.statistic.attributes().collect();
    attributes.dedup();
    attributes.into_iter()
}

/// What each of `count` groups may lose: ε rounded up, as it is charged; ρ
/// rounded down, as noise is sized by it.
pub(super) fn share_of(ask: &Ask, count: u32) -> Result<Cost, Uncalibrated> {
    if ask.mechanism == Mechanism::Laplace {
        let above = BigUint::from(ask.micro_epsilon);
        return Ok(Cost::Pure(Epsilon::at_least(&above, &(BigUint::from(count) * 1_000_000u32))));
    }
    if ask.atto_delta == 0 {
        return Err(Uncalibrated::NoDelta);
    }
    let rho = most_rho(Epsilon::from_micro(ask.micro_epsilon), ask.atto_delta).0;
    match rho / u128::from(count) {
        0 => Err(Uncalibrated::TooWide),
        share => Ok(Cost::Concentrated(Rho(share))),
    }
}

/// P(x) ∝ e^(−|x|·ε/Δ₁), with ε in exactly the given millionths over `count`.
fn laplace(micro: u64, count: u32, change: Change) -> Result<RowNoise, Uncalibrated> {
    let below = change.l1.checked_mul(u128::from(count) * 1_000_000);
    let below = below.ok_or(Uncalibrated::TooWide)?;
    let divisor = gcd(below, u128::from(micro));
    let above = u64::try_from(u128::from(micro) / divisor).map_err(|_| Uncalibrated::TooWide)?;
    let below = below / divisor;
    if below / u128::from(above) >= MOST_WIDTH {
        return Err(Uncalibrated::TooWide);
    }
    Ok(RowNoise::Laplace { above, below })
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

/// σ² = Δ₂²/2ρ, rounded up (Canonne, Kamath, Steinke 2020, theorem 4).
fn gaussian(rho: Rho, change: Change) -> Result<RowNoise, Uncalibrated> {
    let above = BigUint::from(change.l2_squared) * BigUint::from(10u8).pow(24);
    let below = BigUint::from(rho.0) * 2u8;
    let variance = (above + &below - 1u8) / below;
    match u128::try_from(variance) {
        Ok(variance) if variance < MOST_WIDTH * MOST_WIDTH => Ok(RowNoise::Gaussian { variance }),
        _ => Err(Uncalibrated::TooWide),
    }
}

/// The least variance that ρ allows, in granules: 1 if its noise has a table,
/// else the least odd one that has.
fn skellam(rho: Rho, change: Change, rows: usize) -> Result<RowNoise, Uncalibrated> {
    let has_table = |change: Change| skellam_rho(MOST_SKELLAM, change) <= rho;
    let granule = granule(change, rows, has_table).ok_or(Uncalibrated::TooWide)?;
    let steps = in_granules(change, rows, granule).ok_or(Uncalibrated::TooWide)?;
    // The last that is not enough, and one more.
    let enough = |variance| skellam_rho(variance, steps) <= rho;
    let short = last(u128::from(MOST_SKELLAM), |variance| {
        variance == 0 || !u64::try_from(variance).is_ok_and(enough)
    });
    let above = u64::try_from(short + 1).map_err(|_| Uncalibrated::TooWide)?;
    Ok(RowNoise::Skellam { above, below: 1, granule })
}

/// The least odd granule whose noise has a table. One row alone moves by k of
/// them where k is the greatest number that has one, and so by ⌈Δ/k⌉ each; many
/// rows try 1, 3, 7, 15, ….
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

/// A change as seen through granules: each row moves by ⌈c/g⌉ of them, so that
/// `Σ⌈c/g⌉ ≤ Δ₁/g + rows` and `Σ⌈c/g⌉² ≤ Δ₂²/g² + 2Δ₁/g + rows`; one row
/// alone by exactly that.
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

/// ρ of Skellam noise of the variance V: Rényi divergences of order α are at
/// most αΔ₂²/2V + ((2α − 1)Δ₂² + 6Δ₁)/4V² (Agarwal, Kairouz, Liu 2021, theorem
/// 3.5), hence at most α·(Δ₂²/2V·(1 + 1/V) + 3Δ₁/2V²). Rounded up.
fn skellam_rho(variance: u64, change: Change) -> Rho {
    let v = BigUint::from(variance);
    let above = BigUint::from(change.l2_squared) * (&v + 1u8) + BigUint::from(change.l1) * 3u8;
    Rho::at_least(&above, &(&v * &v * 2u8))
}

impl Cost {
    /// Both; of unlike kinds the pure one counts as its ρ.
    #[must_use]
    pub fn plus(self, other: Cost) -> Cost {
        match (self, other) {
            (Cost::Pure(one), Cost::Pure(other)) => Cost::Pure(one.plus(other)),
            (one, other) => Cost::Concentrated(one.rho().plus(other.rho())),
        }
    }

    /// As zero-concentrated loss.
    #[must_use]
    pub fn rho(self) -> Rho {
        match self {
            Cost::Pure(epsilon) => epsilon.rho(),
            Cost::Concentrated(rho) => rho,
        }
    }
}

impl std::fmt::Display for Mechanism {
    /// As queries write it; that of running totals they do not choose.
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
