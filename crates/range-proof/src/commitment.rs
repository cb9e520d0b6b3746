//! Commitments, and public linear forms of them.

use alpheus_crypto::group::Element;
use curve25519_dalek::ristretto::RistrettoPoint;
use std::ops::{Add, AddAssign, Neg, Sub};

/// A commitment, or a sum of multiples of some. Public. It can be the identity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Commitment(pub(crate) RistrettoPoint);

impl Commitment {
    /// An element as a commitment.
    #[must_use]
    pub fn of(element: &Element) -> Self {
        Self(*element.as_point())
    }

    /// Its multiple, in a time that depends on the factor, which is public.
    #[must_use]
    pub fn vartime_times(&self, factor: i128) -> Self {
        let magnitude = factor.unsigned_abs();
        let mut sum = RistrettoPoint::default();
        for bit in (0..u128::BITS - magnitude.leading_zeros()).rev() {
            sum += sum;
            if magnitude >> bit & 1 == 1 {
                sum += self.0;
            }
        }
        Self(if factor < 0 { -sum } else { sum })
    }
}

impl Add for Commitment {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Commitment {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Commitment {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Neg for Commitment {
    type Output = Self;

    fn neg(self) -> Self {
        Self(-self.0)
    }
}
