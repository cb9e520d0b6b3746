//! Elements whose every multiplication takes the same time for any scalars.
//!
//! The range proofs' library is generic over elements, and its prover calls what it
//! takes for multiplication in variable time with secret scalars: bits of the value,
//! blindings, nonces. Over [`Steady`] the same prover's same calls meet constant-time
//! arithmetic, and the proof is the same bytes.

use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{
    Identity, MultiscalarMul, VartimeMultiscalarMul, VartimePrecomputedMultiscalarMul,
};
use std::borrow::Borrow;
use std::ops::{Add, AddAssign, Mul};
use subtle::{Choice, ConstantTimeEq};
use tari_bulletproofs_plus::protocols::curve_point_protocol::CurvePointProtocol;
use tari_bulletproofs_plus::traits::{
    Compressable, Decompressable, FixedBytesRepr, FromUniformBytes, Precomputable,
};

/// An element for proving.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Steady(pub(super) RistrettoPoint);

/// Its encoding.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Encoding(pub(super) CompressedRistretto);

/// Bases that many proofs share. Nothing is computed ahead: tables by bits of the
/// scalars are what must not be.
pub(super) struct Bases(Vec<RistrettoPoint>);

impl MultiscalarMul for Steady {
    type Point = Self;

    fn multiscalar_mul<I, J>(scalars: I, points: J) -> Self
    where
        I: IntoIterator<Item: Borrow<Scalar>>,
        J: IntoIterator<Item: Borrow<Self>>,
    {
        let points: Vec<RistrettoPoint> = points.into_iter().map(|p| p.borrow().0).collect();
        Self(RistrettoPoint::multiscalar_mul(scalars, points))
    }
}

impl VartimeMultiscalarMul for Steady {
    type Point = Self;

    fn optional_multiscalar_mul<I, J>(scalars: I, points: J) -> Option<Self>
    where
        I: IntoIterator<Item: Borrow<Scalar>>,
        J: IntoIterator<Item = Option<Self>>,
    {
        let points: Vec<Self> = points.into_iter().collect::<Option<_>>()?;
        Some(Self::multiscalar_mul(scalars, points))
    }
}

impl VartimePrecomputedMultiscalarMul for Bases {
    type Point = Steady;

    fn new<I>(bases: I) -> Self
    where
        I: IntoIterator<Item: Borrow<Steady>>,
    {
        Self(bases.into_iter().map(|base| base.borrow().0).collect())
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn optional_mixed_multiscalar_mul<I, J, K>(
        &self,
        of_bases: I,
        others: J,
        points: K,
    ) -> Option<Steady>
    where
        I: IntoIterator<Item: Borrow<Scalar>>,
        J: IntoIterator<Item: Borrow<Scalar>>,
        K: IntoIterator<Item = Option<Steady>>,
    {
        let scalars = zeroize::Zeroizing::new(
            of_bases
                .into_iter()
                .map(|scalar| *scalar.borrow())
                .chain(others.into_iter().map(|scalar| *scalar.borrow()))
                .collect::<Vec<Scalar>>(),
        );
        let points: Vec<Steady> = points.into_iter().collect::<Option<_>>()?;
        // Scalars for fewer bases than there are would pair with the wrong points.
        if scalars.len() != self.0.len() + points.len() {
            return None;
        }
        let points = self.0.iter().copied().chain(points.into_iter().map(|point| point.0));
        Some(Steady(RistrettoPoint::multiscalar_mul(scalars.iter(), points)))
    }
}

impl Identity for Steady {
    fn identity() -> Self {
        Self(RistrettoPoint::identity())
    }
}

impl Add for Steady {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Add for &Steady {
    type Output = Steady;

    fn add(self, other: Self) -> Steady {
        Steady(self.0 + other.0)
    }
}

impl AddAssign for Steady {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Mul<Scalar> for &Steady {
    type Output = Steady;

    fn mul(self, scalar: Scalar) -> Steady {
        Steady(self.0 * scalar)
    }
}

impl CurvePointProtocol for Steady {}

impl FromUniformBytes for Steady {
    fn from_uniform_bytes(bytes: &[u8; 64]) -> Self {
        Self(RistrettoPoint::from_uniform_bytes(bytes))
    }
}

impl Precomputable for Steady {
    type Precomputation = Bases;
}

impl Compressable for Steady {
    type Compressed = Encoding;

    fn compress(&self) -> Encoding {
        Encoding(self.0.compress())
    }
}

impl Decompressable for Encoding {
    type Decompressed = Steady;

    fn decompress(&self) -> Option<Steady> {
        self.0.decompress().map(Steady)
    }
}

impl FixedBytesRepr for Encoding {
    fn as_fixed_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    fn from_fixed_bytes(bytes: [u8; 32]) -> Self {
        Self(CompressedRistretto(bytes))
    }
}

impl Identity for Encoding {
    fn identity() -> Self {
        Self(CompressedRistretto::identity())
    }
}

impl ConstantTimeEq for Encoding {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}
