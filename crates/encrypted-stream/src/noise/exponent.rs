//! Probabilities such as `e^(−a/b)` as integers: `⌊2^128 · p⌋`, certified by integer
//! arithmetic alone. They are public, so their computation need not be constant-time.

use num_bigint::BigUint;

/// Bits of a threshold.
const BITS: u64 = 128;
/// `e^−90 < 2^−129`, so from this exponent on a threshold is 0.
const CUTOFF: u32 = 90;

/// A positive fraction, the exponent of a probability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exponent {
    /// Numerator; not 0.
    pub(super) above: BigUint,
    /// Denominator; not 0.
    pub(super) below: BigUint,
}

impl Exponent {
    /// `above / below`.
    pub(super) fn new(above: impl Into<BigUint>, below: impl Into<BigUint>) -> Exponent {
        Exponent { above: above.into(), below: below.into() }
    }

    /// `2^doublings` times this.
    pub(super) fn doubled(&self, doublings: u64) -> Exponent {
        Exponent { above: &self.above << doublings, below: self.below.clone() }
    }

    /// Whether it is at least `whole`.
    pub(super) fn reaches(&self, whole: u32) -> bool {
        self.above >= &self.below * whole
    }

    /// `⌊2^128 · e^−x⌋`.
    pub(super) fn chance(&self) -> u128 {
        self.certain(|power, _| power.clone())
    }

    /// `⌊2^128 / (1 + e^x)⌋`, the probability of a geometric variable's bit.
    pub(super) fn logistic(&self) -> u128 {
        self.certain(|power, bits| (power << bits) / ((BigUint::from(1u8) << bits) + power))
    }

    /// `2^bits · e^−x`, to within 2^40.
    pub(super) fn scaled(&self, bits: u64) -> BigUint {
        if self.reaches(CUTOFF) {
            return BigUint::ZERO;
        }
        // Below 2^7 and halved 15 times: below 2^−8.
        const HALVINGS: u64 = 15;
        let one = BigUint::from(1u8) << bits;
        let x = (&self.above << bits) / (&self.below << HALVINGS);
        let (mut term, mut even, mut odd) = (one.clone(), one, BigUint::ZERO);
        let mut order = 1u32;
        while term != BigUint::ZERO {
            term = ((term * &x) >> bits) / order;
            match order % 2 {
                0 => even += &term,
                _ => odd += &term,
            }
            order += 1;
        }
        // Each of about 40 terms is less than 2 below the exact value, and x less than
        // 1. Each squaring doubles the error and adds 1, so it stays below 2^(7 + 15 + 1).
        (0..HALVINGS).fold(even - odd, |power, _| (&power * &power) >> bits)
    }

    /// The floor of a monotone function of `e^−x` that grows no faster than its argument.
    /// Uses enough bits that the error of [`Exponent::scaled`] does not matter.
    fn certain(&self, function: impl Fn(&BigUint, u64) -> BigUint) -> u128 {
        let slack = BigUint::from(1u8) << 40u8;
        let mut bits = 256;
        loop {
            let power = self.scaled(bits);
            let low = if power < slack { BigUint::ZERO } else { &power - &slack };
            let (low, high) = (function(&low, bits), function(&(power + &slack), bits));
            let (low, high) = (low >> (bits - BITS), high >> (bits - BITS));
            // The upper bound can be 1 only where e^−x is within 2^−216 of 1. The
            // floor is then all ones.
            let most = BigUint::from(u128::MAX);
            if low == high.min(most) {
                return u128::try_from(low).unwrap_or(u128::MAX);
            }
            bits += 128;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_test_support::vectors;
    use std::collections::BTreeMap;

    fn share(threshold: u128) -> f64 {
        threshold as f64 / 2f64.powi(128)
    }

    #[test]
    fn chances_match_the_exponential_function() {
        for (a, b) in [(1u64, 1u64), (1, 3), (7, 2), (1, 1_000_000), (60, 1)] {
            let (chance, x) = (Exponent::new(a, b), a as f64 / b as f64);
            let relative = |one: f64, other: f64| (one / other - 1.0).abs();
            assert!(relative(share(chance.chance()), (-x).exp()) < 1e-9, "{a}/{b}");
            assert!(relative(share(chance.logistic()), 1.0 / (1.0 + x.exp())) < 1e-9, "{a}/{b}");
        }
    }

    /// Every bit, against an independent script.
    #[test]
    fn chances_match_the_vectors() {
        let cases: Vec<BTreeMap<String, String>> = vectors::cases("noise/v1/chances.json");
        for case in cases {
            let number = |name: &str| case[name].parse::<BigUint>().unwrap_or_default();
            let x = Exponent::new(number("above"), number("below"));
            assert_eq!(format!("{:032x}", x.chance()), case["chance"], "{x:?}");
            assert_eq!(format!("{:032x}", x.logistic()), case["logistic"], "{x:?}");
        }
    }

    #[test]
    fn extreme_exponents_have_extreme_chances() {
        assert_eq!(Exponent::new(90u8, 1u8).chance(), 0);
        let near_one = Exponent::new(1u8, BigUint::from(1u8) << 140u8);
        assert_eq!((near_one.chance(), near_one.logistic()), (u128::MAX, u128::MAX / 2));
    }
}
