//! Elements and scalars of ristretto255, kept apart by what may be done with
//! them: a secret scalar never reaches code whose time depends on it.
//!
//! [`Element`] is canonical and never the identity, by type. [`SecretScalar`]
//! has constant-time operations only; what runs in variable time takes a
//! [`PublicScalar`], and no function turns the one into the other, except the
//! response of a proof (`sigma`) and [`SecretScalar::expose`].

mod multiples;

pub use multiples::Multiple;

use crate::hash::wide;
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

/// Why bytes are no element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidElement {
    /// Not the one encoding of an element (RFC 9496 §4.3.1).
    #[error("the bytes are not the canonical encoding of an element")]
    NotCanonical,
    /// The identity, with which many a proof holds for nothing.
    #[error("the element is the identity, with which proofs hold for nothing")]
    Identity,
}

/// Why bytes are no scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidScalar {
    /// Not below the group order.
    #[error("the bytes are not below the group order")]
    NotCanonical,
    /// Zero, where the scalar is a secret.
    #[error("a secret scalar must not be zero")]
    Zero,
}

/// The sum is the identity: a chance of 2^-252, or somebody's intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the result is the identity")]
pub struct Vanished;

/// An element of the group that is not the identity, with its one encoding.
/// Public.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "[u8; 32]", into = "[u8; 32]")]
pub struct Element {
    pub(crate) point: RistrettoPoint,
    pub(crate) bytes: [u8; 32],
}

/// A sum of elements, which may be the identity. Public.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Total(RistrettoPoint);

/// A scalar that everybody may know. Variable-time code takes only these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PublicScalar(pub(crate) Scalar);

/// A scalar that must not leak: wiped on drop, never printed or copied, and
/// without any operation whose time depends on its value.
///
/// ```compile_fail
/// # use alpheus_crypto::{group::SecretScalar, secret::Secret};
/// let key = SecretScalar::from_bytes(&Secret::from_bytes([7; 32])).unwrap();
/// println!("{key:?}");
/// ```
///
/// It does not pass for a public one:
///
/// ```compile_fail
/// # use alpheus_crypto::group::{PublicScalar, SecretScalar};
/// fn leak(key: SecretScalar) -> PublicScalar {
///     key.into()
/// }
/// ```
pub struct SecretScalar(Box<Scalar>);

/// Multiples of the base points, for scalars of either kind.
static BASE: LazyLock<Element> = LazyLock::new(|| {
    let point = curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT;
    Element { point, bytes: point.compress().to_bytes() }
});
static SECOND_BASE: LazyLock<(Element, RistrettoBasepointTable)> = LazyLock::new(|| {
    let base = Element::hashed(labels::SECOND_BASE, &[]);
    (base, RistrettoBasepointTable::create(&base.point))
});

impl Element {
    /// Bytes of an encoding.
    pub const LENGTH: usize = 32;

    /// Decodes the one encoding of an element other than the identity.
    ///
    /// # Errors
    /// [`InvalidElement`].
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, InvalidElement> {
        let point = CompressedRistretto(*bytes).decompress().ok_or(InvalidElement::NotCanonical)?;
        if point.is_identity() {
            return Err(InvalidElement::Identity);
        }
        Ok(Self { point, bytes: *bytes })
    }

    /// The encoding.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// G, the standard base.
    #[must_use]
    pub fn base() -> Self {
        *BASE
    }

    /// H, whose logarithm to base G nobody knows: it is hashed.
    #[must_use]
    pub fn second_base() -> Self {
        SECOND_BASE.0
    }

    /// An element that nobody knows a logarithm of: the one-way map of RFC 9496
    /// §4.3.4 applied to [`wide`]. Takes the same time for any parts of a length.
    #[must_use]
    pub fn hashed(label: &str, parts: &[&[u8]]) -> Self {
        let point = RistrettoPoint::from_uniform_bytes(&wide(label, parts));
        #[expect(clippy::expect_used, reason = "a chance of 2^-252 for a hash")]
        Self::of(point).expect("a hash is not the identity")
    }

    fn of(point: RistrettoPoint) -> Result<Self, Vanished> {
        if point.is_identity() {
            return Err(Vanished);
        }
        Ok(Self { point, bytes: point.compress().to_bytes() })
    }
}

impl Total {
    /// Of nothing: the identity.
    #[must_use]
    pub fn zero() -> Self {
        Self(RistrettoPoint::default())
    }

    /// Adds an element.
    pub fn add(&mut self, element: &Element) {
        self.0 += element.point;
    }

    /// Takes an element away.
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
    /// [`Vanished`] if it is the identity.
    pub fn element(&self) -> Result<Element, Vanished> {
        Element::of(self.0)
    }

    /// The encoding; of the identity, zeros.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.compress().to_bytes()
    }

    /// Decodes the one encoding of a sum, the identity included.
    ///
    /// # Errors
    /// [`InvalidElement::NotCanonical`].
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, InvalidElement> {
        CompressedRistretto(*bytes).decompress().map(Self).ok_or(InvalidElement::NotCanonical)
    }
}

/// Whether Σ kᵢ·Pᵢ is the identity, in a time that depends on the scalars.
pub(crate) fn vartime_sum_vanishes(terms: &[(PublicScalar, Element)]) -> bool {
    let scalars = terms.iter().map(|(scalar, _)| scalar.0);
    let points = terms.iter().map(|(_, element)| element.point);
    RistrettoPoint::vartime_multiscalar_mul(scalars, points).is_identity()
}

