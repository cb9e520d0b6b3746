//! Randomness in units of 128 bits, compared with public thresholds in constant time.

use rand_core::CryptoRng;
use subtle::{Choice, ConditionallySelectable};
use zeroize::Zeroizing;

/// Decides by one comparison. Its probability is below the true one by less than
/// 2^−128, and has no other error.
pub(super) struct Coins<'a>(&'a mut dyn CryptoRng);

impl<'a> Coins<'a> {
    pub(super) fn new(rng: &'a mut dyn CryptoRng) -> Self {
        Self(rng)
    }

    /// Uniform below 2^128: 16 bytes, little-endian.
    #[inline]
    pub(super) fn uniform(&mut self) -> u128 {
        let mut bytes = Zeroizing::new([0; 16]);
        self.0.fill_bytes(bytes.as_mut_slice());
        u128::from_le_bytes(*bytes)
    }

    /// True with probability `threshold / 2^128`.
    #[inline]
    pub(super) fn flip(&mut self, threshold: u128) -> Choice {
        below(self.uniform(), threshold)
    }

    /// True with probability `power / k`, where `power ≤ k`.
    #[inline]
    pub(super) fn flip_ratio(&mut self, power: u64, k: u64) -> Choice {
        let (_, product) = wide(self.uniform(), u128::from(k));
        // u · k / 2^128 < power for a uniform u. The floor decides, since power is an integer.
        below(product, u128::from(power))
    }

    /// Uniform below `range`, up to a bias of `range / 2^128`.
    #[inline]
    pub(super) fn below(&mut self, range: u64) -> u64 {
        let (_, product) = wide(self.uniform(), u128::from(range));
        low_word(product)
    }
}

/// a < b, as the borrow of a subtraction, without a branch.
#[inline]
pub(super) fn below(a: u128, b: u128) -> Choice {
    Choice::from(u8::from(a.overflowing_sub(b).1))
}

/// The product's low and high 128 bits.
#[inline]
pub(super) fn wide(a: u128, b: u128) -> (u128, u128) {
    const HALF: u128 = u64::MAX as u128;
    let (a1, a0, b1, b0) = (a >> 64, a & HALF, b >> 64, b & HALF);
    let (low, one, two) = (a0 * b0, a1 * b0, a0 * b1);
    let middle = (low >> 64) + (one & HALF) + (two & HALF);
    ((low & HALF) | (middle << 64), a1 * b1 + (one >> 64) + (two >> 64) + (middle >> 64))
}

/// The low 64 bits.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "truncation is intended")]
pub(super) fn low_word(x: u128) -> u64 {
    x as u64
}

/// `value` if chosen, else 0.
#[inline]
pub(super) fn select_or_zero(choice: Choice, value: u64) -> u64 {
    u64::conditional_select(&0, &value, choice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigUint;

    #[test]
    fn wide_products_are_exact() {
        for (a, b) in [(u128::MAX, u128::MAX), (3 << 100, 5 << 90), (u128::MAX, 2), (7, 9)] {
            let (low, high) = wide(a, b);
            assert_eq!(BigUint::from(a) * b, (BigUint::from(high) << 128u8) + low);
        }
    }

    #[test]
    fn comparisons_are_strict() {
        assert!(bool::from(below(4, 5)) && !bool::from(below(5, 5)) && !bool::from(below(6, 5)));
        assert!(bool::from(below(0, u128::MAX)) && !bool::from(below(u128::MAX, 0)));
    }
}
