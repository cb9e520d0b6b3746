//! One controller's noise for all rows of a release.

use super::coins::Coins;
use super::exponent::Exponent;
use super::gaussian::{DiscreteGaussian, least_scale};
use super::polya::Polya;
use super::skellam::Skellam;
use super::words::NoiseWords;
use super::{NoiseError, SHARE_SLACK_BITS};
use alpheus_policy::budget::RowNoise;
use num_bigint::BigUint;
use rand_core::CryptoRng;
use std::num::NonZeroU32;
use zeroize::Zeroizing;

/// Minimum variance of a Gaussian share where there are several. From here on a sum of
/// discrete Gaussians is within 2^−220 of a discrete Gaussian (Kairouz, Liu, Steinke
/// 2021).
const MIN_VARIANCE: u32 = 16;

/// Draws the shares of a release's rows for one honest floor. Holds only public tables.
/// Make it once for each (plan, floor) and keep it.
#[derive(Clone, Debug)]
pub struct Shares {
    honest: NonZeroU32,
    samplers: Vec<Sampler>,
    /// The index of each row's sampler. Rows of equal noise share tables.
    rows: Vec<usize>,
}

#[derive(Clone, Debug)]
enum Sampler {
    None,
    Laplace(Polya),
    Skellam { unit: Skellam, granule: u64 },
    Gaussian(DiscreteGaussian),
}

impl Shares {
    /// Makes the sampler of `noise`, row by row. The shares of `honest` controllers
    /// suffice: n = |S| − t, with S the opening set.
    ///
    /// # Errors
    /// [`NoiseError`] if a row's noise cannot be drawn.
    pub fn new(noise: &[RowNoise], honest: NonZeroU32) -> Result<Shares, NoiseError> {
        let (mut kinds, mut samplers): (Vec<RowNoise>, Vec<Sampler>) = (Vec::new(), Vec::new());
        let mut rows = Vec::with_capacity(noise.len());
        for row in noise {
            let known = kinds.iter().position(|kind| kind == row);
            if known.is_none() {
                samplers.push(sampler(row, honest)?);
                kinds.push(*row);
            }
            rows.push(known.unwrap_or(samplers.len() - 1));
        }
        Ok(Shares { honest, samplers, rows })
    }

    /// The honest floor.
    #[must_use]
    pub fn honest(&self) -> NonZeroU32 {
        self.honest
    }

    /// The samplers' error over all n shares is below 2^−this. δ includes it.
    #[must_use]
    pub fn slack_bits(&self) -> u32 {
        let share = self.rows.len().max(1) as u128 * u128::from(self.honest.get());
        SHARE_SLACK_BITS.saturating_sub(share.next_power_of_two().ilog2())
    }

    /// Draws this controller's share. Draw it once S is fixed and durable, add it to the
    /// opening, and make that durable. Never draw again for the same window, because
    /// the average of two draws has less noise.
    ///
    /// # Privacy
    /// Time and randomness used depend only on the plan and the floor.
    pub fn draw(&self, rng: &mut impl CryptoRng) -> NoiseWords {
        let mut coins = Coins::new(rng);
        let mut words = Zeroizing::new(Vec::with_capacity(self.rows.len()));
        for row in &self.rows {
            words.push(self.samplers.get(*row).map_or(0, |sampler| sampler.draw(&mut coins)));
        }
        NoiseWords::new(words)
    }

    /// Bytes of randomness that every draw uses.
    #[must_use]
    pub fn bytes_per_draw(&self) -> u64 {
        let words = |row: &usize| self.samplers.get(*row).map_or(0, Sampler::words);
        16 * self.rows.iter().map(words).sum::<u64>()
    }

    /// Table comparisons in every draw, besides one for each 16 bytes of randomness.
    #[must_use]
    pub fn comparisons_per_draw(&self) -> usize {
        let comparisons = |row: &usize| self.samplers.get(*row).map_or(0, Sampler::comparisons);
        self.rows.iter().map(comparisons).sum()
    }
}

fn sampler(noise: &RowNoise, honest: NonZeroU32) -> Result<Sampler, NoiseError> {
    match *noise {
        RowNoise::None => Ok(Sampler::None),
        RowNoise::Laplace { above, below } => {
            if above == 0 || below == 0 {
                return Err(NoiseError::Zero);
            }
            Polya::new(&Exponent::new(above, below), honest).map(Sampler::Laplace)
        }
        RowNoise::Skellam { above, below, granule } => {
            if granule % 2 == 0 {
                // An even granule would shift every sum by half a unit per share.
                return Err(NoiseError::Zero);
            }
            let unit = Skellam::new((above, below), honest)?;
            Ok(Sampler::Skellam { unit, granule })
        }
        RowNoise::Running(_) => Err(NoiseError::Running),
        RowNoise::Gaussian { variance } => {
            // Rounded up, like the scale, so that there is never less noise.
            let share = variance.div_ceil(u128::from(honest.get()));
            if honest.get() > 1 && share < u128::from(MIN_VARIANCE) {
                return Err(NoiseError::TooNarrow);
            }
            let (scale, shift) = least_scale(&BigUint::from(share)).ok_or(NoiseError::Zero)?;
            DiscreteGaussian::new(scale, shift).map(Sampler::Gaussian)
        }
    }
}

impl Sampler {
    /// Not inlined, because tests count its instructions.
    #[inline(never)]
    fn draw(&self, coins: &mut Coins<'_>) -> u64 {
        match self {
            Sampler::None => 0,
            Sampler::Laplace(share) => share.draw(coins),
            Sampler::Skellam { unit, granule: 1 } => unit.draw(coins),
            Sampler::Skellam { unit, granule } => {
                let whole = unit.draw(coins).wrapping_mul(*granule);
                whole.wrapping_add(coins.below(*granule)).wrapping_sub(granule / 2)
            }
            Sampler::Gaussian(share) => super::coins::low_word(share.draw(coins)),
        }
    }

    fn words(&self) -> u64 {
        match self {
            Sampler::None => 0,
            Sampler::Laplace(share) => share.words(),
            Sampler::Skellam { granule, .. } => 2 + u64::from(*granule != 1),
            Sampler::Gaussian(share) => share.words(),
        }
    }

    fn comparisons(&self) -> usize {
        match self {
            Sampler::Skellam { unit, .. } => unit.comparisons(),
            Sampler::Laplace(share) => share.comparisons(),
            Sampler::None | Sampler::Gaussian(_) => 0,
        }
    }
}
