//! The field that an audit computes in. Each operation takes time that depends on no value.

use alpheus_crypto::hash::labelled_hash;
use polyval::Polyval;
use polyval::universal_hash::UniversalHash;
use rand_core::CryptoRng;
use subtle::{Choice, ConditionallySelectable};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// A field of at least 2^128 elements. Its values may be secret: they are wiped, and copied only
/// explicitly.
pub trait Field: Sized {
    /// Bytes of an encoding.
    const BYTES: usize;

    /// The interpolation nodes 0, 1 and 2 of a proof's polynomials: three different numbers. The
    /// first is zero, the second one.
    fn node(index: u8) -> Self;
    /// The sum.
    fn plus(&self, other: &Self) -> Self;
    /// The difference.
    fn minus(&self, other: &Self) -> Self;
    /// The product.
    fn times(&self, other: &Self) -> Self;
    /// The inverse. The inverse of zero is zero.
    fn inverse(&self) -> Self;
    /// A hash of parts as a number, which nobody can choose.
    fn from_hash(label: &str, parts: &[&[u8]]) -> Self;
    /// Draws a number.
    fn random(rng: &mut impl CryptoRng) -> Self;
    /// The encoding, for sending and storing.
    fn expose(&self) -> Vec<u8>;
    /// Decodes a number. `None` if the bytes are not one.
    fn from_bytes(bytes: &[u8]) -> Option<Self>;
    /// An explicit copy.
    fn duplicate(&self) -> Self;
    /// Selects one of two numbers.
    fn select(one: &Self, other: &Self, second: Choice) -> Self;

    /// Whether two numbers are equal. Both must be public.
    fn equals(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }

    /// The number to the power of a secret exponent below 2^32.
    fn power(&self, exponent: u32) -> Self {
        let mut power = Self::node(1);
        for bit in (0..32).rev() {
            let square = power.times(&power);
            let set = Choice::from(u8::from(exponent >> bit & 1 == 1));
            power = Self::select(&square, &square.times(self), set);
        }
        power
    }
}

/// GF(2^128) with POLYVAL's product a·b·X^−128 (RFC 8452 §3). With it X^128 is the unit.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Binary(pub(crate) [u8; 16]);

impl Binary {
    /// X^128 = X^127 + X^126 + X^121 + 1.
    const UNIT: [u8; 16] = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xc2];
    const TWO: [u8; 16] = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
}

impl Field for Binary {
    const BYTES: usize = 16;

    fn node(index: u8) -> Self {
        Self(match index {
            0 => [0; 16],
            1 => Self::UNIT,
            _ => Self::TWO,
        })
    }

    fn plus(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] ^ other.0[i]))
    }

    fn minus(&self, other: &Self) -> Self {
        self.plus(other)
    }

    fn times(&self, other: &Self) -> Self {
        let mut product = Polyval::new(&self.0.into());
        product.update(&[other.0.into()]);
        Self(product.finalize().into())
    }

    /// By Fermat: the number to the power 2^128 − 2 = 2 + 4 + … + 2^127.
    fn inverse(&self) -> Self {
        let mut square = self.times(self);
        let mut inverse = square.duplicate();
        for _ in 2..128 {
            square = square.times(&square);
            inverse = inverse.times(&square);
        }
        inverse
    }

    fn from_hash(label: &str, parts: &[&[u8]]) -> Self {
        let digest = labelled_hash(label, parts);
        Self(std::array::from_fn(|i| digest.0[i]))
    }

    fn random(rng: &mut impl CryptoRng) -> Self {
        let mut number = Self([0; 16]);
        rng.fill_bytes(&mut number.0);
        number
    }

    fn expose(&self) -> Vec<u8> {
        self.0.to_vec()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    fn duplicate(&self) -> Self {
        Self(self.0)
    }

    fn select(one: &Self, other: &Self, second: Choice) -> Self {
        let byte = |i: usize| u8::conditional_select(&one.0[i], &other.0[i], second);
        Self(std::array::from_fn(byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// Unit, inverses, commutativity, associativity, distributivity.
        #[test]
        fn binary_is_a_field(a: [u8; 16], b: [u8; 16], c: [u8; 16], e in 0_u32..40) {
            let [a, b, c] = [Binary(a), Binary(b), Binary(c)];
            let one = Binary::node(1);
            prop_assert!(a.times(&one).equals(&a));
            prop_assert!(a.times(&b).equals(&b.times(&a)));
            prop_assert!(a.times(&b).times(&c).equals(&a.times(&b.times(&c))));
            prop_assert!(a.times(&b.plus(&c)).equals(&a.times(&b).plus(&a.times(&c))));
            if a.0 != [0; 16] {
                prop_assert!(a.times(&a.inverse()).equals(&one));
            }
            let straight = (0..e).fold(Binary::node(1), |p, _| p.times(&a));
            prop_assert!(a.power(e).equals(&straight));
        }
    }

    #[test]
    fn the_nodes_differ() {
        assert!(!Binary::node(1).equals(&Binary::node(2)));
        assert!(!Binary::node(0).equals(&Binary::node(2)));
    }
}
