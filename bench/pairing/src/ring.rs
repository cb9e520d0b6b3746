//! `Z_q[X]`: modulo `X^n + 1` for work with keys, without reduction where the server
//! multiplies. The hash is a value at a point, and a reduction preserves values only at roots
//! of `X^n + 1`. Encoding is that of the main scheme.

use crate::parameters::PairingSet;
use crate::scalars::{SecretScalars, Transform, draw, powers, root};
use alpheus_crypto::labels;
use alpheus_verifiable_table::baseline::{self, NOISE, Stream};
use alpheus_verifiable_table::ring::Ring;
use blstrs::Scalar;
use ff::{Field, PrimeField};
use num_bigint::BigUint;
use std::sync::OnceLock;
use zeroize::Zeroizing;

/// Coefficients modulo q.
pub(crate) type Polynomial = Vec<Scalar>;
/// Secret coefficients.
pub(crate) type SecretPolynomial = SecretScalars<Polynomial>;

/// A ring and its tables. All of it is public.
pub struct PairingRing {
    pub(crate) set: PairingSet,
    /// The main scheme's ring, for t and its encoding.
    pub(crate) plain: &'static Ring,
    negacyclic: Transform,
    /// ψ^i and ψ^−i for a root ψ of `X^n + 1`.
    twists: [Vec<Scalar>; 2],
    /// The transform of 2n values, for products without reduction.
    wide: Transform,
    /// t1, t, and 21t + (t − 1)/2.
    encode: [Scalar; 3],
    /// (q − 1)/2.
    half: Scalar,
    /// For t1 and t2: 2^51i modulo it, and −(q − 1)/2.
    digits: [([u64; DIGITS], u64); 2],
}

/// The bits of a digit of a scalar, and the number of digits.
const DIGIT: u32 = 51;
const DIGITS: usize = 5;

fn residue(x: &BigUint, p: u64) -> u64 {
    (x % p).to_u64_digits().first().copied().unwrap_or(0)
}

/// q.
pub(crate) fn modulus() -> BigUint {
    BigUint::from_bytes_le(&(-Scalar::ONE).to_bytes_le()) + 1_u32
}

impl PairingSet {
    /// Its ring with all tables, made once per process.
    #[must_use]
    pub fn ring(self) -> &'static PairingRing {
        static RINGS: [OnceLock<PairingRing>; 2] = [const { OnceLock::new() }; 2];
        RINGS[self as usize].get_or_init(|| PairingRing::new(self))
    }
}

impl PairingRing {
    /// c1 of a ciphertext, public, from a public seed.
    pub(crate) fn uniform(&self, seed: &[u8; 32]) -> Polynomial {
        let name = self.set.name().as_bytes();
        let prf = baseline::subkey(seed, labels::TABLE_PAIRING_UNIFORM, &[name]);
        let mut words = vec![Scalar::ZERO; self.degree()];
        draw(&mut Stream::new(&prf, 0), &mut words);
        words
    }

    fn new(set: PairingSet) -> Self {
        let plain = set.plain().ring();
        let primes = baseline::plain_primes(plain);
        let (n, [t1, t2]) = (plain.degree(), primes.map(Scalar::from));
        let psi = root(2 * n);
        let inverse = psi.invert().unwrap_or(Scalar::ZERO);
        let t = t1 * t2;
        let half_of = |x: Scalar| (x - Scalar::ONE) * Scalar::TWO_INV;
        let digits = primes.map(|p| {
            let power = |i: usize| residue(&(BigUint::from(1_u32) << (51 * i)), p);
            let half: BigUint = modulus() / 2_u32;
            (std::array::from_fn(power), (p - residue(&half, p)) % p)
        });
        Self {
            set,
            plain,
            negacyclic: Transform::new(n),
            twists: [powers(psi, n), powers(inverse, n)],
            wide: Transform::new(2 * n),
            encode: [t1, t, t * Scalar::from(NOISE) + half_of(t)],
            half: half_of(Scalar::ZERO),
            digits,
        }
    }

    /// n: the slots of a block.
    #[must_use]
    pub fn degree(&self) -> usize {
        self.plain.degree()
    }

    /// Values at the roots of `X^n + 1`.
    pub(crate) fn values(&self, mut coefficients: Polynomial) -> Polynomial {
        times(&mut coefficients, &self.twists[0]);
        self.negacyclic.forward(&mut coefficients);
        coefficients
    }

    /// Coefficients from values at the roots of `X^n + 1`.
    pub(crate) fn coefficients(&self, mut values: Polynomial) -> Polynomial {
        self.negacyclic.inverse(&mut values);
        times(&mut values, &self.twists[1]);
        values
    }

    /// 2n values of a polynomial of n coefficients.
    pub(crate) fn wide_values(&self, coefficients: &[Scalar]) -> Polynomial {
        let mut words = coefficients.to_vec();
        words.resize(2 * self.degree(), Scalar::ZERO);
        self.wide.forward(&mut words);
        words
    }

