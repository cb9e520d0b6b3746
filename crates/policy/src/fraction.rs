//! Exact shares of a whole.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::ops::Rem;

/// An exact fraction between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fraction {
    /// The numerator.
    pub numerator: u32,
    /// The denominator, never 0.
    pub denominator: u32,
}

impl Fraction {
    /// 0.
    pub const ZERO: Fraction = Fraction { numerator: 0, denominator: 1 };
    /// ⅓, the default share of colluding controllers.
    pub const THIRD: Fraction = Fraction { numerator: 1, denominator: 3 };
    /// ⅕, the default share that may drop out.
    pub const FIFTH: Fraction = Fraction { numerator: 1, denominator: 5 };
    /// ⅒, the default share that may drop out under `Neighbours`.
    pub const TENTH: Fraction = Fraction { numerator: 1, denominator: 10 };

    /// ⌊fraction × n⌋.
    #[must_use]
    pub fn floor_of(self, n: usize) -> usize {
        let product = n as u128 * u128::from(self.numerator) / u128::from(self.denominator);
        usize::try_from(product).unwrap_or(usize::MAX)
    }
}

/// The largest number that divides both.
pub(crate) fn gcd<N: Copy + Default + PartialEq + Rem<Output = N>>(a: N, b: N) -> N {
    if b == N::default() { a } else { gcd(b, a % b) }
}

/// By value. Equal values are ordered by their denominator.
impl Ord for Fraction {
    fn cmp(&self, other: &Fraction) -> Ordering {
        let cross =
            |one: &Fraction, two: &Fraction| u64::from(one.numerator) * u64::from(two.denominator);
        cross(self, other).cmp(&cross(other, self)).then(self.denominator.cmp(&other.denominator))
    }
}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Fraction) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
