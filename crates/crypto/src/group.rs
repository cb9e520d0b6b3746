//! Elements and scalars of ristretto255. The types keep secret scalars out of
//! code whose running time depends on its input.
//!
//! By its type, an [`Element`] is canonical and never the identity.
//! [`SecretScalar`] has constant-time operations only. Variable-time code takes
//! a [`PublicScalar`]. No function turns a secret scalar into a public one, except
//! the response of a proof (`sigma`) and [`SecretScalar::expose`].

mod multiples;

pub use multiples::Multiple;

use crate::hash::wide_hash;
use crate::labels;
use crate::secret::Secret;
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoBasepointTable, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{IsIdentity, VartimeMultiscalarMul};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::LazyLock;
use subtle::{Choice, ConditionallySelectable};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Why bytes are not an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ElementError {
    /// Not the canonical encoding of an element (RFC 9496 §4.3.1).
    #[error("the bytes are not the canonical encoding of an element")]
    NotCanonical,
    /// The identity, for which many proofs hold trivially.
    #[error("the element is the identity, for which proofs hold trivially")]
    Identity,
}

/// Why bytes are not a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScalarError {
    /// Not below the group order.
    #[error("the number is not below the group order, so it is not a canonical scalar")]
    NotCanonical,
    /// Zero, which a secret scalar must not be.
    #[error("a secret scalar must not be zero")]
    Zero,
}

/// A sum is the identity. By chance this happens once in 2^252 times; otherwise, somebody
/// made it so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sum of the elements is the identity, which is not a valid element")]
pub struct IdentityError;

/// An element of the group other than the identity, with its canonical encoding. Public.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "[u8; 32]", into = "[u8; 32]")]
pub struct Element {
    pub(crate) point: RistrettoPoint,
    pub(crate) bytes: [u8; 32],
}

/// A sum of elements, which can be the identity. Public.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Total(RistrettoPoint);

/// A scalar that is public. Variable-time code accepts only these.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "[u8; 32]", into = "[u8; 32]")]
pub struct PublicScalar(pub(crate) Scalar);

/// A scalar that must not leak. It is wiped on drop and never printed or copied.
/// No operation's running time depends on its value.
///
/// ```compile_fail
/// # use alpheus_crypto::{group::SecretScalar, secret::Secret};
/// let key = SecretScalar::from_bytes(&Secret::from_bytes([7; 32])).unwrap();
/// println!("{key:?}");
/// ```
///
/// It does not convert to a public scalar:
///
/// ```compile_fail
/// # use alpheus_crypto::group::{PublicScalar, SecretScalar};
/// fn leak(key: SecretScalar) -> PublicScalar {
///     key.into()
/// }
/// ```
pub struct SecretScalar(Box<Scalar>);

static BASE: LazyLock<Element> = LazyLock::new(|| {
    let point = curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT;
    Element { point, bytes: point.compress().to_bytes() }
});
static SECOND_BASE: LazyLock<(Element, RistrettoBasepointTable)> = LazyLock::new(|| {
    let base = Element::from_hash(labels::SECOND_BASE, &[]);
    (base, RistrettoBasepointTable::create(&base.point))
});

impl Element {
    /// Length of an encoding, in bytes.
    pub const LENGTH: usize = 32;

    /// Decodes the canonical encoding of an element other than the identity.
    ///
    /// # Errors
    /// [`ElementError`].
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, ElementError> {
        let point = CompressedRistretto(*bytes).decompress().ok_or(ElementError::NotCanonical)?;
        if point.is_identity() {
            return Err(ElementError::Identity);
        }
        Ok(Self { point, bytes: *bytes })
    }

    /// The encoding.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// The point, for crates that compute with the curve's own library.
    #[must_use]
    pub fn as_point(&self) -> &RistrettoPoint {
        &self.point
    }

    /// G, the standard base.
    #[must_use]
    pub fn base() -> Self {
        *BASE
    }

