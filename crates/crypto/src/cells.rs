//! Tables of sums of elements, and bytes embedded in elements.
//!
//! An [`Element`] is never the identity, but a sum can be. Computing a sum takes the same time
//! for all scalars.

use crate::group::{Element, SecretScalar};
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoBasepointTable, RistrettoPoint};
use curve25519_dalek::traits::{Identity, IsIdentity};
use rand_core::CryptoRng;
use zeroize::Zeroize;

/// Number of bytes that an element can hold.
pub const EMBEDDED_BYTES: usize = 30;

/// Sums of elements, each of which can be the identity. Wiped when dropped, since they can be
/// secret.
pub struct Cells(Vec<RistrettoPoint>);

/// A precomputed table of 30 kilobytes that makes many multiples of an element cheap.
pub struct MultiplicationTable(RistrettoBasepointTable);

impl MultiplicationTable {
    /// Computes the table, in about the time of ten multiplications.
    #[must_use]
    pub fn new(element: &Element) -> Self {
        Self(RistrettoBasepointTable::create(&element.point))
    }
}

impl Cells {
    /// `count` sums, all of them the identity.
    #[must_use]
    pub fn zero(count: usize) -> Self {
        Self(vec![RistrettoPoint::identity(); count])
    }

    /// The number of sums.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Adds k·P to a cell. Does nothing if there is no such cell.
    pub fn add(&mut self, at: usize, scalar: &SecretScalar, of: &MultiplicationTable) {
        if let Some(cell) = self.0.get_mut(at) {
            *cell += &of.0 * scalar.inner();
        }
    }

    /// Adds each of another table's cells to the cell at the same index.
    pub fn add_all(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(cell, more)| *cell += more);
    }

    /// The sum in a cell. `None` if it is the identity or there is no such cell.
    #[must_use]
    pub fn read(&self, at: usize) -> Option<Element> {
        let point = self.0.get(at).filter(|point| !point.is_identity())?;
        Some(Element { point: *point, bytes: point.compress().to_bytes() })
    }
}

impl Drop for Cells {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(Zeroize::zeroize);
    }
}

impl Element {
    /// A random element that holds bytes. One in four attempts succeeds. Each attempt draws
    /// its own random bits, so the time does not depend on the bytes.
    #[must_use]
    pub fn embed(bytes: &[u8; EMBEDDED_BYTES], rng: &mut impl CryptoRng) -> Self {
        loop {
            let mut candidate = [0; 32];
            rng.fill_bytes(&mut candidate);
            // Encodings are even numbers below 2^255.
            candidate[0] &= 0xfe;
            candidate[31] &= 0x7f;
            candidate[1..=EMBEDDED_BYTES].copy_from_slice(bytes);
            if let Some(point) = CompressedRistretto(candidate).decompress()
                && !point.is_identity()
            {
                return Self { point, bytes: candidate };
            }
        }
    }

    /// The bytes that [`Element::embed`] put there. Meaningless for any other element.
    #[must_use]
    pub fn embedded_bytes(&self) -> [u8; EMBEDDED_BYTES] {
        std::array::from_fn(|i| self.bytes[i + 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::{ChaCha20Rng, rand_core::SeedableRng};

    #[test]
    fn an_element_returns_the_bytes_embedded_in_it() {
        let rng = &mut ChaCha20Rng::from_seed([1; 32]);
        for byte in 0..40 {
            let bytes = [byte * 6; EMBEDDED_BYTES];
            let element = Element::embed(&bytes, rng);
            assert_eq!(element.embedded_bytes(), bytes);
            assert_eq!(Element::from_bytes(element.as_bytes()), Ok(element));
        }
    }

    #[test]
    fn cells_hold_sums_and_none_for_the_identity() {
        let rng = &mut ChaCha20Rng::from_seed([2; 32]);
        let element = Element::from_hash("alpheus/test-cell/v1", &[]);
        let (k, multiples) = (SecretScalar::random(rng), MultiplicationTable::new(&element));
        let (mut one, mut other) = (Cells::zero(2), Cells::zero(2));
        assert!(one.read(0).is_none() && one.read(2).is_none());
        one.add(1, &k, &multiples);
        assert_eq!(one.read(1), element.times(&k).ok());
        other.add(1, &SecretScalar::from_small(0).minus(&k), &multiples);
        one.add_all(&other);
        assert!(one.read(1).is_none());
    }
}
