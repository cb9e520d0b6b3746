//! The noise of running totals: one σ for a plan, from its minimum population.

use super::amount::Rho;
use super::calibrate::{
    CalibrationError, Cost, MAX_SEEDS, Mechanism, NoiseRequest, distinct, share_of,
};
use super::convert::ceiling;
use super::noise::RunningNoise;
use super::sensitivity::RowGroup;
use num_bigint::BigUint;
use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// Bits of ‖b‖².
const NORM_BITS: u64 = 128;
/// Seeds have a scale of at most 2^118.
const MAX_SEED_BITS: u64 = 118;
/// The finest grid that seeds need.
const MAX_FINE_BITS: u64 = 96;
/// Maximum number of windows of running totals.
const MAX_WINDOWS: u32 = 1 << 17;

/// Noise for running totals, and its cost over all windows together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningCalibration {
    /// The noise of each row, if it needs any.
    pub rows: Vec<Option<RunningNoise>>,
    /// The number of windows.
    pub windows: u32,
    /// The cost of the whole plan.
    pub cost: Cost,
    /// The cost for each attribute, ascending, once for the whole plan.
    pub charges: Vec<(u16, Cost)>,
    /// −log2 of the probability mass that rounding on the seeds' grid may omit. It is part of
    /// δ.
    pub slack_bits: u32,
}

/// Sizes the seeds of running totals over at most `windows` windows. `request` is for the
/// whole plan, and the events of a unit of protection span at most `touched` windows.
///
/// The honest members' total is σ² = Δ₂²·‖b‖²/2ρ (Fichtenberger, Henzinger, Upadhyay 2023,
/// with A = B·B). A controller's part is σ²/n, where n = `honest` is the minimum number of
/// honest controllers at the plan's *minimum* population, since it cannot change later. The
/// grid is the coarsest 2^−f with σ_p·2^f·√λ_min ≥ 4, where λ_min > ½ is the smallest
/// eigenvalue of BBᵀ.
///
/// # Errors
/// [`CalibrationError`] if no noise meets the request.
pub fn calibrate_running(
    request: &NoiseRequest,
    groups: &[RowGroup],
    outputs: usize,
    windows: u32,
    touched: u32,
    honest: NonZeroU32,
) -> Result<RunningCalibration, CalibrationError> {
    if request.micro_epsilon == 0 {
        return Err(CalibrationError::NoEpsilon);
    }
    if windows == 0 || windows > MAX_WINDOWS {
        return Err(CalibrationError::TooWide);
    }
    let drawn: usize = groups.iter().map(|group| group.rows.len()).sum();
    if u64::from(windows).saturating_mul(drawn as u64) > MAX_SEEDS {
        return Err(CalibrationError::TooManySeeds { rows: drawn, windows });
    }
    let count = u32::try_from(groups.len().max(1)).map_err(|_| CalibrationError::TooWide)?;
    let Cost::Concentrated(rho) =
        share_of(&NoiseRequest { mechanism: Mechanism::Gaussian, ..*request }, count)?
    else {
        return Err(CalibrationError::NoDelta);
    };
    let norm = column_norm_squared(windows);
    let mut rows = vec![None; outputs];
    let mut charges: BTreeMap<u16, Cost> = BTreeMap::new();
    for group in groups {
        let change = group.event.times(request.events).ok_or(CalibrationError::TooWide)?;
        // A unit in w windows moves w columns, each no longer than the first.
        let squared = BigUint::from(change.l2_squared) * u64::from(touched.max(1)).pow(2);
        let noise = seed(&(squared * &norm), rho, honest)?;
        for row in &group.rows {
            rows.get_mut(usize::from(*row)).into_iter().for_each(|row| *row = Some(noise));
        }
        for attribute in distinct(group) {
            let share = Cost::Concentrated(rho);
            let sum = charges.get(&attribute).map_or(share, |sum: &Cost| sum.plus(share));
            charges.insert(attribute, sum);
        }
    }
    let finest = rows.iter().flatten().map(|noise| u32::from(noise.fine_bits)).min();
    Ok(RunningCalibration {
        slack_bits: running_slack_bits(finest.unwrap_or(u32::MAX), windows, honest, outputs),
        rows,
        windows,
        cost: Cost::Concentrated(Rho(rho.0.saturating_mul(count.into()))),
        charges: charges.into_iter().collect(),
    })
}

