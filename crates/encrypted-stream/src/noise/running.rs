//! Running totals by the square-root matrix mechanism.
//!
//! With A the lower triangle of ones, A = B·B for the Toeplitz matrix B of the
//! coefficients `C(2k, k) / 4^k` of (1 − x)^(−1/2). A controller draws one seed
//! z_t for each window and row and adds `(Bz)_t` to the running total at t. Its
//! share of a window is the difference to what it last sent, so that the noise
//! of totals grows with the logarithm of their number.

use super::Unfit;
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
/// Finer grids would leave no room for values.
const MOST_FINE_BITS: u32 = 120;
/// Bits in which the recurrence is run.
const WORKING_BITS: u64 = 256;

/// The first coefficients of B, in units of 2^−127, rounded down; public.
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

    /// In units of 2^−127.
    #[must_use]
    pub fn as_units(&self) -> &[u128] {
        &self.0
    }

    /// How many windows they reach.
    #[must_use]
    pub fn windows(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }
}

/// What draws a row's seeds, and how much finer they are.
type Sampler = Option<(Arc<DiscreteGaussian>, u32)>;

/// What the seeds of a plan are drawn and weighed with: public tables, the same for
/// all controllers.
#[derive(Clone, Debug)]
pub struct Running {
    samplers: Arc<[Sampler]>,
    coefficients: Coefficients,
}

impl Running {
    /// For totals over `windows` with this noise, row by row.
    ///
    /// # Errors
    /// [`Unfit`], where a row's noise cannot be drawn, or is that of single windows.
    pub fn new(noise: &[RowNoise], windows: u32) -> Result<Running, Unfit> {
        let running = |row: &RowNoise| match row {
            RowNoise::None => Ok(None),
            RowNoise::Running(own) => Ok(Some(*own)),
            _ => Err(Unfit::Running),
        };
        let noise = noise.iter().map(running).collect::<Result<Vec<_>, _>>()?;
        Ok(Running { samplers: samplers(&noise)?, coefficients: Coefficients::new(windows) })
    }

    /// A controller's seeds, none drawn yet.
    #[must_use]
    pub fn seeds(&self) -> Seeds {
        let (samplers, windows) = (Arc::clone(&self.samplers), self.coefficients.windows());
        Seeds { samplers, seeds: Vec::new(), windows }
    }

    /// Rows with noise: seeds of one window.
    #[must_use]
    pub fn drawn_rows(&self) -> u32 {
        u32::try_from(self.samplers.iter().flatten().count()).unwrap_or(u32::MAX)
    }

    /// What they are weighed with.
    #[must_use]
    pub fn coefficients(&self) -> &Coefficients {
        &self.coefficients
    }
}

/// One for each row; rows of equal noise share its tables.
fn samplers(noise: &[Option<RunningNoise>]) -> Result<Arc<[Sampler]>, Unfit> {
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

/// One controller's seeds for the totals of one plan and group: secret, wiped
/// on drop. They are drawn window by window, whether or not the controller is
/// in S, from randomness that S has no part in.
///
/// 16 bytes for each row and window; a share of window t is t products a row.
pub struct Seeds {
    samplers: Arc<[Sampler]>,
    /// Window by window, the rows' seeds in units of 2^−(f + fine). Each window's
    /// stay where they were drawn, so that growing leaves no copies behind.
    seeds: Vec<Zeroizing<Vec<u128>>>,
    windows: u32,
}

impl Seeds {
    /// How many windows have seeds.
    #[must_use]
    pub fn drawn(&self) -> u32 {
        u32::try_from(self.seeds.len()).unwrap_or(u32::MAX)
    }

    /// Draws the next window's seeds. From a generator that is keyed by plan,
    /// group and `drawn()`, the same come out after a restart.
    ///
    /// # Errors
    /// [`Unfit::BeyondHorizon`] after the last window.
    pub fn extend(&mut self, rng: &mut impl CryptoRng) -> Result<(), Unfit> {
        if self.drawn() >= self.windows {
            return Err(Unfit::BeyondHorizon { asked: self.drawn(), windows: self.windows });
        }
        let mut coins = Coins::new(rng);
        let mut drawn = Zeroizing::new(Vec::with_capacity(self.samplers.len()));
        for row in self.samplers.iter() {
            drawn.push(row.as_ref().map_or(0, |(sampler, _)| sampler.draw(&mut coins)));
        }
        self.seeds.push(drawn);
        Ok(())
    }

    /// The share of window number `t` where the last opening that left was that
    /// of `last` (none: there was none): `(Bz)_t − (Bz)_last`, each rounded once
    /// to the grid of 2^−f and then differenced. Rows are in units of 2^−f.
    ///
    /// # Errors
    /// [`Unfit::NoSeeds`] before its seeds are drawn, or if `last` is not before
    /// `t`; [`Unfit::BeyondHorizon`] if the coefficients do not reach.
    pub fn share(
        &self,
        coefficients: &Coefficients,
        t: u32,
        last: Option<u32>,
    ) -> Result<NoiseWords, Unfit> {
        if t >= self.drawn() || last.is_some_and(|last| last >= t) {
            return Err(Unfit::NoSeeds { asked: t, drawn: self.drawn() });
        }
        if t >= coefficients.windows() {
            return Err(Unfit::BeyondHorizon { asked: t, windows: coefficients.windows() });
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

/// What draws a row's seeds.
fn sampler(noise: &RunningNoise) -> Result<(DiscreteGaussian, u32), Unfit> {
    let variance = BigUint::from(noise.seed_scale) * noise.seed_scale;
    let (scale, shift) = least_scale(&variance).ok_or(Unfit::Zero)?;
    let fine = u32::from(noise.fine_bits);
    if fine > MOST_FINE_BITS {
        return Err(Unfit::TooWide);
    }
    Ok((DiscreteGaussian::new(scale, shift)?, fine))
}

/// `⌊seed · weight / 2^127⌋` for a signed seed and a weight of at most 2^127.
#[inline]
fn scaled(seed: u128, weight: u128) -> u128 {
    let (low, high) = wide(seed, weight);
    // A negative seed was read as 2^128 more than it is.
    let sign = 0u128.wrapping_sub(seed >> 127);
    let high = high.wrapping_sub(weight & sign);
    (high << 1) | (low >> 127)
}

/// To the nearest multiple of 2^`bits`, in units of it, modulo 2^64.
#[inline]
fn round(value: u128, bits: u32) -> u64 {
    if bits == 0 {
        return low_word(value);
    }
    let half = value.wrapping_add(1 << (bits - 1));
    // An arithmetic shift; what it leaves out lies above 64 bits unless bits > 64.
    let sign = 0u128.wrapping_sub(half >> 127);
    low_word((half >> bits) | (sign << (128 - bits)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coefficients_square_to_ones() {
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
    fn products_and_rounding_keep_signs() {
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
