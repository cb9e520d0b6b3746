//! Elements of the groups: one spelling each, read only if they are in the subgroup of
//! order q; the target group with powers in constant time.

use blst::{blst_fp, blst_fp2, blst_fp6, blst_fp12};
use blstrs::{G1Affine, G1Projective, G2Affine, Scalar};
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use num_bigint::BigUint;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use zeroize::Zeroizing;

/// Bytes of an element of G1, of G2, of the target group.
pub(crate) const G1: usize = 48;
pub(crate) const G2: usize = 96;
pub(crate) const GT: usize = 12 * COORDINATE;
/// Bytes of a coordinate, and its words.
const COORDINATE: usize = 48;
const LIMBS: usize = 6;
/// p, the characteristic of the field that coordinates are of.
const P: &[u8] = b"1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab";

/// Bytes stand for no element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadElement {
    /// Of the first group.
    #[error("48 bytes stand for no element of G1: they are not canonical, or not in the subgroup")]
    G1,
    /// Of the second group.
    #[error("96 bytes stand for no element of G2: they are not canonical, or not in the subgroup")]
    G2,
    /// Of the target group.
    #[error(
        "576 bytes stand for no element of the target group: they are not canonical, or not in the subgroup"
    )]
    Target,
}

/// Reads an element of G1.
pub(crate) fn first(bytes: &[u8; G1]) -> Result<G1Affine, BadElement> {
    Option::from(G1Affine::from_compressed(bytes)).ok_or(BadElement::G1)
}

/// Reads an element of G2.
pub(crate) fn second(bytes: &[u8; G2]) -> Result<G2Affine, BadElement> {
    Option::from(G2Affine::from_compressed(bytes)).ok_or(BadElement::G2)
}

/// An element of the target group, or a product of Miller loops before the last power. The
/// library's own type has powers that branch on the exponent's bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Target(blst_fp12);

impl Eq for Target {}

impl Target {
    /// 1.
    pub(crate) fn one() -> Self {
        Self(blst_fp12::default())
    }

    /// The Miller loop of a pair: products of these have one last power in common.
    pub(crate) fn pair(a: &G1Affine, b: &G2Affine) -> Self {
        if bool::from(a.is_identity() | b.is_identity()) {
            return Self::one();
        }
        Self(blst_fp12::miller_loop(b.as_ref(), a.as_ref()))
    }

    /// The last power: an element of the group.
    pub(crate) fn finished(&self) -> Self {
        Self(self.0.final_exp())
    }

    /// e(g, h)^k, in a time that does not depend on k.
    pub(crate) fn base(k: &Scalar) -> Self {
        Self::pair(&base(k).to_affine(), &G2Affine::generator()).finished()
    }

    /// x·y.
    pub(crate) fn times(&self, other: &Self) -> Self {
        Self(self.0 * other.0)
    }

    /// x^k, in a time that does not depend on k.
    pub(crate) fn power(&self, k: &Scalar) -> Self {
        let bytes = Zeroizing::new(k.to_bytes_be());
        let bits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |i| byte >> i & 1));
        bits.fold(Self::one(), |sum, bit| {
            let square = sum.times(&sum);
            Self::select(&square, &square.times(self), Choice::from(bit))
        })
    }

    /// Whether they are the same, in constant time.
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

    /// −1, which is not in the group.
    #[cfg(test)]
    pub(crate) fn minus_one() -> Self {
        let mut bytes = [0; GT];
        let p = BigUint::parse_bytes(P, 16).unwrap();
        bytes[..COORDINATE].copy_from_slice(&(p - 1_u32).to_bytes_be());
        Self::canonical(&bytes).unwrap()
    }

    /// Its bytes: coefficients of 1, w, … w^5 over F_p², each as two of F_p, big-endian.
    pub(crate) fn to_bytes(self) -> [u8; GT] {
        self.0.to_bendian()
    }

    /// Reads one.
    pub(crate) fn from_bytes(bytes: &[u8; GT]) -> Result<Self, BadElement> {
        let element = Self::canonical(bytes).filter(|element| element.0.in_group());
        element.ok_or(BadElement::Target)
    }

    /// Twelve coordinates below p; of the group or not.
    fn canonical(bytes: &[u8; GT]) -> Option<Self> {
        let p = BigUint::parse_bytes(P, 16)?;
        let mut coordinates = [[0; LIMBS]; 12];
        for (limbs, bytes) in coordinates.iter_mut().zip(bytes.as_chunks::<COORDINATE>().0) {
            let x = BigUint::from_bytes_be(bytes);
            if x >= p {
                return None;
            }
            // As the library holds it: Montgomery's form.
            let held = (x << (64 * LIMBS)) % &p;
            limbs.iter_mut().zip(held.iter_u64_digits()).for_each(|(limb, digit)| *limb = digit);
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

/// g^k, in a time that does not depend on k.
pub(crate) fn base(k: &Scalar) -> G1Projective {
    G1Projective::generator() * k
}

/// Whether they are the same, in constant time.
pub(crate) fn same_first(a: &G1Projective, b: &G1Projective) -> Choice {
    let [a, b] = [a, b].map(|point| point.to_affine().to_compressed());
    a.as_slice().ct_eq(b.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairing::scalars::two_to;
    use ff::Field;

    #[test]
    fn powers_multiply() {
        let x = Target::base(&Scalar::from(5));
        assert_eq!(x.power(&Scalar::ZERO), Target::one());
        assert_eq!(x.power(&Scalar::ONE), x);
        assert_eq!(x.power(&-Scalar::ONE).times(&x), Target::one());
        assert_eq!(x.power(&two_to(200)), Target::base(&(two_to(200) * Scalar::from(5))));
        let (a, b) = (base(&Scalar::from(3)).to_affine(), G2Affine::generator());
        let b = (b * Scalar::from(7)).to_affine();
        assert_eq!(Target::pair(&a, &b).finished(), Target::base(&Scalar::from(21)));
        assert_eq!(Target::pair(&G1Affine::identity(), &b).finished(), Target::one());
    }

    #[test]
    fn elements_have_one_spelling() {
        for x in [Target::one(), Target::base(&two_to(99))] {
            assert_eq!(Target::from_bytes(&x.to_bytes()), Ok(x));
        }
        let (p, minus) = (BigUint::parse_bytes(P, 16).unwrap(), Target::minus_one().to_bytes());
        assert_eq!(Target::from_bytes(&minus), Err(BadElement::Target), "−1, of order 2");
        let good = Target::base(&two_to(99)).to_bytes();
        let mut bytes = good;
        bytes[100] ^= 1;
        assert_eq!(Target::from_bytes(&bytes), Err(BadElement::Target), "of another order");
        assert_eq!(Target::from_bytes(&[0; GT]), Err(BadElement::Target), "zero");
        // The same coordinate, not reduced modulo p: the first that leaves room.
        let at = good.as_chunks::<48>().0.iter().position(|x| x[0] < 0xe0).unwrap() * 48;
        let x = BigUint::from_bytes_be(&good[at..at + 48]) + p;
        let mut bytes = good;
        bytes[at..at + 48].copy_from_slice(&x.to_bytes_be());
        assert_eq!(Target::from_bytes(&bytes), Err(BadElement::Target), "not canonical");
        let mut point = G1Affine::generator().to_compressed();
        assert_eq!(first(&point), Ok(G1Affine::generator()));
        point[47] ^= 2;
        assert_eq!(first(&point), Err(BadElement::G1));
        assert_eq!(second(&[0; G2]), Err(BadElement::G2));
    }
}
