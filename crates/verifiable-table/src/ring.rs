//! The ring `R_Q = Z_Q[X]/(X^n + 1)` in residues, with all tables for encoding, encryption
//! and decryption.
//!
//! A polynomial is its limbs in sequence, n words each, in the order of
//! [`crate::arithmetic::ntt`]. It holds *values* unless documented as *coefficients*.

use crate::arithmetic::lanes::{Backend, Kernel, Lanes, WIDTH};
use crate::arithmetic::ntt::Ntt;
use crate::arithmetic::prime::{Factor, Factors, Modular, Prime};
use crate::spec::Spec;
use num_bigint::BigUint;
use zeroize::Zeroizing;

/// Words that are wiped when dropped.
pub(crate) type Words = Zeroizing<Vec<u64>>;

/// The bits of a centred binomial sample. Its magnitude is at most half of them.
pub(crate) const NOISE_BITS: u32 = 42;
/// The largest noise of a coefficient.
pub(crate) const NOISE: u64 = (NOISE_BITS / 2) as u64;
/// Items of every set are smaller than this.
pub const ITEM_LIMIT: i64 = 1 << 50;
pub(crate) const MAX_SLOTS: usize = 1 << 18;
const MAX_LIMBS: usize = 5;

/// A ring and its tables. All of this is public.
pub struct Ring {
    pub(crate) spec: Spec,
    pub(crate) backend: Backend,
    pub(crate) q: Vec<Ntt>,
    pub(crate) t: [Ntt; 2],
    encode: Encode,
    decode: Decode,
}

/// From residues modulo t1 and t2, plus noise, to residues modulo the q_j.
struct Encode {
    /// (t − 1)/2 modulo t1 and t2, and t1⁻¹ modulo t2.
    half: [u64; 2],
    inverse: Factor,
    /// For each limb: t1, t, and −(21t + (t − 1)/2).
    limbs: Vec<[u64; 3]>,
}

/// From residues modulo the q_j to those of the centred number modulo t1 and t2.
struct Decode {
    /// ⌊Q/2⌋ modulo each q_j.
    half: Vec<u64>,
    /// q_i⁻¹ modulo q_j, for i < j.
    inverses: Vec<Vec<Factor>>,
    /// For each of t1, t2: q_0…q_{i−1} modulo it, and −⌊Q/2⌋.
    digits: [(Vec<u64>, u64); 2],
}

impl Ring {
    pub(crate) fn new(spec: &Spec) -> Self {
        Self::on(spec, Backend::detect())
    }

    pub(crate) fn on(spec: &Spec, backend: Backend) -> Self {
        let Spec { degree, q, t, repetitions, .. } = *spec;
        assert!(degree.is_power_of_two() && (512..=MAX_SLOTS).contains(&degree));
        assert!((1..=MAX_LIMBS).contains(&q.len()) && (1..=3).contains(&repetitions));
        let alike = |primes: &[u64]| primes.iter().all(|a| primes.iter().all(|b| *a < 2 * b));
        assert!(alike(q) && alike(&t) && t[0] != t[1], "primes within a factor of two");
        // The sums in `Lower` are small enough for `reduce_few`.
        let digits: u128 = q.iter().map(|q| u128::from(*q)).sum();
        assert!(t.iter().all(|t| (digits + 1) * u128::from(*t) < 1 << 104));
        Self {
            encode: Encode::new(q, t),
            decode: Decode::new(q, t),
            q: q.iter().map(|p| Ntt::new(*p, degree, backend)).collect(),
            t: t.map(|p| Ntt::new(p, degree, backend)),
            spec: *spec,
            backend,
        }
    }

    /// n, the number of slots in a block.
    #[must_use]
    pub fn degree(&self) -> usize {
        self.spec.degree
    }

    /// The number of primes of Q.
    #[must_use]
    pub fn limbs(&self) -> usize {
        self.q.len()
    }

