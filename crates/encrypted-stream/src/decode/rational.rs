//! Exact rational numbers, and their correctly rounded floats.

use num_bigint::{BigInt, BigUint, Sign};

/// Bits of an `f64`'s significand.
const PRECISION: i64 = 53;
/// Exponent of the least positive `f64`: 2^-1074.
const MIN_EXPONENT: i64 = -1074;

/// An exact fraction. Not reduced; its denominator is positive.
#[derive(Clone, Debug)]
pub struct Rational {
    numerator: BigInt,
    denominator: BigUint,
}

impl Rational {
    /// `numerator / denominator`; `None` if the denominator is zero.
    #[must_use]
    pub fn new(numerator: impl Into<BigInt>, denominator: impl Into<BigInt>) -> Option<Rational> {
        let (sign, denominator) = denominator.into().into_parts();
        match sign {
            Sign::NoSign => None,
            Sign::Plus => Some(Rational { numerator: numerator.into(), denominator }),
            Sign::Minus => Some(Rational { numerator: -numerator.into(), denominator }),
        }
    }

    /// Multiplies by 10^exponent.
    #[must_use]
    pub fn times_ten_to(mut self, exponent: i32) -> Rational {
        let power = BigUint::from(10u8).pow(exponent.unsigned_abs());
        if exponent >= 0 {
            self.numerator *= BigInt::from(power);
        } else {
            self.denominator *= power;
        }
        self
    }

    /// The nearest `f64`, ties to even; infinite beyond the largest finite one.
    #[must_use]
    pub fn to_f64(&self) -> f64 {
        let magnitude = self.numerator.magnitude();
        if *magnitude == BigUint::ZERO {
            return 0.0;
        }
        // Scaled so that the quotient has 64 or 65 bits. 53 are kept; the others, and
        // whether the division was exact, decide the rounding.
        let exponent = length(magnitude) - length(&self.denominator) - 64;
        let (dividend, divisor) = scaled(magnitude, &self.denominator, exponent);
        let quotient = &dividend / &divisor;
        let exact = &quotient * &divisor == dividend;
        self.signed(round(&quotient, exponent, exact))
    }

    /// The `f64` nearest to the square root, ties to even; `None` below zero.
    ///
    /// Rounds the root of the exact fraction, not the root of a rounded value.
    #[must_use]
    pub fn sqrt_to_f64(&self) -> Option<f64> {
        match self.numerator.sign() {
            Sign::Minus => return None,
            Sign::NoSign => return Some(0.0),
            Sign::Plus => {}
        }
        let magnitude = self.numerator.magnitude();
        // The exponent is even, so the root halves it. The quotient has about 130
        // bits, so the root has about 65.
        let exponent = (length(magnitude) - length(&self.denominator) - 130) & !1;
        let (dividend, divisor) = scaled(magnitude, &self.denominator, exponent);
        let quotient = &dividend / &divisor;
        let root = quotient.sqrt();
        let exact = &root * &root * &divisor == dividend;
        Some(round(&root, exponent / 2, exact))
    }

    fn signed(&self, magnitude: f64) -> f64 {
        if self.numerator.sign() == Sign::Minus { -magnitude } else { magnitude }
    }
}

/// Length in bits.
fn length(number: &BigUint) -> i64 {
    i64::try_from(number.bits()).unwrap_or(i64::MAX)
}

/// Dividend and divisor of `numerator / denominator / 2^exponent`.
fn scaled(numerator: &BigUint, denominator: &BigUint, exponent: i64) -> (BigUint, BigUint) {
    let shift = exponent.unsigned_abs();
    if exponent >= 0 {
        (numerator.clone(), denominator << shift)
    } else {
        (numerator << shift, denominator.clone())
    }
}

/// The `f64` nearest to `(integer + rest) · 2^exponent`. The rest is below one, and
/// is zero exactly if `exact`. The integer has at least 55 bits.
fn round(integer: &BigUint, exponent: i64, exact: bool) -> f64 {
    // Drops bits down to the precision, or more for subnormal numbers, whose last
    // place is fixed.
    let drop = (length(integer) - PRECISION).max(MIN_EXPONENT - exponent).max(0);
    let kept = integer >> drop.unsigned_abs();
    let dropped = integer - (&kept << drop.unsigned_abs());
    let half = (BigUint::from(1u8) << drop.unsigned_abs()) >> 1u8;
    let odd = kept.bit(0);
    let up = dropped > half || (dropped == half && (!exact || odd));
    let significand = u64::try_from(kept).unwrap_or(u64::MAX) + u64::from(up);
    compose(significand, exponent + drop)
}

/// `significand · 2^exponent`, exactly. The significand is at most 2^53, and the
/// exponent at least that of the smallest `f64`.
fn compose(significand: u64, exponent: i64) -> f64 {
    // A carry from rounding results in 2^53, which is one bit longer but even.
    let (significand, exponent) = if significand >> PRECISION != 0 {
        (significand >> 1, exponent + 1)
    } else {
        (significand, exponent)
    };
    let subnormal = significand >> (PRECISION - 1) == 0;
    let biased = if subnormal { 0 } else { exponent - MIN_EXPONENT + 1 };
    match u64::try_from(biased) {
        Ok(biased) if biased < 0x7ff => f64::from_bits(
            (biased << (PRECISION - 1)) | (significand & ((1 << (PRECISION - 1)) - 1)),
        ),
        _ => f64::INFINITY,
    }
}
