//! Group elements: each has one encoding, and is read only if it is in the subgroup of order
//! q. Powers in the target group take constant time.

use blst::{blst_fp, blst_fp2, blst_fp6, blst_fp12};
use blstrs::{G1Affine, G1Projective, G2Affine, Scalar};
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use num_bigint::BigUint;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use zeroize::Zeroizing;

/// The bytes of an element of G1, of G2 and of the target group.
pub(crate) const G1: usize = 48;
pub(crate) const G2: usize = 96;
pub(crate) const GT: usize = 12 * COORDINATE;
/// The bytes of a coordinate, and its words.
const COORDINATE: usize = 48;
const LIMBS: usize = 6;
/// p, the characteristic of the coordinates' field.
const P: &[u8] = b"1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab";

/// Bytes that encode no group element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ElementError {
    /// The first group.
    #[error("48 bytes encode no element of G1: they are not canonical, or not in the subgroup")]
    G1,
    /// The second group.
    #[error("96 bytes encode no element of G2: they are not canonical, or not in the subgroup")]
    G2,
    /// The target group.
    #[error(
        "576 bytes encode no element of the target group: they are not canonical, or not in the subgroup"
    )]
    Target,
}

/// Reads an element of G1.
pub(crate) fn first(bytes: &[u8; G1]) -> Result<G1Affine, ElementError> {
    Option::from(G1Affine::from_compressed(bytes)).ok_or(ElementError::G1)
}

/// Reads an element of G2.
pub(crate) fn second(bytes: &[u8; G2]) -> Result<G2Affine, ElementError> {
    Option::from(G2Affine::from_compressed(bytes)).ok_or(ElementError::G2)
}

/// An element of the target group, or a product of Miller loops before the final
/// exponentiation. Powers of the library's own type branch on the exponent's bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Target(blst_fp12);

impl Eq for Target {}

impl Target {
    /// 1.
    pub(crate) fn one() -> Self {
        Self(blst_fp12::default())
    }

    /// The Miller loop of a pair. A product of these needs only one final exponentiation.
    pub(crate) fn pair(a: &G1Affine, b: &G2Affine) -> Self {
        if bool::from(a.is_identity() | b.is_identity()) {
            return Self::one();
        }
        Self(blst_fp12::miller_loop(b.as_ref(), a.as_ref()))
    }

    /// The final exponentiation, which yields an element of the group.
    pub(crate) fn final_exponentiation(&self) -> Self {
        Self(self.0.final_exp())
    }

    /// e(g, h)^k, in constant time.
    pub(crate) fn base(k: &Scalar) -> Self {
        Self::pair(&generator_power(k).to_affine(), &G2Affine::generator()).final_exponentiation()
    }

    /// x·y.
    pub(crate) fn times(&self, other: &Self) -> Self {
        Self(self.0 * other.0)
    }

    /// x^k, in constant time.
    pub(crate) fn power(&self, k: &Scalar) -> Self {
        let bytes = Zeroizing::new(k.to_bytes_be());
        let bits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |i| byte >> i & 1));
        bits.fold(Self::one(), |sum, bit| {
            let square = sum.times(&sum);
            Self::select(&square, &square.times(self), Choice::from(bit))
        })
    }

    /// Whether two elements are equal, in constant time.
    pub(crate) fn same(&self, other: &Self) -> Choice {
        self.to_bytes().ct_eq(&other.to_bytes())
    }

    fn select(a: &Self, b: &Self, choice: Choice) -> Self {
        let limb = |i: usize, j: usize, k: usize, l: usize| {
            let [a, b] = [a, b].map(|x| &x.0.fp6[i].fp2[j].fp[k].l[l]);
            u64::conditional_select(a, b, choice)
        };
        Self(of_limbs(limb))
    }

    /// −1, which is outside the group.
    #[cfg(test)]
    pub(crate) fn minus_one() -> Self {
        let mut bytes = [0; GT];
        let p = BigUint::parse_bytes(P, 16).unwrap();
        bytes[..COORDINATE].copy_from_slice(&(p - 1_u32).to_bytes_be());
        Self::canonical(&bytes).unwrap()
    }

    /// The coefficients of 1, w, … w^5 over F_p², each as two of F_p, big-endian.
    pub(crate) fn to_bytes(self) -> [u8; GT] {
        self.0.to_bendian()
    }

    /// Reads an element of the group.
    pub(crate) fn from_bytes(bytes: &[u8; GT]) -> Result<Self, ElementError> {
        let element = Self::canonical(bytes).filter(|element| element.0.in_group());
        element.ok_or(ElementError::Target)
    }

    /// Twelve coordinates below p, in the group or not.
    fn canonical(bytes: &[u8; GT]) -> Option<Self> {
        let p = BigUint::parse_bytes(P, 16)?;
        let mut coordinates = [[0; LIMBS]; 12];
        for (limbs, bytes) in coordinates.iter_mut().zip(bytes.as_chunks::<COORDINATE>().0) {
            let x = BigUint::from_bytes_be(bytes);
            if x >= p {
                return None;
            }
            // The library uses Montgomery form.
            let montgomery = (x << (64 * LIMBS)) % &p;
            limbs
                .iter_mut()
                .zip(montgomery.iter_u64_digits())
                .for_each(|(limb, digit)| *limb = digit);
        }
        Some(Self(of_limbs(|i, j, k, l| coordinates[4 * j + 2 * i + k][l])))
    }
}

