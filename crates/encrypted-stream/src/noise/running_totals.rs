//! Running totals by the square-root matrix mechanism.
//!
//! Let A be the lower triangular matrix of ones. Then A = B·B for the Toeplitz matrix B
//! of the coefficients `C(2k, k) / 4^k` of (1 − x)^(−1/2). A controller draws one seed
//! z_t for each window and row, and adds `(Bz)_t` to the running total at t. Its share
//! of a window is the difference from what it last sent. So the noise of totals grows
//! with the logarithm of their number.

use super::NoiseError;
use super::coins::{Coins, low_word, wide};
use super::gaussian::{DiscreteGaussian, least_scale};
use super::words::NoiseWords;
use alpheus_policy::budget::{RowNoise, RunningNoise};
use num_bigint::BigUint;
use rand_core::CryptoRng;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Fractional bits of a coefficient.
const COEFFICIENT_BITS: u64 = 127;
/// A finer grid would leave no room for values.
const MAX_FINE_BITS: u32 = 120;
/// Fractional bits of the recurrence.
const WORKING_BITS: u64 = 256;

/// The first coefficients of B in units of 2^−127, rounded down. Public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coefficients(Vec<u128>);

impl Coefficients {
    /// `b_0 = 1, b_k = b_{k−1}·(2k − 1)/2k` for k < `windows`.
    #[must_use]
    pub fn new(windows: u32) -> Coefficients {
        let mut exact = BigUint::from(1u8) << WORKING_BITS;
        let mut all = Vec::with_capacity(windows as usize);
        for k in 0..windows {
            if k > 0 {
                exact = exact * (2 * u64::from(k) - 1) / (2 * u64::from(k));
            }
            let rounded: BigUint = &exact >> (WORKING_BITS - COEFFICIENT_BITS);
            all.push(u128::try_from(rounded).unwrap_or(1 << COEFFICIENT_BITS));
        }
        Coefficients(all)
    }

    /// The coefficients, in units of 2^−127.
    #[must_use]
    pub fn as_units(&self) -> &[u128] {
        &self.0
    }

    /// The number of windows that they cover.
    #[must_use]
    pub fn windows(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }
}

/// The sampler of a row's seeds, and how many bits finer than the row they are.
type Sampler = Option<(Arc<DiscreteGaussian>, u32)>;

/// The samplers and weights of a plan's seeds: public tables, the same for all controllers.
#[derive(Clone, Debug)]
pub struct SeedTables {
    samplers: Arc<[Sampler]>,
    coefficients: Coefficients,
}

impl SeedTables {
    /// Makes the tables for totals over `windows` windows with this noise, row by row.
    ///
    /// # Errors
    /// [`NoiseError`] if a row's noise cannot be drawn, or is noise of single windows.
    pub fn new(noise: &[RowNoise], windows: u32) -> Result<SeedTables, NoiseError> {
        let running = |row: &RowNoise| match row {
            RowNoise::None => Ok(None),
            RowNoise::Running(own) => Ok(Some(*own)),
            _ => Err(NoiseError::Running),
        };
        let noise = noise.iter().map(running).collect::<Result<Vec<_>, _>>()?;
        Ok(SeedTables { samplers: samplers(&noise)?, coefficients: Coefficients::new(windows) })
    }

    /// A controller's seeds, with none drawn yet.
    #[must_use]
    pub fn seeds(&self) -> Seeds {
        let (samplers, horizon) = (Arc::clone(&self.samplers), self.coefficients.windows());
        Seeds { samplers, seeds: Vec::new(), horizon }
    }

    /// The number of rows with noise, and thus of seeds per window.
    #[must_use]
    pub fn noisy_rows(&self) -> u32 {
        u32::try_from(self.samplers.iter().flatten().count()).unwrap_or(u32::MAX)
    }

    /// The weights of the seeds.
    #[must_use]
    pub fn coefficients(&self) -> &Coefficients {
        &self.coefficients
    }
}

/// One sampler for each row. Rows of equal noise share tables.
fn samplers(noise: &[Option<RunningNoise>]) -> Result<Arc<[Sampler]>, NoiseError> {
    let mut known: Vec<(RunningNoise, Arc<DiscreteGaussian>)> = Vec::new();
    let mut samplers = Vec::with_capacity(noise.len());
    for row in noise {
        let Some(own) = row else {
            samplers.push(None);
            continue;
        };
        let (drawn, fine) = match known.iter().find(|(noise, _)| noise == own) {
            Some((_, drawn)) => (Arc::clone(drawn), u32::from(own.fine_bits)),
            None => {
                let (drawn, fine) = sampler(own)?;
                let drawn = Arc::new(drawn);
                known.push((*own, Arc::clone(&drawn)));
                (drawn, fine)
            }
        };
        samplers.push(Some((drawn, fine)));
    }
    Ok(samplers.into())
}

/// One controller's seeds for the totals of one plan and group. Secret, and wiped on
/// drop. They are drawn window by window, whether or not the controller is in S, from
/// randomness that does not depend on S.
///
/// Seeds need 16 bytes for each row and window. A share of window t costs t products
/// per row.
pub struct Seeds {
    samplers: Arc<[Sampler]>,
    /// The rows' seeds by window, in units of 2^−(f + fine). Each window has its own
    /// allocation, so growing leaves no copies behind.
    seeds: Vec<Zeroizing<Vec<u128>>>,
    horizon: u32,
}

impl Seeds {
    /// The number of windows with seeds.
    #[must_use]
    pub fn windows(&self) -> u32 {
        u32::try_from(self.seeds.len()).unwrap_or(u32::MAX)
    }