    /// The arithmetic in use on this machine: `avx512-ifma` or `portable`.
    #[must_use]
    pub fn backend(&self) -> &'static str {
        self.backend.name()
    }

    /// Q.
    #[must_use]
    pub fn modulus(&self) -> BigUint {
        self.spec.q.iter().map(|q| BigUint::from(*q)).product()
    }

    /// t = t1·t2.
    #[must_use]
    pub fn plain_modulus(&self) -> u128 {
        u128::from(self.spec.t[0]) * u128::from(self.spec.t[1])
    }

    pub(crate) fn words(&self) -> usize {
        self.degree() * self.limbs()
    }

    /// The limbs of a polynomial with their tables.
    pub(crate) fn limbs_of<'a>(
        &'a self,
        words: &'a mut [u64],
    ) -> impl Iterator<Item = (&'a Ntt, &'a mut [u64])> {
        self.q.iter().zip(words.chunks_exact_mut(self.degree()))
    }

    /// A message with one number for each slot, plus t times the noise, as values modulo Q.
    /// `noise` holds each coefficient's noise plus [`NOISE`].
    ///
    /// Numbers are smaller than [`ITEM_LIMIT`]. Missing slots are zero.
    pub(crate) fn encode(&self, slots: &[i64], noise: &[u64]) -> Words {
        let residues = self.residues(slots);
        let mut out = self.backend.run(Lift { ring: self, residues: &residues, noise });
        self.limbs_of(&mut out).for_each(|(ntt, limb)| ntt.forward(limb));
        out
    }

    /// A message's coefficients modulo t1 and t2.
    fn residues(&self, slots: &[i64]) -> [Words; 2] {
        [0, 1].map(|k| {
            let mut words =
                self.backend.run(Spread { prime: &self.t[k].prime, slots, n: self.degree() });
            self.t[k].inverse(&mut words);
            words
        })
    }

    /// A message's coefficients x as digits: x + (t − 1)/2 = v1 + t1·v2, with x centred.
    #[cfg(feature = "measure")]
    pub(crate) fn digits(&self, slots: &[i64]) -> [Words; 2] {
        let mut residues = self.residues(slots);
        self.backend.run(Join { ring: self, residues: &mut residues });
        residues
    }

    /// The centred numbers of all slots, from the values of m + t·e.
    pub(crate) fn decode(&self, mut phase: Words) -> Zeroizing<Vec<i128>> {
        self.limbs_of(&mut phase).for_each(|(ntt, limb)| ntt.inverse(limb));
        self.numbers(self.backend.run(Lower { ring: self, phase: &phase }))
    }

    /// The centred numbers of all slots, from coefficients modulo t1 and t2.
    pub(crate) fn numbers(&self, mut residues: [Words; 2]) -> Zeroizing<Vec<i128>> {
        residues.iter_mut().zip(&self.t).for_each(|(words, ntt)| ntt.forward(words));
        self.backend.run(Join { ring: self, residues: &mut residues });
        let (t1, half) = (i128::from(self.spec.t[0]), (self.plain_modulus() / 2).cast_signed());
        let number = |(low, high): (&u64, &u64)| i128::from(*low) + t1 * i128::from(*high) - half;
        Zeroizing::new(residues[0].iter().zip(residues[1].iter()).map(number).collect())
    }
}

fn residue(x: &BigUint, p: u64) -> u64 {
    (x % p).to_u64_digits().first().copied().unwrap_or(0)
}

fn inverse(x: u64, prime: &Prime) -> Factor {
    prime.factor(prime.invert(x % prime.p))
}

fn negated(x: u64, p: u64) -> u64 {
    (p - x) % p
}

impl Encode {
    fn new(q: &[u64], t: [u64; 2]) -> Self {
        let product = BigUint::from(t[0]) * t[1];
        let half: BigUint = &product / 2_u32;
        let shift = &product * NOISE + &half;
        let limb = |p: &u64| [t[0] % p, residue(&product, *p), negated(residue(&shift, *p), *p)];
        Self {
            half: t.map(|p| residue(&half, p)),
            inverse: inverse(t[0], &Prime::new(t[1])),
            limbs: q.iter().map(limb).collect(),
        }
    }
}

