//! `Z_q[X]` modulo `X^n + 1` where keys meet it, and without reduction where the server
//! multiplies: the hash is a value at a point, and no point but a root of `X^n + 1` would
//! survive a reduction. Encoding is that of the other sets.

use super::parameters::PairingSet;
use super::scalars::{Hidden, Transform, powers, root};
use crate::arithmetic::lanes::{Kernel, Lanes, WIDTH};
use crate::ring::{NOISE, Ring, Words, residue};
use blstrs::Scalar;
use ff::{Field, PrimeField};
use num_bigint::BigUint;
use zeroize::Zeroizing;

/// Coefficients modulo q.
pub(crate) type Polynomial = Vec<Scalar>;
/// Secret ones.
pub(crate) type HiddenPolynomial = Hidden<Polynomial>;

/// A ring and its tables. All of it is public.
pub struct PairingRing {
    pub(crate) set: PairingSet,
    /// For t, and its transforms.
    pub(crate) plain: &'static Ring,
    negacyclic: Transform,
    /// ψ^i and ψ^−i for a root ψ of `X^n + 1`.
    twists: [Vec<Scalar>; 2],
    /// Of 2n values: products of two polynomials without reduction.
    wide: Transform,
    /// t1, t, and 21t + (t − 1)/2.
    encode: [Scalar; 3],
    /// (q − 1)/2.
    half: Scalar,
    /// For t1 and t2: 2^51i modulo it, and −(q − 1)/2.
    digits: [([u64; DIGITS], u64); 2],
}

/// Bits of a digit of a scalar, and how many it has.
const DIGIT: u32 = 51;
const DIGITS: usize = 5;

/// q.
pub(crate) fn modulus() -> BigUint {
    BigUint::from_bytes_le(&(-Scalar::ONE).to_bytes_le()) + 1_u32
}