    /// H, a hash to the group. Nobody knows its logarithm to base G.
    #[must_use]
    pub fn second_base() -> Self {
        SECOND_BASE.0
    }

    /// An element of which nobody knows a logarithm: the one-way map of RFC 9496
    /// §4.3.4 applied to [`wide_hash`]. The time depends only on the lengths of the parts.
    #[must_use]
    pub fn from_hash(label: &str, parts: &[&[u8]]) -> Self {
        let point = RistrettoPoint::from_uniform_bytes(&wide_hash(label, parts));
        #[expect(clippy::expect_used, reason = "has a probability of 2^-252 for a hash")]
        Self::of(point).expect("a hash is not the identity")
    }

    fn of(point: RistrettoPoint) -> Result<Self, IdentityError> {
        if point.is_identity() {
            return Err(IdentityError);
        }
        Ok(Self { point, bytes: point.compress().to_bytes() })
    }
}

impl Total {
    /// The empty sum: the identity.
    #[must_use]
    pub fn zero() -> Self {
        Self(RistrettoPoint::default())
    }

    /// Adds an element.
    pub fn add(&mut self, element: &Element) {
        self.0 += element.point;
    }

    /// Subtracts an element.
    pub fn subtract(&mut self, element: &Element) {
        self.0 -= element.point;
    }

    /// Adds another total.
    pub fn merge(&mut self, other: &Self) {
        self.0 += other.0;
    }

    /// The sum as an element.
    ///
    /// # Errors
    /// [`IdentityError`] if it is the identity.
    pub fn element(&self) -> Result<Element, IdentityError> {
        Element::of(self.0)
    }

    /// The encoding. All zeros for the identity.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.compress().to_bytes()
    }

    /// Decodes the canonical encoding of a sum, including the identity.
    ///
    /// # Errors
    /// [`ElementError::NotCanonical`].
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, ElementError> {
        CompressedRistretto(*bytes).decompress().map(Self).ok_or(ElementError::NotCanonical)
    }
}

/// Whether Σ kᵢ·Pᵢ is the identity. The time depends on the scalars.
pub(crate) fn vartime_sum_vanishes(terms: &[(PublicScalar, Element)]) -> bool {
    let scalars = terms.iter().map(|(scalar, _)| scalar.0);
    let points = terms.iter().map(|(_, element)| element.point);
    RistrettoPoint::vartime_multiscalar_mul(scalars, points).is_identity()
}

impl PublicScalar {
    /// Decodes the canonical encoding of a scalar, including zero.
    ///
    /// # Errors
    /// [`ScalarError::NotCanonical`].
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, ScalarError> {
        let scalar = Option::from(Scalar::from_canonical_bytes(*bytes));
        scalar.map(Self).ok_or(ScalarError::NotCanonical)
    }

    /// The encoding: little-endian, below the group order.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// Reads [`wide_hash`] as a little-endian integer modulo the group order.
    #[must_use]
    pub fn from_hash(label: &str, parts: &[&[u8]]) -> Self {
        Self(Scalar::from_bytes_mod_order_wide(&wide_hash(label, parts)))
    }

    /// The scalar of an integer.
    #[must_use]
    pub fn of(value: i64) -> Self {
        let magnitude = Scalar::from(value.unsigned_abs());
        Self(if value < 0 { -magnitude } else { magnitude })
    }

    /// The sum.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self(self.0 + other.0)
    }

    /// The difference.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        Self(self.0 - other.0)
    }

    /// The integer nearest to zero that has this scalar, if it fits.
    #[must_use]
    pub fn to_integer(&self) -> Option<i128> {
        let small = |scalar: Scalar| {
            let bytes = scalar.to_bytes();
            let (low, high) = bytes.split_first_chunk::<16>()?;
            let fits = high.iter().all(|byte| *byte == 0);
            fits.then(|| i128::try_from(u128::from_le_bytes(*low)).ok()).flatten()
        };
        small(self.0).or_else(|| small(-self.0).map(|magnitude| -magnitude))
    }
}

