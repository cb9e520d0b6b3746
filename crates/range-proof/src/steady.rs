//! Elements whose every multiplication takes the same time for any secret scalars.
//!
//! The range proof library is generic over elements. Its prover calls variable-time multiplication
//! with secret scalars: bits of the value, blindings, nonces. Over [`Steady`] the same calls run
//! constant-time arithmetic, and the proof is the same bytes.
//!
//! Public work stays cheap. Between two rounds the library replaces pairs of bases by their sums,
//! weighted with challenges that everybody computes. Those sums are recorded and deferred, because
//! the next round would multiply them again; once they have many terms, they are computed in
//! variable time.

use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{
    Identity, MultiscalarMul, VartimeMultiscalarMul, VartimePrecomputedMultiscalarMul,
};
use std::borrow::Borrow;
use std::ops::{Add, AddAssign, Mul};
use std::sync::{Arc, OnceLock};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use tari_bulletproofs_plus::protocols::curve_point_protocol::CurvePointProtocol;
use tari_bulletproofs_plus::traits::{
    Compressable, Decompressable, FixedBytesRepr, FromUniformBytes, Precomputable,
};
use zeroize::Zeroizing;

/// Most terms of one deferred sum.
const MAX_TERMS: usize = 2;

/// An element for proving: public, or a deferred sum.
#[derive(Clone)]
pub(crate) struct Steady(Form);

#[derive(Clone)]
enum Form {
    Point(RistrettoPoint),
    Folded(Arc<FoldedSum>),
}

/// Σ kᵢ·Pᵢ with public scalars, and its value once it is needed.
struct FoldedSum {
    terms: [(Scalar, RistrettoPoint); 2],
    point: OnceLock<RistrettoPoint>,
}

/// Its encoding.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Encoding(pub(crate) CompressedRistretto);

/// Bases that many proofs share. Nothing is precomputed: tables indexed by bits of the scalars are
/// what must be avoided.
pub(crate) struct Bases(Vec<RistrettoPoint>);

impl Steady {
    pub(crate) fn of(point: RistrettoPoint) -> Self {
        Self(Form::Point(point))
    }

    /// The element.
    fn point(&self) -> RistrettoPoint {
        match &self.0 {
            Form::Point(point) => *point,
            Form::Folded(folded) => *folded.point.get_or_init(|| vartime_sum(&folded.terms)),
        }
    }

    /// The terms of its sum: itself once, or two others.
    fn terms(&self) -> ([(Scalar, RistrettoPoint); MAX_TERMS], usize) {
        match &self.0 {
            Form::Folded(folded) if folded.point.get().is_none() => (folded.terms, 2),
            _ => ([(Scalar::ONE, self.point()); 2], 1),
        }
    }

    /// a·P + b·Q, for public scalars: deferred if P and Q are computed, otherwise computed.
    fn folded(scalars: [Scalar; 2], of: [&Self; 2]) -> Self {
        #[cfg(test)]
        watched::FOLDS.with_borrow_mut(|folds| folds.push(scalars));
        let [(first, one), (second, other)] = of.map(Self::terms);
        let scaled = |by: Scalar, terms: &[(Scalar, RistrettoPoint)]| {
            terms.iter().map(|(scalar, point)| (by * scalar, *point)).collect::<Vec<_>>()
        };
        let all = [scaled(scalars[0], &first[..one]), scaled(scalars[1], &second[..other])];
        match all.concat().as_slice() {
            [one, other] => {
                let (terms, point) = ([*one, *other], OnceLock::new());
                Self(Form::Folded(Arc::new(FoldedSum { terms, point })))
            }
            many => Self::of(vartime_sum(many)),
        }
    }
}

/// A sum with public scalars.
fn vartime_sum(terms: &[(Scalar, RistrettoPoint)]) -> RistrettoPoint {
    let (scalars, points) = (terms.iter().map(|term| term.0), terms.iter().map(|term| term.1));
    RistrettoPoint::vartime_multiscalar_mul(scalars, points)
}

impl PartialEq for Steady {
    fn eq(&self, other: &Self) -> bool {
        self.point() == other.point()
    }
}

impl MultiscalarMul for Steady {
    type Point = Self;

    fn multiscalar_mul<I, J>(scalars: I, points: J) -> Self
    where
        I: IntoIterator<Item: Borrow<Scalar>>,
        J: IntoIterator<Item: Borrow<Self>>,
    {
        // Each part of a deferred sum is multiplied.
        let points: Vec<J::Item> = points.into_iter().collect();
        // A vector that grows leaves secrets behind.
        let most = MAX_TERMS * points.len();
        let (mut all, mut parts) = (Zeroizing::new(Vec::with_capacity(most)), Vec::new());
        for (scalar, point) in scalars.into_iter().zip(points) {
            let (terms, many) = point.borrow().terms();
            for (by, point) in terms.iter().take(many) {
                all.push(scalar.borrow() * by);
                parts.push(*point);
            }
        }
        Self::of(RistrettoPoint::multiscalar_mul(all.iter(), parts))
    }
}