impl Decode {
    fn new(q: &[u64], t: [u64; 2]) -> Self {
        let modulus: BigUint = q.iter().map(|p| BigUint::from(*p)).product();
        let half: BigUint = &modulus / 2_u32;
        let inverses = |j: usize| {
            let prime = Prime::new(q[j]);
            q[..j].iter().map(|p| inverse(*p, &prime)).collect()
        };
        let digits = |p: u64| {
            let products = (0..q.len()).map(|i| q[..i].iter().map(|x| BigUint::from(*x)).product());
            (products.map(|x: BigUint| residue(&x, p)).collect(), negated(residue(&half, p), p))
        };
        Self {
            half: q.iter().map(|p| residue(&half, *p)).collect(),
            inverses: (0..q.len()).map(inverses).collect(),
            digits: t.map(digits),
        }
    }
}

/// Signed numbers modulo one prime.
struct Spread<'a> {
    prime: &'a Prime,
    slots: &'a [i64],
    n: usize,
}

impl Kernel for Spread<'_> {
    type Output = Words;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Words {
        let m = self.prime.on(lanes);
        let limit = ITEM_LIMIT.cast_unsigned();
        let mut words = Zeroizing::new(vec![limit; self.n]);
        for (word, slot) in words.iter_mut().zip(self.slots) {
            *word = limit.wrapping_add(slot.cast_unsigned());
        }
        let one = m.broadcast(self.prime.factor(1));
        let shift = lanes.splat(self.prime.reduce(u128::from(limit)));
        for words in words.as_chunks_mut::<WIDTH>().0 {
            let x = m.sub(m.mul_factor(lanes.load(words), one), shift);
            lanes.store(m.canonical(x), words);
        }
        words
    }
}

/// From coefficients modulo t1 and t2 to the centred ones plus t times the noise, modulo each
/// q_j.
struct Lift<'a> {
    ring: &'a Ring,
    residues: &'a [Words; 2],
    noise: &'a [u64],
}

impl Kernel for Lift<'_> {
    type Output = Words;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Words {
        let ring = self.ring;
        let mut out = Zeroizing::new(vec![0; ring.words()]);
        let joint = Joint::new(ring, lanes);
        let limbs: [_; MAX_LIMBS] = std::array::from_fn(|j| {
            let (ntt, constants) = (ring.q.get(j)?, ring.encode.limbs.get(j)?);
            Some((ntt.prime.on(lanes), constants.map(|c| lanes.splat(c))))
        });
        let [first, second] = self.residues.each_ref().map(|words| words.as_chunks::<WIDTH>().0);
        let noise = self.noise.as_chunks::<WIDTH>().0;
        for (at, ((a, b), e)) in first.iter().zip(second).zip(noise).enumerate() {
            let [v1, v2] = joint.digits(lanes.load(a), lanes.load(b));
            let e = lanes.load(e);
            for (j, (m, [t1, t, shift])) in limbs.iter().flatten().enumerate() {
                let mut sum = m.accumulate(m.accumulate(m.zero_sum(), v2, *t1), e, *t);
                sum.low = lanes.add(sum.low, lanes.add(v1, *shift));
                let limb = &mut out[j * ring.degree()..(j + 1) * ring.degree()];
                lanes.store(
                    m.canonical_from_loose(m.reduce_few(sum)),
                    &mut limb.as_chunks_mut::<WIDTH>().0[at],
                );
            }
        }
        out
    }
}

/// From two residues to the digits v1 + t1·v2 of x + (t − 1)/2 modulo t.
#[derive(Clone, Copy)]
struct Joint<L: Lanes> {
    first: Modular<L>,
    second: Modular<L>,
    half: [L::V; 2],
    inverse: Factors<L::V>,
}