impl TryFrom<[u8; 32]> for PublicScalar {
    type Error = ScalarError;

    fn try_from(bytes: [u8; 32]) -> Result<Self, ScalarError> {
        Self::from_bytes(&bytes)
    }
}

impl From<PublicScalar> for [u8; 32] {
    fn from(scalar: PublicScalar) -> Self {
        scalar.to_bytes()
    }
}

impl SecretScalar {
    /// Draws a random nonzero scalar. It is uniform up to a statistical distance of 2^-252.
    #[must_use]
    pub fn random(rng: &mut impl CryptoRng) -> Self {
        let mut bytes = Zeroizing::new([0; 64]);
        loop {
            rng.fill_bytes(bytes.as_mut_slice());
            let scalar = Self::from_wide(&bytes);
            if *scalar.0 != Scalar::ZERO {
                return scalar;
            }
        }
    }

    /// Reads [`wide_hash`] of secret parts as an integer modulo the group order. Use it for
    /// *hedged* randomness: hash fresh bytes together with all values that must not be
    /// used with the same scalar twice, in case the generator repeats itself.
    #[must_use]
    pub fn from_hash(label: &str, parts: &[&[u8]]) -> Self {
        Self::from_wide(&Zeroizing::new(wide_hash(label, parts)))
    }

    /// Decodes the canonical encoding of a scalar other than zero.
    ///
    /// # Errors
    /// [`ScalarError`].
    pub fn from_bytes(bytes: &Secret<32>) -> Result<Self, ScalarError> {
        let scalar: Option<Scalar> = Scalar::from_canonical_bytes(*bytes.expose()).into();
        let scalar = Self(Box::new(scalar.ok_or(ScalarError::NotCanonical)?));
        if *scalar.0 == Scalar::ZERO { Err(ScalarError::Zero) } else { Ok(scalar) }
    }

    /// Reads 64 little-endian bytes modulo the group order. Of uniform bytes it makes a scalar that is
    /// uniform up to a statistical distance of 2^-252.
    #[must_use]
    pub fn from_wide(bytes: &[u8; 64]) -> Self {
        Self(Box::new(Scalar::from_bytes_mod_order_wide(bytes)))
    }

    /// The encoding, for storage.
    #[must_use]
    pub fn expose(&self) -> Secret<32> {
        Secret::from_bytes(self.0.to_bytes())
    }

    /// Converts a public scalar for a computation with secret ones.
    #[must_use]
    pub fn from_public(value: &PublicScalar) -> Self {
        Self(Box::new(value.0))
    }

    /// A small secret integer, such as a bit or an index.
    #[must_use]
    pub fn from_small(value: u32) -> Self {
        Self(Box::new(Scalar::from(value)))
    }

    /// A secret integer.
    #[must_use]
    pub fn from_integer(value: i128) -> Self {
        let magnitude = Zeroizing::new(Scalar::from(value.unsigned_abs()));
        let negative = Choice::from(u8::from(value.is_negative()));
        Self(Box::new(Scalar::conditional_select(&magnitude, &-*magnitude, negative)))
    }

    /// An explicit copy.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        Self(self.0.clone())
    }

    pub(crate) fn inner(&self) -> &Scalar {
        &self.0
    }

    /// `other` if `second` is set, else `one`.
    #[must_use]
    pub fn select(one: &Self, other: &Self, second: Choice) -> Self {
        Self(Box::new(Scalar::conditional_select(&one.0, &other.0, second)))
    }

    /// The sum.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self(Box::new(*self.0 + *other.0))
    }

    /// The difference.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        Self(Box::new(*self.0 - *other.0))
    }

    /// The product.
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        Self(Box::new(*self.0 * *other.0))
    }

    /// The inverse.
    ///
    /// # Errors
    /// [`ScalarError::Zero`], since zero has no inverse.
    pub fn inverse(&self) -> Result<Self, ScalarError> {
        if *self.0 == Scalar::ZERO {
            return Err(ScalarError::Zero);
        }
        Ok(Self(Box::new(self.0.invert())))
    }

    /// The response of a proof about a secret: nonce + challenge · secret. It may be
    /// public only if the nonce is used for nothing else; `sigma` ensures that.
    pub(crate) fn response(nonce: Self, challenge: &PublicScalar, secret: &Self) -> PublicScalar {
        PublicScalar(*nonce.0 + challenge.0 * *secret.0)
    }
}