impl PublicScalar {
    /// Decodes the one encoding of a scalar, zero included.
    ///
    /// # Errors
    /// [`InvalidScalar::NotCanonical`].
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, InvalidScalar> {
        let scalar = Option::from(Scalar::from_canonical_bytes(*bytes));
        scalar.map(Self).ok_or(InvalidScalar::NotCanonical)
    }

    /// The encoding: little-endian, below the group order.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// [`wide`], little-endian, modulo the group order.
    #[must_use]
    pub fn hashed(label: &str, parts: &[&[u8]]) -> Self {
        Self(Scalar::from_bytes_mod_order_wide(&wide(label, parts)))
    }

    /// An integer.
    #[must_use]
    pub fn of(value: i64) -> Self {
        let magnitude = Scalar::from(value.unsigned_abs());
        Self(if value < 0 { -magnitude } else { magnitude })
    }
}

impl SecretScalar {
    /// Draws a scalar, uniform but for a chance of 2^-252.
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

    /// [`wide`] of parts that are secret, modulo the group order: for *hedged*
    /// randomness, from fresh bytes and whatever must not meet the same scalar
    /// twice, should the generator repeat itself.
    #[must_use]
    pub fn hashed(label: &str, parts: &[&[u8]]) -> Self {
        Self::from_wide(&Zeroizing::new(wide(label, parts)))
    }

    /// Decodes the one encoding of a scalar other than zero.
    ///
    /// # Errors
    /// [`InvalidScalar`].
    pub fn from_bytes(bytes: &Secret<32>) -> Result<Self, InvalidScalar> {
        let scalar: Option<Scalar> = Scalar::from_canonical_bytes(*bytes.expose()).into();
        let scalar = Self(Box::new(scalar.ok_or(InvalidScalar::NotCanonical)?));
        if *scalar.0 == Scalar::ZERO { Err(InvalidScalar::Zero) } else { Ok(scalar) }
    }

    /// 64 little-endian bytes modulo the group order.
    pub(crate) fn from_wide(bytes: &[u8; 64]) -> Self {
        Self(Box::new(Scalar::from_bytes_mod_order_wide(bytes)))
    }

    /// The encoding, for whoever stores it.
    #[must_use]
    pub fn expose(&self) -> Secret<32> {
        Secret::from_bytes(self.0.to_bytes())
    }

    /// A public value among secrets.
    #[must_use]
    pub fn from_public(value: &PublicScalar) -> Self {
        Self(Box::new(value.0))
    }

    /// A small secret integer, such as a bit or an index.
    #[must_use]
    pub fn from_small(value: u32) -> Self {
        Self(Box::new(Scalar::from(value)))
    }

    /// A second copy, on purpose.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        Self(self.0.clone())
    }

    pub(crate) fn inner(&self) -> &Scalar {
        &self.0
    }

    /// One of two.
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
    /// [`InvalidScalar::Zero`] has none.
    pub fn inverted(&self) -> Result<Self, InvalidScalar> {
        if *self.0 == Scalar::ZERO {
            return Err(InvalidScalar::Zero);
        }
        Ok(Self(Box::new(self.0.invert())))
    }

    /// What a proof says about a secret: nonce + challenge · secret. Public
    /// once the nonce is used for nothing else, which is `sigma`'s to see to.
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
    type Error = InvalidElement;

    fn try_from(bytes: [u8; 32]) -> Result<Self, InvalidElement> {
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

    fn scalar(bytes: [u8; 32]) -> Result<SecretScalar, InvalidScalar> {
        SecretScalar::from_bytes(&Secret::from_bytes(bytes))
    }

    #[test]
    fn zero_and_what_is_not_canonical_are_no_secrets() {
        assert_eq!(scalar([0; 32]).err(), Some(InvalidScalar::Zero));
        assert_eq!(scalar([0xff; 32]).err(), Some(InvalidScalar::NotCanonical));
        assert_eq!(SecretScalar::from_small(0).inverted().err(), Some(InvalidScalar::Zero));
        assert!(scalar([1; 32]).is_ok());
    }

    #[test]
    fn no_door_lets_the_identity_in() {
        let encoded = postcard::to_allocvec(&[0_u8; 32]).unwrap();
        assert!(postcard::from_bytes::<Element>(&encoded).is_err());
        let (g, one) = (Element::base(), SecretScalar::from_small(1));
        assert_eq!(Element::combine(&[(&one, &g)], &[], &[&g]), Err(Vanished));
        assert_eq!(Element::combine(&[], &[], &[]), Err(Vanished));
        assert_eq!(g.times(&SecretScalar::from_small(0)), Err(Vanished));
        assert_eq!(g.times(&one), Ok(g));
    }

    #[test]
    fn a_total_may_be_the_identity_and_an_element_not() {
        let (g, h) = (Element::base(), Element::second_base());
        let mut total = Total::zero();
        assert_eq!((total.element(), total.to_bytes()), (Err(Vanished), [0; 32]));
        total.add(&g);
        total.merge(&total.clone());
        total.add(&h);
        let two = SecretScalar::from_small(2);
        assert_eq!(total.element(), Element::combine(&[(&two, &g)], &[&h], &[]));
        assert!(Total::from_bytes(&total.to_bytes()) == Ok(total));
        [g, g, h].iter().for_each(|element| total.subtract(element));
        assert!(total == Total::zero() && Total::from_bytes(&[0; 32]) == Ok(total));
        assert_eq!(Total::from_bytes(&[0xff; 32]).err(), Some(InvalidElement::NotCanonical));
    }
}