/// A seed's scale and grids for σ² = `moved / (2^128 · 2ρ)`, of which a share is 1/n.
fn seed(moved: &BigUint, rho: Rho, honest: NonZeroU32) -> Result<RunningNoise, CalibrationError> {
    let above = moved * BigUint::from(10u8).pow(24);
    let below = (BigUint::from(rho.0) * 2u8 * honest.get()) << NORM_BITS;
    if above == BigUint::ZERO || below == BigUint::ZERO {
        return Err(CalibrationError::TooWide);
    }
    // σ_p²·4^f ≥ 4²/λ_min, with λ_min > ½.
    let reaches = |f: &u64| (&above << (2 * f)) >= &below * 32u8;
    let fraction = (0..=32).find(reaches).ok_or(CalibrationError::TooWide)?;
    let grid_units = (((&above << (2 * fraction)) / &below).sqrt() + 1u8).bits();
    let fine = MAX_SEED_BITS.checked_sub(grid_units).ok_or(CalibrationError::TooWide)?;
    let fine = fine.min(MAX_FINE_BITS);
    let squared = ((above << (2 * (fraction + fine))) + &below - 1u8) / below;
    let root = squared.sqrt();
    let scale = if &root * &root < squared { root + 1u8 } else { root };
    Ok(RunningNoise {
        seed_scale: u128::try_from(scale).map_err(|_| CalibrationError::TooWide)?,
        fraction_bits: u8::try_from(fraction).map_err(|_| CalibrationError::TooWide)?,
        fine_bits: u8::try_from(fine).map_err(|_| CalibrationError::TooWide)?,
    })
}

/// `Σ b_k²` over k < `windows`, with b_k = C(2k, k)/4^k, in units of 2^−128,
/// rounded up: the squared length of B's first, longest column.
#[must_use]
pub fn column_norm_squared(windows: u32) -> BigUint {
    let mut b = BigUint::from(1u8) << NORM_BITS;
    let mut sum = BigUint::ZERO;
    for k in 0..windows {
        if k > 0 {
            let even = 2 * u64::from(k);
            b = (b * (even - 1)).div_ceil_by(even);
        }
        sum += ceiling(&b * &b, NORM_BITS);
    }
    sum
}

trait DivCeil {
    fn div_ceil_by(self, divisor: u64) -> Self;
}

impl DivCeil for BigUint {
    fn div_ceil_by(self, divisor: u64) -> BigUint {
        (self + (divisor - 1)) / divisor
    }
}

/// −log2 of the probability mass that rounding on a grid of `fine` bits may omit. A total is
/// within 3T fine units of a boundary between two grid points with probability
/// 6T·2^−fine, for each of T totals, n controllers and r rows.
#[must_use]
pub fn running_slack_bits(fine: u32, windows: u32, honest: NonZeroU32, outputs: usize) -> u32 {
    let times = 6 * u128::from(windows) * u128::from(windows);
    let times = times * u128::from(honest.get()) * outputs.max(1) as u128;
    fine.saturating_sub(times.next_power_of_two().ilog2())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_norm_is_the_sum_of_squared_central_binomials() {
        assert_eq!(column_norm_squared(1), BigUint::from(1u8) << 128u8);
        // 1 + 1/4 + 9/64
        assert_eq!(column_norm_squared(3), BigUint::from(89u8) << 122u8);
        let year = column_norm_squared(8760) >> 96u8;
        let year = u64::try_from(year).unwrap_or(0) as f64 / 2f64.powi(32);
        assert!((year - 3.9555).abs() < 0.001, "{year}");
    }

    #[test]
    fn grids_are_exactly_as_coarse_as_allowed() {
        let honest = NonZeroU32::MIN;
        for moved in [1u64, 50, 1000, 1 << 40] {
            let moved = BigUint::from(moved) << NORM_BITS;
            // ρ = ½: σ² = moved.
            let Ok(noise) = seed(&moved, Rho(500_000_000_000_000_000_000_000), honest) else {
                unreachable!()
            };
            let units = BigUint::from(noise.seed_scale).pow(2) >> (2 * noise.fine_bits);
            assert!(units >= BigUint::from(32u8), "{noise:?}");
            let coarser = BigUint::from(32u8 * 4);
            assert!(noise.fraction_bits == 0 || units < coarser, "{noise:?}");
        }
    }
}
