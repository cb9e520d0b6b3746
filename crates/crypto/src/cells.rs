//! Tables of sums of elements, where a sum may be nothing, and bytes as elements.
//!
//! [`Element`] is never the identity; what has been summed up may be. Sums here take the
//! same time whatever the scalars are.

use crate::group::{Element, SecretScalar};
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoBasepointTable, RistrettoPoint};
use curve25519_dalek::traits::{Identity, IsIdentity};
use rand_core::CryptoRng;
use zeroize::Zeroize;

/// Bytes that one element holds.
pub const EMBEDDED: usize = 30;

/// Sums of elements, each of which may be nothing. Secret or not: wiped when dropped.
pub struct Cells(Vec<RistrettoPoint>);

/// An element with what makes many multiples of it cheap: 30 kilobytes.
pub struct Multiples(RistrettoBasepointTable);

impl Multiples {
    /// Works them out, for about ten multiplications' time.
    #[must_use]
    pub fn of(element: &Element) -> Self {
        Self(RistrettoBasepointTable::create(&element.point))
    }
}

impl Cells {
    /// So many, all of them nothing.
    #[must_use]
    pub fn empty(many: usize) -> Self {
        Self(vec![RistrettoPoint::identity(); many])
    }

    /// How many.
    #[must_use]
    pub fn many(&self) -> usize {
        self.0.len()
    }

    /// Adds k·P to one cell; to none, if there is no such cell.
    pub fn add(&mut self, at: usize, scalar: &SecretScalar, of: &Multiples) {
        if let Some(cell) = self.0.get_mut(at) {
            *cell += &of.0 * scalar.inner();
        }
    }

    /// Adds each of another table's cells to the one in its place.
    pub fn add_all(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(cell, more)| *cell += more);
    }

    /// What stands in a cell; none if that is nothing.
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
    /// An element that holds bytes. One in four tries succeeds, each with bits of its own,
    /// so the time tells nothing of the bytes.
    #[must_use]
    pub fn holding(bytes: &[u8; EMBEDDED], rng: &mut impl CryptoRng) -> Self {
        loop {
            let mut tried = [0; 32];
            rng.fill_bytes(&mut tried);
            // Encodings are even numbers below 2^255.
            tried[0] &= 0xfe;
            tried[31] &= 0x7f;
            tried[1..=EMBEDDED].copy_from_slice(bytes);
            if let Some(point) = CompressedRistretto(tried).decompress()
                && !point.is_identity()
            {
                return Self { point, bytes: tried };
            }
        }
    }

    /// The bytes that [`Element::holding`] put there; of any other element some bytes.
    #[must_use]
    pub fn held(&self) -> [u8; EMBEDDED] {
        std::array::from_fn(|i| self.bytes[i + 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

    #[test]
    fn elements_hold_bytes() {
        let rng = &mut ChaCha20Rng::from_seed([1; 32]);
        for byte in 0..40 {
            let bytes = [byte * 6; EMBEDDED];
            let element = Element::holding(&bytes, rng);
            assert_eq!(element.held(), bytes);
            assert_eq!(Element::from_bytes(element.as_bytes()), Ok(element));
        }
    }

    #[test]
    fn cells_are_sums() {
        let rng = &mut ChaCha20Rng::from_seed([2; 32]);
        let element = Element::hashed("alpheus/test-cell/v1", &[]);
        let (k, multiples) = (SecretScalar::random(rng), Multiples::of(&element));
        let (mut one, mut other) = (Cells::empty(2), Cells::empty(2));
        assert!(one.read(0).is_none() && one.read(2).is_none());
        one.add(1, &k, &multiples);
        assert_eq!(one.read(1), element.times(&k).ok());
        other.add(1, &SecretScalar::from_small(0).minus(&k), &multiples);
        one.add_all(&other);
        assert!(one.read(1).is_none());
    }
}
