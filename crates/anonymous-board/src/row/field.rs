//! GF(2^1409): polynomials over GF(2) modulo X^1409 + X^194 + 1. A row's content m is one element;
//! with m³ beside it, two contents that collide can be recovered.
//!
//! The degree is odd, so the half-trace solves quadratic equations.

use zeroize::Zeroize;

const DEGREE: usize = 1409;
const WORDS: usize = 23;
/// Bytes of an element.
pub(super) const BYTES: usize = 177;

/// An element. It may hold a writer's message, hence no `Copy` and no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Element([u64; WORDS]);

impl Drop for Element {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl Element {
    /// Decodes at most [`BYTES`] little-endian bytes. `None` if they exceed an element.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut words = [0; WORDS];
        if bytes.len() > BYTES {
            return None;
        }
        for (word, bytes) in words.iter_mut().zip(bytes.chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(padded);
        }
        (words[WORDS - 1] >> 1 == 0).then_some(Self(words))
    }

    /// Little-endian bytes.
    pub(super) fn to_bytes(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        for (bytes, word) in bytes.chunks_mut(8).zip(&self.0) {
            bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
        }
        bytes
    }

    pub(super) fn is_zero(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] ^ other.0[i]))
    }

    pub(super) fn plus_one(&self) -> Self {
        let mut sum = self.clone();
        sum.0[0] ^= 1;
        sum
    }

    /// The product, in time that does not depend on the factors.
    pub(super) fn times(&self, other: &Self) -> Self {
        let mut product = [0; 2 * WORDS];
        let mut shifted = [0; WORDS + 1];
        shifted[..WORDS].copy_from_slice(&other.0);
        for bit in 0..64 {
            for (at, word) in self.0.iter().enumerate() {
                let mask = 0u64.wrapping_sub(word >> bit & 1);
                let places = product[at..].iter_mut();
                places.zip(&shifted).for_each(|(place, word)| *place ^= mask & word);
            }
            let mut carry = 0;
            for word in &mut shifted {
                let next = *word >> 63;
                *word = *word << 1 | carry;
                carry = next;
            }
        }
        reduced(product)
    }

    pub(super) fn square(&self) -> Self {
        let mut product = [0; 2 * WORDS];
        for (pair, word) in product.chunks_exact_mut(2).zip(&self.0) {
            pair[0] = spread(*word & 0xffff_ffff);
            pair[1] = spread(*word >> 32);
        }
        reduced(product)
    }

    /// m³.
    pub(super) fn cube(&self) -> Self {
        self.square().times(self)
    }

    /// 1/a = a^(2^1409 − 2), after Itoh and Tsujii; zero for zero.
    pub(super) fn inverse(&self) -> Self {
        // `power` is a^(2^k − 1).
        let (mut power, mut k) = (self.clone(), 1);
        let exponent = DEGREE - 1;
        for bit in (0..exponent.ilog2()).rev() {
            let raised = (0..k).fold(power.clone(), |value, _| value.square());
            power = raised.times(&power);
            k *= 2;
            if exponent >> bit & 1 == 1 {
                power = power.square().times(self);
                k += 1;
            }
        }
        power.square()
    }

    /// A solution w of w² + w = c, if there is one. The other solution is w + 1.
    pub(super) fn solve(c: &Self) -> Option<Self> {
        let mut sum = c.clone();
        let mut term = c.clone();
        for _ in 0..(DEGREE - 1) / 2 {
            term = term.square().square();
            sum = sum.plus(&term);
        }
        (sum.square().plus(&sum) == *c).then_some(sum)
    }
}

/// Spreads 32 bits, with a zero bit after each.
fn spread(half: u64) -> u64 {
    let mut x = half;
    for (shift, mask) in [
        (16, 0x0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    ] {
        x = (x | x << shift) & mask;
    }
    x
}

/// Reduces modulo X^1409 + X^194 + 1: X^(64·i) = X^(64·(i−19)+1) + X^(64·(i−23)+63).
fn reduced(mut product: [u64; 2 * WORDS]) -> Element {
    for i in (WORDS..2 * WORDS).rev() {
        let word = std::mem::take(&mut product[i]);
        product[i - 23] ^= word << 63;
        product[i - 22] ^= word >> 1;
        product[i - 19] ^= word << 1;
        product[i - 18] ^= word >> 63;
    }
    let over = product[22] >> 1;
    product[22] &= 1;
    product[0] ^= over;
    product[3] ^= over << 2;
    product[4] ^= over >> 62;
    let element = Element(std::array::from_fn(|i| product[i]));
    product.zeroize();
    element
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn element(seed: &[u8]) -> Element {
        let bytes: Vec<u8> = seed.iter().copied().cycle().take(176).collect();
        Element::from_bytes(&bytes).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn it_is_a_field(seed in proptest::collection::vec(any::<u8>(), 176), other in proptest::collection::vec(any::<u8>(), 176)) {
            let (a, b) = (Element::from_bytes(&seed).unwrap(), Element::from_bytes(&other).unwrap());
            let c = element(&seed[..7]);
            prop_assert!(a.times(&b) == b.times(&a));
            prop_assert!(a.times(&b).times(&c) == a.times(&b.times(&c)));
            prop_assert!(a.times(&b.plus(&c)) == a.times(&b).plus(&a.times(&c)));
            prop_assert!(a.square() == a.times(&a));
            prop_assert!(a.is_zero() || a.times(&a.inverse()).plus_one().is_zero());
            let solvable = a.square().plus(&a);
            let w = Element::solve(&solvable).unwrap();
            prop_assert!(w == a || w.plus_one() == a);
        }

        /// Half of all c have no root: their trace is one.
        #[test]
        fn an_equation_without_a_root_has_no_solution(seed in proptest::collection::vec(any::<u8>(), 176)) {
            let a = Element::from_bytes(&seed).unwrap();
            let one = Element::from_bytes(&[1]).unwrap();
            prop_assert!(Element::solve(&a).is_some() != Element::solve(&a.plus(&one)).is_some());
        }

        #[test]
        fn bytes_round_trip(seed in proptest::collection::vec(any::<u8>(), 0..=176)) {
            let bytes = Element::from_bytes(&seed).unwrap().to_bytes();
            prop_assert_eq!(&bytes[..seed.len()], seed.as_slice());
            prop_assert!(bytes[seed.len()..].iter().all(|b| *b == 0));
        }
    }

    #[test]
    fn too_large_numbers_are_rejected() {
        let mut bytes = [0; BYTES];
        bytes[176] = 2;
        assert!(Element::from_bytes(&bytes).is_none());
        bytes[176] = 1;
        assert!(Element::from_bytes(&bytes).is_some());
        assert!(Element::from_bytes(&[0; 178]).is_none());
    }
}