impl VartimeMultiscalarMul for Steady {
    type Point = Self;

    /// With two elements, the prover folds bases by challenges; it never multiplies secrets in
    /// pairs. With more, there are secrets among the scalars.
    fn optional_multiscalar_mul<I, J>(scalars: I, points: J) -> Option<Self>
    where
        I: IntoIterator<Item: Borrow<Scalar>>,
        J: IntoIterator<Item = Option<Self>>,
    {
        let points: Vec<Self> = points.into_iter().collect::<Option<_>>()?;
        let scalars = scalars.into_iter().map(|scalar| *scalar.borrow());
        let mut own: Zeroizing<Vec<Scalar>> = Zeroizing::new(Vec::with_capacity(points.len() + 1));
        own.extend(scalars.take(points.len() + 1));
        let scalars = own;
        match (scalars.as_slice(), points.as_slice()) {
            ([a, b], [one, other]) => Some(Self::folded([*a, *b], [one, other])),
            _ if scalars.len() != points.len() => None,
            _ => Some(Self::multiscalar_mul(scalars.iter(), points)),
        }
    }
}

impl Bases {
    /// Σ kᵢ·Pᵢ if every scalar is −1, 0 or 1, like the bits of a value and those less one;
    /// otherwise none. Takes the same time for all of them.
    pub(crate) fn choose(&self, scalars: &[Scalar]) -> Option<RistrettoPoint> {
        let (mut sum, mut small) = (RistrettoPoint::identity(), Choice::from(1));
        for (scalar, base) in scalars.iter().zip(&self.0) {
            let (one, minus) = (scalar.ct_eq(&Scalar::ONE), scalar.ct_eq(&-Scalar::ONE));
            small &= one | minus | scalar.ct_eq(&Scalar::ZERO);
            let mut chosen = RistrettoPoint::identity();
            chosen.conditional_assign(base, one);
            chosen.conditional_assign(&-base, minus);
            sum += chosen;
        }
        bool::from(small).then_some(sum)
    }
}

impl VartimePrecomputedMultiscalarMul for Bases {
    type Point = Steady;

    fn new<I>(bases: I) -> Self
    where
        I: IntoIterator<Item: Borrow<Steady>>,
    {
        Self(bases.into_iter().map(|base| base.borrow().point()).collect())
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
        let copied = |scalar: &Scalar| *scalar;
        let of_bases = of_bases.into_iter().map(|scalar| copied(scalar.borrow()));
        let of_bases: Zeroizing<Vec<Scalar>> = Zeroizing::new(of_bases.collect());
        let others = others.into_iter().map(|scalar| copied(scalar.borrow()));
        let others: Zeroizing<Vec<Scalar>> = Zeroizing::new(others.collect());
        let points: Vec<Steady> = points.into_iter().collect::<Option<_>>()?;
        // Scalars for fewer bases than there are would pair with the wrong points.
        if of_bases.len() != self.0.len() || others.len() != points.len() {
            return None;
        }
        // The prover multiplies bases by bits. Whether all scalars are bits is the same for all
        // values.
        let chosen = self.choose(&of_bases);
        let chosen =
            chosen.unwrap_or_else(|| RistrettoPoint::multiscalar_mul(of_bases.iter(), &self.0));
        Some(Steady::of(chosen) + Steady::multiscalar_mul(others.iter(), points))
    }
}

impl Identity for Steady {
    fn identity() -> Self {
        Self::of(RistrettoPoint::identity())
    }
}

impl Add for Steady {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::of(self.point() + other.point())
    }
}

impl Add for &Steady {
    type Output = Steady;

    fn add(self, other: Self) -> Steady {
        Steady::of(self.point() + other.point())
    }
}

impl AddAssign for Steady {
    fn add_assign(&mut self, other: Self) {
        *self = Self::of(self.point() + other.point());
    }
}

impl Mul<Scalar> for &Steady {
    type Output = Steady;

    fn mul(self, scalar: Scalar) -> Steady {
        Steady::of(self.point() * scalar)
    }
}

impl CurvePointProtocol for Steady {}

impl FromUniformBytes for Steady {
    fn from_uniform_bytes(bytes: &[u8; 64]) -> Self {
        Self::of(RistrettoPoint::from_uniform_bytes(bytes))
    }
}

impl Precomputable for Steady {
    type Precomputation = Bases;
}

impl Compressable for Steady {
    type Compressed = Encoding;

    fn compress(&self) -> Encoding {
        Encoding(self.point().compress())
    }
}

impl Decompressable for Encoding {
    type Decompressed = Steady;

    fn decompress(&self) -> Option<Steady> {
        self.0.decompress().map(Steady::of)
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

/// Scalars that were treated as public.
#[cfg(test)]
pub(crate) mod watched {
    use super::Scalar;
    use std::cell::RefCell;

    thread_local! {
        pub(crate) static FOLDS: RefCell<Vec<[Scalar; 2]>> =
            const { RefCell::new(Vec::new()) };
    }
}