    /// Draws the next window's seeds. A generator that is keyed by plan, group and
    /// [`Seeds::windows`] draws the same ones after a restart.
    ///
    /// # Errors
    /// [`NoiseError::BeyondHorizon`] after the last window.
    pub fn extend(&mut self, rng: &mut impl CryptoRng) -> Result<(), NoiseError> {
        if self.windows() >= self.horizon {
            let (window, windows) = (self.windows(), self.horizon);
            return Err(NoiseError::BeyondHorizon { window, windows });
        }
        let mut coins = Coins::new(rng);
        let mut drawn = Zeroizing::new(Vec::with_capacity(self.samplers.len()));
        for row in self.samplers.iter() {
            drawn.push(row.as_ref().map_or(0, |(sampler, _)| sampler.draw(&mut coins)));
        }
        self.seeds.push(drawn);
        Ok(())
    }

    /// The share of window number `t`, where `last` is the window of the last opening
    /// that was sent, if any. It is `(Bz)_t − (Bz)_last`, and each term is rounded once
    /// to the grid of 2^−f before the subtraction. Rows are in units of 2^−f.
    ///
    /// # Errors
    /// [`NoiseError::NoSeeds`] if its seeds are not drawn yet, or if `last` is not before
    /// `t`; [`NoiseError::BeyondHorizon`] if the coefficients do not cover `t`.
    pub fn share(
        &self,
        coefficients: &Coefficients,
        t: u32,
        last: Option<u32>,
    ) -> Result<NoiseWords, NoiseError> {
        if t >= self.windows() || last.is_some_and(|last| last >= t) {
            return Err(NoiseError::NoSeeds { window: t, seeded: self.windows() });
        }
        if t >= coefficients.windows() {
            return Err(NoiseError::BeyondHorizon { window: t, windows: coefficients.windows() });
        }
        let mut words = Zeroizing::new(Vec::with_capacity(self.samplers.len()));
        for row in 0..self.samplers.len() {
            let before = last.map_or(0, |last| self.total(coefficients, row, last));
            words.push(self.total(coefficients, row, t).wrapping_sub(before));
        }
        Ok(NoiseWords::new(words))
    }

    /// `(Bz)_t` of a row, rounded to the grid.
    fn total(&self, coefficients: &Coefficients, row: usize, t: u32) -> u64 {
        let own = self.seeds.iter().take(t as usize + 1).filter_map(|seeds| seeds.get(row));
        let weights = coefficients.0.iter().take(t as usize + 1).rev();
        let sum = own
            .zip(weights)
            .fold(0u128, |sum, (seed, weight)| sum.wrapping_add(scaled(*seed, *weight)));
        let fine = self.samplers.get(row).and_then(|row| row.as_ref().map(|(_, fine)| *fine));
        round(sum, fine.unwrap_or(0))
    }
}

/// The sampler of a row's seeds.
fn sampler(noise: &RunningNoise) -> Result<(DiscreteGaussian, u32), NoiseError> {
    let variance = BigUint::from(noise.seed_scale) * noise.seed_scale;
    let (scale, shift) = least_scale(&variance).ok_or(NoiseError::Zero)?;
    let fine = u32::from(noise.fine_bits);
    if fine > MAX_FINE_BITS {
        return Err(NoiseError::TooWide);
    }
    Ok((DiscreteGaussian::new(scale, shift)?, fine))
}

/// `⌊seed · weight / 2^127⌋` for a signed seed and a weight of at most 2^127.
#[inline]
fn scaled(seed: u128, weight: u128) -> u128 {
    let (low, high) = wide(seed, weight);
    // A negative seed was read as its value plus 2^128.
    let sign = 0u128.wrapping_sub(seed >> 127);
    let high = high.wrapping_sub(weight & sign);
    (high << 1) | (low >> 127)
}

/// Rounds to the nearest multiple of 2^`bits`, in units of it, modulo 2^64.
#[inline]
fn round(value: u128, bits: u32) -> u64 {
    if bits == 0 {
        return low_word(value);
    }
    let half = value.wrapping_add(1 << (bits - 1));
    // An arithmetic shift. Its sign bits matter to the low 64 bits only if bits > 64.
    let sign = 0u128.wrapping_sub(half >> 127);
    low_word((half >> bits) | (sign << (128 - bits)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_square_of_the_coefficients_is_all_ones() {
        let coefficients = Coefficients::new(200);
        let b: Vec<f64> =
            coefficients.as_units().iter().map(|b| *b as f64 / 2f64.powi(127)).collect();
        assert_eq!(coefficients.as_units()[..3], [1 << 127, 1 << 126, 3 << 124]);
        for t in [0, 1, 17, 199] {
            let entry: f64 = (0..=t).map(|i| b[i] * b[t - i]).sum();
            assert!((entry - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn products_and_rounding_preserve_signs() {
        let minus = |x: u128| x.wrapping_neg();
        assert_eq!(scaled(10, 1 << 127), 10);
        assert_eq!(scaled(minus(10), 1 << 127), minus(10));
        assert_eq!(scaled(10, 1 << 126), 5);
        assert_eq!(scaled(minus(11), 1 << 126), minus(6));
        assert_eq!(scaled(minus(1 << 126), 3 << 124), minus(3 << 123));
        for (value, bits, rounded) in [
            (5u128, 1, 3u64),
            (minus(5), 1, 2u64.wrapping_neg()),
            (minus(7), 2, 2u64.wrapping_neg()),
        ] {
            assert_eq!(round(value, bits), rounded, "{bits}");
        }
        assert_eq!(round(minus(3 << 96), 96), 3u64.wrapping_neg());
        assert_eq!(round(3 << 95, 96), 2);
    }
}
