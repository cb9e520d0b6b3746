//! Discrete Gaussian noise (Canonne, Kamath, Steinke 2020) in fixed work.
//!
//! A discrete Laplace variable y of scale t is kept with probability
//! `e^(−(|y|−m)²/(2tm))`. The result has density `e^(−y²/(2tm))`, so σ² = t·m. The bits
//! of |y| are independent coins, and so are the bits of the exponent. The rejection
//! loop runs a fixed number of times, and the first kept value counts.

use super::NoiseError;
use super::coins::{Coins, below, wide};
use super::exponent::Exponent;
use num_bigint::BigUint;
use subtle::{Choice, ConditionallySelectable};

/// Attempts where t < 8. Each is kept with probability above 0.45; none is kept with
/// probability below 2^−112.
const ATTEMPTS: u32 = 132;
/// Attempts for larger t. Each is kept with probability above 0.7 (0.76 in the limit).
const WIDE_ATTEMPTS: u32 = 66;
/// `e^−80 < 2^−115`: bits of |y| that are less likely to be set are left out.
const CUTOFF: u32 = 80;
/// σ² is at most 2^238, so that |y| < 2^126.
const MAX_SCALE: u128 = 1 << 119;
/// Bits of the exponent below `2^−136` of its unit are left out. Together they change
/// a probability by less than 2^−135.
const FINEST: u64 = 136;

/// The sampler for one σ² = t·m. Its tables are public and serve every draw.
#[derive(Clone, Debug)]
pub(super) struct DiscreteGaussian {
    /// m = σ²/t.
    shift: u128,
    /// ⌊2^128 / (1 + e^(2^i/t))⌋ for each bit of |y|.
    magnitude: Vec<u128>,
    /// ⌊2^128 · e^(−2^i/(2tm))⌋ for each bit i ≥ `lowest` of (|y| − m)².
    keep: Vec<u128>,
    lowest: u32,
    attempts: u32,
}

impl DiscreteGaussian {
    /// Makes the sampler for σ² = `scale · (scale − 1)` or `scale²`: see [`least_scale`].
    ///
    /// # Errors
    /// If σ² is 0 or above 2^238.
    pub(super) fn new(scale: u128, shift: u128) -> Result<DiscreteGaussian, NoiseError> {
        if scale == 0 || shift == 0 || shift > scale || scale - shift > 1 {
            return Err(NoiseError::Zero);
        }
        if scale > MAX_SCALE {
            return Err(NoiseError::TooWide);
        }
        let bit = |i: u64| Exponent::new(BigUint::from(1u8) << i, scale);
        let magnitude = (0..).map(bit).take_while(|x| !x.reaches(CUTOFF)).collect::<Vec<_>>();
        let twice = BigUint::from(scale) * shift * 2u8;
        let lowest = twice.bits().saturating_sub(FINEST);
        // The exponent is below |y|², which has twice as many bits. m ≤ t is also
        // below the range of |y|.
        let highest = 2 * (magnitude.len() as u64);
        let keep = (lowest..highest)
            .map(|i| Exponent::new(BigUint::from(1u8) << i, twice.clone()).chance());
        Ok(DiscreteGaussian {
            shift,
            magnitude: magnitude.iter().map(Exponent::logistic).collect(),
            keep: keep.collect(),
            lowest: u32::try_from(lowest).unwrap_or(u32::MAX),
            attempts: if scale < 8 { ATTEMPTS } else { WIDE_ATTEMPTS },
        })
    }

    /// Units of 16 random bytes that every draw uses.
    pub(super) fn words(&self) -> u64 {
        u64::from(self.attempts) * (self.magnitude.len() + self.keep.len() + 1) as u64
    }

    /// Draws one value, in two's complement.
    pub(super) fn draw(&self, coins: &mut Coins<'_>) -> u128 {
        let (mut drawn, mut done) = (0u128, Choice::from(0));
        for _ in 0..self.attempts {
            let (value, kept) = self.attempt(coins);
            drawn.conditional_assign(&value, kept & !done);
            done |= kept;
        }
        drawn
    }

    #[inline]
    fn attempt(&self, coins: &mut Coins<'_>) -> (u128, Choice) {
        let mut size = 0u128;
        for (i, threshold) in self.magnitude.iter().enumerate() {
            size |= u128::from(coins.flip(*threshold).unwrap_u8()) << (i & 127);
        }
        let negative = below(coins.uniform() >> 127, 1);
        // −0 is rejected, so that 0 is not twice as likely.
        let mut kept = below(0, size) | !negative;
        let over = below(self.shift, size);
        let distance = u128::conditional_select(
            &(self.shift.wrapping_sub(size)),
            &(size.wrapping_sub(self.shift)),
            over,
        );
        let (low, high) = wide(distance, distance);
        for (i, threshold) in (self.lowest..).zip(&self.keep) {
            let survives = coins.flip(*threshold);
            let set = if i < 128 { low >> i } else { high >> (i - 128) } & 1;
            kept &= survives | below(set, 1);
        }
        (u128::conditional_select(&size, &size.wrapping_neg(), negative), kept)
    }
}

/// The least (t, m) with m = t or m = t − 1 and t·m ≥ `variance`.
pub(super) fn least_scale(variance: &BigUint) -> Option<(u128, u128)> {
    if *variance == BigUint::ZERO {
        return None;
    }
    let root = u128::try_from(variance.sqrt()).ok()?;
    let covers = |(t, m): &(u128, u128)| BigUint::from(*t) * *m >= *variance;
    [(root, root), (root + 1, root), (root + 1, root + 1)].into_iter().find(covers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_just_cover_the_variance() {
        let scale = |variance: u32| least_scale(&variance.into());
        assert_eq!(scale(0), None);
        assert_eq!(scale(1), Some((1, 1)));
        assert_eq!(scale(2), Some((2, 1)));
        assert_eq!(scale(3), Some((2, 2)));
        assert_eq!(scale(5), Some((3, 2)));
        assert_eq!(scale(10_000), Some((100, 100)));
        assert_eq!(scale(10_001), Some((101, 100)));
    }

    /// Computes the probability that an attempt is kept from the exact law.
    #[test]
    fn the_attempts_suffice() {
        let scales = [(1u32, 1u32), (2, 1), (2, 2), (3, 2), (7, 6), (8, 7), (10, 9), (1000, 1000)];
        for (t, m) in scales {
            let attempts = if t < 8 { ATTEMPTS } else { WIDE_ATTEMPTS };
            let reach = 40 * i64::from(t);
            let (t, m) = (f64::from(t), f64::from(m));
            let q = (-1.0 / t).exp();
            let kept: f64 = (-reach..=reach)
                .map(|y| {
                    let y = (y as f64).abs();
                    let proposed = (1.0 - q) * q.powf(y) / 2.0;
                    // 0 occurs with only one of two signs.
                    proposed * (-(y - m).powi(2) / (2.0 * t * m)).exp()
                })
                .sum();
            assert!((1.0 - kept).powi(attempts as i32) < 2f64.powi(-112), "{t} {m} {kept}");
        }
    }

    #[test]
    fn scales_beyond_the_bounds_are_rejected() {
        let refused = |t, m| DiscreteGaussian::new(t, m).err();
        assert_eq!(refused(0, 0), Some(NoiseError::Zero));
        assert_eq!(refused(3, 1), Some(NoiseError::Zero));
        assert_eq!(refused(MAX_SCALE + 1, MAX_SCALE), Some(NoiseError::TooWide));
    }
}