impl<L: Lanes> Joint<L> {
    #[inline(always)]
    fn new(ring: &Ring, lanes: L) -> Self {
        let [first, second] = ring.t.each_ref().map(|ntt| ntt.prime.on(lanes));
        let Encode { half, inverse, .. } = &ring.encode;
        let inverse = second.broadcast(*inverse);
        Self { first, second, half: half.map(|h| lanes.splat(h)), inverse }
    }

    #[inline(always)]
    fn digits(&self, a: L::V, b: L::V) -> [L::V; 2] {
        let v1 = self.first.canonical(self.first.add(a, self.half[0]));
        let rest = self.second.sub(self.second.add(b, self.half[1]), v1);
        [v1, self.second.canonical(self.second.mul_factor(rest, self.inverse))]
    }
}

/// From coefficients modulo Q to the centred ones modulo t1 and t2.
struct Lower<'a> {
    ring: &'a Ring,
    phase: &'a [u64],
}

impl Kernel for Lower<'_> {
    type Output = [Words; 2];

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> [Words; 2] {
        let ring = self.ring;
        let (n, decode) = (ring.degree(), &ring.decode);
        let mut out = [0, 1].map(|_| Zeroizing::new(vec![0; n]));
        let limbs: [_; MAX_LIMBS] = std::array::from_fn(|j| {
            let (ntt, half) = (ring.q.get(j)?, decode.half.get(j)?);
            let m = ntt.prime.on(lanes);
            let inverse = |i| m.broadcast(decode.inverses[j].get(i).copied().unwrap_or_default());
            let inverses: [Factors<L::V>; MAX_LIMBS] = std::array::from_fn(inverse);
            let words = self.phase[j * n..(j + 1) * n].as_chunks::<WIDTH>().0;
            Some((m, words, lanes.splat(*half), inverses))
        });
        let t = [0, 1].map(|k| {
            let (products, shift) = &decode.digits[k];
            let product = |i| lanes.splat(products.get(i).copied().unwrap_or(0));
            let products: [L::V; MAX_LIMBS] = std::array::from_fn(product);
            (ring.t[k].prime.on(lanes), products, lanes.splat(*shift))
        });
        for at in 0..n / WIDTH {
            let mut digits = [lanes.splat(0); MAX_LIMBS];
            for (j, (m, words, half, inverses)) in limbs.iter().flatten().enumerate() {
                let mut x = m.add(lanes.load(&words[at]), *half);
                for i in 0..j {
                    x = m.mul_factor(m.sub(x, digits[i]), inverses[i]);
                }
                digits[j] = m.canonical(x);
            }
            for ((m, products, shift), out) in t.iter().zip(&mut out) {
                let pairs = digits.iter().zip(products);
                let mut sum =
                    pairs.fold(m.zero_sum(), |sum, (digit, x)| m.accumulate(sum, *digit, *x));
                sum.low = lanes.add(sum.low, *shift);
                lanes.store(
                    m.canonical_from_loose(m.reduce_few(sum)),
                    &mut out.as_chunks_mut::<WIDTH>().0[at],
                );
            }
        }
        out
    }
}

/// From residues of slots modulo t1 and t2 to the digits of the centred number.
struct Join<'a> {
    ring: &'a Ring,
    residues: &'a mut [Words; 2],
}

impl Kernel for Join<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let joint = Joint::new(self.ring, lanes);
        let [first, second] = self.residues;
        let (first, second) = (first.as_chunks_mut::<WIDTH>().0, second.as_chunks_mut::<WIDTH>().0);
        for (a, b) in first.iter_mut().zip(second) {
            let [v1, v2] = joint.digits(lanes.load(a), lanes.load(b));
            lanes.store(v1, a);
            lanes.store(v2, b);
        }
    }
}

#[cfg(test)]
impl Spec {
    /// A ring of any parameters, with no claim to security, for tests that must see a
    /// forgery succeed. It lives as long as the process.
    pub(crate) fn dangerous_ring(&self) -> &'static Ring {
        Box::leak(Box::new(Ring::new(self)))
    }
}