impl Drop for SecretScalar {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl ZeroizeOnDrop for SecretScalar {}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Element {}

impl fmt::Debug for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Element(")?;
        self.bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, ")")
    }
}

impl TryFrom<[u8; 32]> for Element {
    type Error = ElementError;

    fn try_from(bytes: [u8; 32]) -> Result<Self, ElementError> {
        Self::from_bytes(&bytes)
    }
}

impl From<Element> for [u8; 32] {
    fn from(element: Element) -> Self {
        element.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalar(bytes: [u8; 32]) -> Result<SecretScalar, ScalarError> {
        SecretScalar::from_bytes(&Secret::from_bytes(bytes))
    }

    #[test]
    fn secret_scalars_are_canonical_and_not_zero() {
        assert_eq!(scalar([0; 32]).err(), Some(ScalarError::Zero));
        assert_eq!(scalar([0xff; 32]).err(), Some(ScalarError::NotCanonical));
        assert_eq!(SecretScalar::from_small(0).inverse().err(), Some(ScalarError::Zero));
        assert!(scalar([1; 32]).is_ok());
    }

    #[test]
    fn integers_and_scalars_convert_both_ways() {
        for value in [0, 1, -1, i128::from(i64::MIN), i128::MAX, -i128::MAX] {
            let bytes = SecretScalar::from_integer(value).expose();
            let public = PublicScalar::from_bytes(bytes.expose()).unwrap();
            assert_eq!(public.to_integer(), Some(value));
            let encoded = postcard::to_allocvec(&public).unwrap();
            assert_eq!(postcard::from_bytes::<PublicScalar>(&encoded), Ok(public));
        }
        let most =
            PublicScalar::from_bytes(SecretScalar::from_integer(i128::MAX).expose().expose())
                .unwrap();
        assert_eq!(most.plus(&PublicScalar::of(1)).to_integer(), None);
        assert_eq!(most.minus(&most).to_integer(), Some(0));
        assert_eq!(PublicScalar::from_hash("alpheus/test-scalar/v1", &[]).to_integer(), None);
    }

    #[test]
    fn no_constructor_returns_the_identity() {
        let encoded = postcard::to_allocvec(&[0_u8; 32]).unwrap();
        assert!(postcard::from_bytes::<Element>(&encoded).is_err());
        let (g, one) = (Element::base(), SecretScalar::from_small(1));
        assert_eq!(Element::combine(&[(&one, &g)], &[], &[&g]), Err(IdentityError));
        assert_eq!(Element::combine(&[], &[], &[]), Err(IdentityError));
        assert_eq!(g.times(&SecretScalar::from_small(0)), Err(IdentityError));
        assert_eq!(g.times(&one), Ok(g));
    }

    #[test]
    fn a_total_can_be_the_identity_but_an_element_cannot() {
        let (g, h) = (Element::base(), Element::second_base());
        let mut total = Total::zero();
        assert_eq!((total.element(), total.to_bytes()), (Err(IdentityError), [0; 32]));
        total.add(&g);
        total.merge(&total.clone());
        total.add(&h);
        let two = SecretScalar::from_small(2);
        assert_eq!(total.element(), Element::combine(&[(&two, &g)], &[&h], &[]));
        assert!(Total::from_bytes(&total.to_bytes()) == Ok(total));
        [g, g, h].iter().for_each(|element| total.subtract(element));
        assert!(total == Total::zero() && Total::from_bytes(&[0; 32]) == Ok(total));
        assert_eq!(Total::from_bytes(&[0xff; 32]).err(), Some(ElementError::NotCanonical));
    }
}