impl PairingRing {
    pub(crate) fn new(set: PairingSet) -> Self {
        let plain = set.plain().ring();
        let (n, [t1, t2]) = (plain.degree(), plain.spec.t.map(Scalar::from));
        let psi = root(2 * n);
        let inverse = psi.invert().unwrap_or(Scalar::ZERO);
        let t = t1 * t2;
        let half_of = |x: Scalar| (x - Scalar::ONE) * Scalar::TWO_INV;
        let digits = plain.spec.t.map(|p| {
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
    pub(crate) fn widen(&self, coefficients: &[Scalar]) -> Polynomial {
        let mut words = coefficients.to_vec();
        words.resize(2 * self.degree(), Scalar::ZERO);
        self.wide.forward(&mut words);
        words
    }

    /// The 2n − 1 coefficients of a product, from its 2n values.
    pub(crate) fn unreduced(&self, mut values: Polynomial) -> Polynomial {
        self.wide.inverse(&mut values);
        values.truncate(self.product_length());
        values
    }

    /// Coefficients of a product.
    pub(crate) fn product_length(&self) -> usize {
        2 * self.degree() - 1
    }

    /// Modulo `X^n + 1`.
    pub(crate) fn reduced(&self, coefficients: &[Scalar]) -> Polynomial {
        let n = self.degree();
        let (low, high) = coefficients.split_at(n.min(coefficients.len()));
        let mut out = low.to_vec();
        out.iter_mut().zip(high).for_each(|(low, high)| *low -= high);
        out
    }

    /// m + t·e: a number for each slot, and for each coefficient its noise plus
    /// [`NOISE`].
    pub(crate) fn encode(&self, slots: &[i64], noise: &[u64]) -> HiddenPolynomial {
        let [t1, t, shift] = &self.encode;
        let digits = self.plain.digits(slots);
        let [low, high] = digits.each_ref().map(|words| words.iter());
        let number = |((v1, v2), e): ((&u64, &u64), &u64)| {
            Scalar::from(*v1) + Scalar::from(*v2) * t1 + Scalar::from(*e) * t - shift
        };
        Hidden(low.zip(high).zip(noise).map(number).collect())
    }

    /// The centred numbers of all slots, from the coefficients of m + t·e.
    pub(crate) fn decode(&self, phase: &HiddenPolynomial) -> Zeroizing<Vec<i128>> {
        let mut digits = [(); DIGITS].map(|()| Zeroizing::new(vec![0; phase.len()]));
        for (at, x) in phase.iter().enumerate() {
            let bytes = Zeroizing::new((*x + self.half).to_bytes_le());
            for (i, digits) in digits.iter_mut().enumerate() {
                digits[at] = digit(&bytes, i);
            }
        }
        self.plain.numbers(self.plain.backend.run(Lower { ring: self, digits: &digits }))
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

/// a·b, place by place.
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

/// Digits of numbers plus (q − 1)/2 to those numbers modulo t1 and t2.
struct Lower<'a> {
    ring: &'a PairingRing,
    digits: &'a [Words; DIGITS],
}

impl Kernel for Lower<'_> {
    type Output = [Words; 2];

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> [Words; 2] {
        let plain = self.ring.plain;
        let digits = self.digits.each_ref().map(|words| words.as_chunks::<WIDTH>().0);
        [0, 1].map(|k| {
            let (m, (powers, shift)) = (plain.t[k].prime.on(lanes), &self.ring.digits[k]);
            let (powers, shift) = (powers.map(|power| lanes.splat(power)), lanes.splat(*shift));
            let mut out = Zeroizing::new(vec![0; plain.degree()]);
            for (at, out) in out.as_chunks_mut::<WIDTH>().0.iter_mut().enumerate() {
                let pairs = digits.iter().zip(&powers);
                let gathered = |sum, (digits, power): (&&[[u64; WIDTH]], &L::V)| {
                    m.gather(sum, lanes.load(&digits[at]), *power)
                };
                let mut sum = pairs.fold(m.nothing(), gathered);
                sum.low = lanes.add(sum.low, shift);
                lanes.store(m.settle(sum), out);
            }
            out
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairing::scalars::{signed, two_to};

    #[test]
    fn q_is_the_order_of_the_groups() {
        let q = "73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001";
        assert_eq!(modulus().to_str_radix(16), q);
        assert_eq!(Scalar::from(1_u64 << 60) * two_to(4), two_to(64));
    }

    /// Also with noise, at both ends of the range, and of both signs.
    #[test]
    fn what_is_encoded_is_decoded() {
        let ring = PairingSet::P80.ring();
        let top = (1_i64 << 50) - 1;
        let slots: Vec<i64> =
            (0..8192).map(|i| [top, -top, 0, i, -i][usize::try_from(i % 5).unwrap()]).collect();
        let noise: Vec<u64> = (0..8192).map(|i| i % 43).collect();
        let encoded = ring.encode(&slots, &noise);
        let decoded = ring.decode(&encoded);
        assert!(decoded.iter().zip(&slots).all(|(a, b)| *a == i128::from(*b)));
        // Multiplied by a small number and by −1, as a sum of such would be.
        let tripled = Hidden(encoded.iter().map(|x| *x * signed(-3)).collect());
        let decoded = ring.decode(&tripled);
        assert!(decoded.iter().zip(&slots).all(|(a, b)| *a == -3 * i128::from(*b)));
    }

    /// Reducing after multiplying is multiplying modulo X^n + 1.
    #[test]
    fn products_reduce_to_products() {
        let ring = PairingSet::P80.ring();
        let a: Polynomial = (0..8192).map(|i| Scalar::from(i * i + 1)).collect();
        let b: Polynomial = (0..8192).map(|i| -Scalar::from(7 * i + 3)).collect();
        let mut long = ring.widen(&a);
        times(&mut long, &ring.widen(&b));
        let long = ring.unreduced(long);
        assert_eq!(long.len(), ring.product_length());
        assert_eq!(long[1], a[0] * b[1] + a[1] * b[0]);
        let mut short = ring.values(a);
        times(&mut short, &ring.values(b));
        assert_eq!(ring.coefficients(short), ring.reduced(&long));
    }
}