fn of_limbs(limb: impl Fn(usize, usize, usize, usize) -> u64) -> blst_fp12 {
    use std::array::from_fn;
    let fp = |i, j, k| blst_fp { l: from_fn(|l| limb(i, j, k, l)) };
    let fp2 = |i, j| blst_fp2 { fp: from_fn(|k| fp(i, j, k)) };
    blst_fp12 { fp6: from_fn(|i| blst_fp6 { fp2: from_fn(|j| fp2(i, j)) }) }
}

/// g^k, in constant time.
pub(crate) fn generator_power(k: &Scalar) -> G1Projective {
    G1Projective::generator() * k
}

/// Whether two points are equal, in constant time.
pub(crate) fn same_first(a: &G1Projective, b: &G1Projective) -> Choice {
    let [a, b] = [a, b].map(|point| point.to_affine().to_compressed());
    a.as_slice().ct_eq(b.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalars::two_to;
    use ff::Field;

    #[test]
    fn powers_multiply() {
        let x = Target::base(&Scalar::from(5));
        assert_eq!(x.power(&Scalar::ZERO), Target::one());
        assert_eq!(x.power(&Scalar::ONE), x);
        assert_eq!(x.power(&-Scalar::ONE).times(&x), Target::one());
        assert_eq!(x.power(&two_to(200)), Target::base(&(two_to(200) * Scalar::from(5))));
        let (a, b) = (generator_power(&Scalar::from(3)).to_affine(), G2Affine::generator());
        let b = (b * Scalar::from(7)).to_affine();
        assert_eq!(Target::pair(&a, &b).final_exponentiation(), Target::base(&Scalar::from(21)));
        assert_eq!(Target::pair(&G1Affine::identity(), &b).final_exponentiation(), Target::one());
    }

    #[test]
    fn elements_have_one_encoding() {
        for x in [Target::one(), Target::base(&two_to(99))] {
            assert_eq!(Target::from_bytes(&x.to_bytes()), Ok(x));
        }
        let (p, minus) = (BigUint::parse_bytes(P, 16).unwrap(), Target::minus_one().to_bytes());
        assert_eq!(Target::from_bytes(&minus), Err(ElementError::Target), "−1, of order 2");
        let good = Target::base(&two_to(99)).to_bytes();
        let mut bytes = good;
        bytes[100] ^= 1;
        assert_eq!(Target::from_bytes(&bytes), Err(ElementError::Target), "of another order");
        assert_eq!(Target::from_bytes(&[0; GT]), Err(ElementError::Target), "zero");
        // The first coordinate that is small enough to add p without overflow.
        let at = good.as_chunks::<48>().0.iter().position(|x| x[0] < 0xe0).unwrap() * 48;
        let x = BigUint::from_bytes_be(&good[at..at + 48]) + p;
        let mut bytes = good;
        bytes[at..at + 48].copy_from_slice(&x.to_bytes_be());
        assert_eq!(Target::from_bytes(&bytes), Err(ElementError::Target), "not canonical");
        let mut point = G1Affine::generator().to_compressed();
        assert_eq!(first(&point), Ok(G1Affine::generator()));
        point[47] ^= 2;
        assert_eq!(first(&point), Err(ElementError::G1));
        assert_eq!(second(&[0; G2]), Err(ElementError::G2));
    }
}