    /// The 2n − 1 coefficients of a product, from its 2n values.
    pub(crate) fn wide_coefficients(&self, mut values: Polynomial) -> Polynomial {
        self.wide.inverse(&mut values);
        values.truncate(self.product_length());
        values
    }

    /// The number of coefficients of a product.
    pub(crate) fn product_length(&self) -> usize {
        2 * self.degree() - 1
    }

    /// Modulo `X^n + 1`.
    pub(crate) fn reduce(&self, coefficients: &[Scalar]) -> Polynomial {
        let n = self.degree();
        let (low, high) = coefficients.split_at(n.min(coefficients.len()));
        let mut out = low.to_vec();
        out.iter_mut().zip(high).for_each(|(low, high)| *low -= high);
        out
    }

    /// m + t·e, from a number for each slot and, for each coefficient, its noise plus
    /// [`NOISE`].
    pub(crate) fn encode(&self, slots: &[i64], noise: &[u64]) -> SecretPolynomial {
        let [t1, t, shift] = &self.encode;
        let digits = baseline::encode(self.plain, slots);
        let [low, high] = digits.each_ref().map(|words| words.iter());
        let number = |((v1, v2), e): ((&u64, &u64), &u64)| {
            Scalar::from(*v1) + Scalar::from(*v2) * t1 + Scalar::from(*e) * t - shift
        };
        SecretScalars(low.zip(high).zip(noise).map(number).collect())
    }

    /// The centred numbers of all slots, from the coefficients of m + t·e.
    pub(crate) fn decode(&self, phase: &SecretPolynomial) -> Zeroizing<Vec<i128>> {
        let mut digits = [(); DIGITS].map(|()| Zeroizing::new(vec![0; phase.len()]));
        for (at, x) in phase.iter().enumerate() {
            let bytes = Zeroizing::new((*x + self.half).to_bytes_le());
            for (i, digits) in digits.iter_mut().enumerate() {
                digits[at] = digit(&bytes, i);
            }
        }
        baseline::decode(self.plain, &digits, &self.digits)
    }
}

/// Bits 51i to 51(i + 1).
fn digit(bytes: &[u8; 32], i: usize) -> u64 {
    let (first, shift) = (i * DIGIT as usize / 8, i * DIGIT as usize % 8);
    let mut word = [0; 8];
    let rest = bytes.get(first..).unwrap_or_default();
    word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    u64::from_le_bytes(word) >> shift & ((1 << DIGIT) - 1)
}

/// a·b, element by element.
pub(crate) fn times(a: &mut [Scalar], b: &[Scalar]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a *= b);
}

/// a + b.
pub(crate) fn plus(a: &mut [Scalar], b: &[Scalar]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
}

/// a − b.
pub(crate) fn minus(a: &mut [Scalar], b: &[Scalar]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a -= b);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalars::{signed, two_to};

    #[test]
    fn q_is_the_order_of_the_groups() {
        let q = "73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001";
        assert_eq!(modulus().to_str_radix(16), q);
        assert_eq!(Scalar::from(1_u64 << 60) * two_to(4), two_to(64));
    }

    /// With noise, at both ends of the range, and with both signs.
    #[test]
    fn decoding_inverts_encoding() {
        let ring = PairingSet::P80.ring();
        let top = (1_i64 << 50) - 1;
        let slots: Vec<i64> =
            (0..8192).map(|i| [top, -top, 0, i, -i][usize::try_from(i % 5).unwrap()]).collect();
        let noise: Vec<u64> = (0..8192).map(|i| i % 43).collect();
        let encoded = ring.encode(&slots, &noise);
        let decoded = ring.decode(&encoded);
        assert!(decoded.iter().zip(&slots).all(|(a, b)| *a == i128::from(*b)));
        // Multiplied by −3, as a weighted sum would be.
        let tripled = SecretScalars(encoded.iter().map(|x| *x * signed(-3)).collect());
        let decoded = ring.decode(&tripled);
        assert!(decoded.iter().zip(&slots).all(|(a, b)| *a == -3 * i128::from(*b)));
    }

    #[test]
    fn reducing_a_product_equals_multiplying_modulo_the_polynomial() {
        let ring = PairingSet::P80.ring();
        let a: Polynomial = (0..8192).map(|i| Scalar::from(i * i + 1)).collect();
        let b: Polynomial = (0..8192).map(|i| -Scalar::from(7 * i + 3)).collect();
        let mut long = ring.wide_values(&a);
        times(&mut long, &ring.wide_values(&b));
        let long = ring.wide_coefficients(long);
        assert_eq!(long.len(), ring.product_length());
        assert_eq!(long[1], a[0] * b[1] + a[1] * b[0]);
        let mut short = ring.values(a);
        times(&mut short, &ring.values(b));
        assert_eq!(ring.coefficients(short), ring.reduce(&long));
    }
}
