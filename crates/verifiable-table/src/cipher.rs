//! Secret-key encryption: c0 = m + t·e − c1·s, with c1 from a public seed.

use crate::arithmetic::lanes::{Kernel, Lanes, WIDTH};
use crate::arithmetic::prime::Wide;
use crate::ring::{Ring, Words};
use crate::sampling;
use alpheus_crypto::prf::Prf;
use zeroize::Zeroizing;

/// A ciphertext of two components, or a product of three, as values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ciphertext(pub(crate) Vec<Vec<u64>>);

impl Ciphertext {
    /// Zero, with this many components.
    pub(crate) fn zero(ring: &Ring, components: usize) -> Self {
        Self(vec![vec![0; ring.words()]; components])
    }

    pub(crate) fn parts(&self) -> Vec<&[u64]> {
        self.0.iter().map(Vec::as_slice).collect()
    }

    /// The two components of a ciphertext that is not a product.
    pub(crate) fn pair(&self) -> [&[u64]; 2] {
        [&self.0[0], &self.0[1]]
    }
}

/// s, −s and s², as values.
pub(crate) struct SecretKey {
    negative: Words,
    powers: [Words; 2],
}

impl SecretKey {
    /// Draws s from its own key stream.
    pub(crate) fn new(ring: &Ring, prf: &Prf) -> Self {
        let s = sampling::ternary(ring, prf);
        let mut negative = s.clone();
        for (ntt, limb) in ring.limbs_of(&mut negative) {
            // Canonical, and zero only with probability 2^−51: p − s is lazy either way.
            limb.iter_mut().for_each(|word| *word = ntt.prime.p - *word);
        }
        let square = ring.backend.run(Multiply { ring, a: &s, b: &s });
        Self { negative, powers: [s, square] }
    }

    /// Encrypts one number for each slot, with a public seed and secret noise.
    pub(crate) fn encrypt(
        &self,
        ring: &Ring,
        slots: &[i64],
        seed: &[u8; 32],
        noise: &Prf,
    ) -> Ciphertext {
        let message = ring.encode(slots, &sampling::noise(ring, noise));
        let c1 = sampling::uniform(ring, seed);
        let terms = [(c1.as_slice(), self.negative.as_slice())];
        let mut c0 = ring.backend.run(Phase { ring, sum: message, terms: &terms });
        // c0 is public now, so it need not be wiped.
        Ciphertext(vec![std::mem::take(&mut *c0), c1])
    }

    /// The number in every slot. For verified ciphertexts only.
    pub(crate) fn decrypt(&self, ring: &Ring, ciphertext: &Ciphertext) -> Zeroizing<Vec<i128>> {
        ring.decode(self.phase(ring, ciphertext))
    }

    /// c0 + c1·s (+ c2·s²): m + t·e.
    pub(crate) fn phase(&self, ring: &Ring, ciphertext: &Ciphertext) -> Words {
        let Some((first, rest)) = ciphertext.0.split_first() else {
            return Zeroizing::new(vec![0; ring.words()]);
        };
        let pairs = rest.iter().zip(&self.powers);
        let terms: Vec<_> = pairs.map(|(c, s)| (c.as_slice(), s.as_slice())).collect();
        let sum = Zeroizing::new(first.clone());
        ring.backend.run(Phase { ring, sum, terms: &terms })
    }
}

/// sum + Σ a·b, canonical.
struct Phase<'a> {
    ring: &'a Ring,
    sum: Words,
    terms: &'a [(&'a [u64], &'a [u64])],
}

impl Kernel for Phase<'_> {
    type Output = Words;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Words {
        let n = self.ring.degree();
        let mut out = self.sum;
        for (j, ntt) in self.ring.q.iter().enumerate() {
            let m = ntt.prime.on(lanes);
            let place = j * n..(j + 1) * n;
            let out = out[place.clone()].as_chunks_mut::<WIDTH>().0;
            match self.terms {
                [(a, b)] => {
                    let (a, b) = (a[place.clone()].as_chunks().0, b[place].as_chunks().0);
                    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
                        let mut sum = m.accumulate(m.zero_sum(), lanes.load(a), lanes.load(b));
                        sum.low = lanes.add(sum.low, lanes.load(out));
                        lanes.store(m.canonical_from_loose(m.reduce_few(sum)), out);
                    }
                }
                [(a, b), (c, d)] => {
                    let (a, b) = (a[place.clone()].as_chunks().0, b[place.clone()].as_chunks().0);
                    let (c, d) = (c[place.clone()].as_chunks().0, d[place].as_chunks().0);
                    for ((((out, a), b), c), d) in out.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                        let sum = m.accumulate(m.zero_sum(), lanes.load(a), lanes.load(b));
                        let mut sum = m.accumulate(sum, lanes.load(c), lanes.load(d));
                        sum.low = lanes.add(sum.low, lanes.load(out));
                        lanes.store(m.canonical_from_loose(m.reduce_few(sum)), out);
                    }
                }
                _ => {}
            }
        }
        out
    }
}

/// a·b, canonical.
struct Multiply<'a> {
    ring: &'a Ring,
    a: &'a [u64],
    b: &'a [u64],
}

impl Kernel for Multiply<'_> {
    type Output = Words;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Words {
        let (n, mut out) = (self.ring.degree(), Zeroizing::new(self.a.to_vec()));
        let limbs = out.chunks_exact_mut(n).zip(self.b.chunks_exact(n)).zip(&self.ring.q);
        for ((out, b), ntt) in limbs {
            let m = ntt.prime.on(lanes);
            for (out, b) in out.as_chunks_mut().0.iter_mut().zip(b.as_chunks().0) {
                lanes.store(m.mul(lanes.load(out), lanes.load(b)), out);
            }
        }
        out
    }
}

/// sum + (c0c0', c0c1' + c1c0', c1c1').
pub(crate) struct Tensor<'a> {
    pub(crate) ring: &'a Ring,
    pub(crate) sum: &'a mut Ciphertext,
    pub(crate) a: &'a Ciphertext,
    pub(crate) b: &'a Ciphertext,
}

impl Kernel for Tensor<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let (ring, n) = (self.ring, self.ring.degree());
        let ([a0, a1], [b0, b1]) = (self.a.pair(), self.b.pair());
        let parts = [a0, a1, b0, b1];
        let [d0, d1, d2] = self.sum.0.as_mut_slice() else { return };
        for (j, ntt) in ring.q.iter().enumerate() {
            let (m, place) = (ntt.prime.on(lanes), j * n..(j + 1) * n);
            let [a0, a1, b0, b1] = parts.map(|words| words[place.clone()].as_chunks::<WIDTH>().0);
            let [d0, d1, d2] = [&mut *d0, &mut *d1, &mut *d2]
                .map(|words| words[place.clone()].as_chunks_mut::<WIDTH>().0);
            for at in 0..n / WIDTH {
                let [a0, a1, b0, b1] = [a0, a1, b0, b1].map(|words| lanes.load(&words[at]));
                let start = |d: [u64; WIDTH]| Wide { low: lanes.load(&d), high: lanes.splat(0) };
                let d = m.accumulate(start(d0[at]), a0, b0);
                lanes.store(m.canonical_from_loose(m.reduce_few(d)), &mut d0[at]);
                let d = m.accumulate(m.accumulate(start(d1[at]), a0, b1), a1, b0);
                lanes.store(m.canonical_from_loose(m.reduce_few(d)), &mut d1[at]);
                let d = m.accumulate(start(d2[at]), a1, b1);
                lanes.store(m.canonical_from_loose(m.reduce_few(d)), &mut d2[at]);
            }
        }
    }
}

/// sum + w·c, with w modulo each limb's prime, or 1.
pub(crate) struct Add<'a> {
    pub(crate) ring: &'a Ring,
    pub(crate) sum: &'a mut Ciphertext,
    pub(crate) other: &'a Ciphertext,
    pub(crate) weight: Option<&'a [u64]>,
}

impl Kernel for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let n = self.ring.degree();
        for (sum, other) in self.sum.0.iter_mut().zip(&self.other.0) {
            let limbs = sum.chunks_exact_mut(n).zip(other.chunks_exact(n)).zip(&self.ring.q);
            for (j, ((sum, other), ntt)) in limbs.enumerate() {
                let m = ntt.prime.on(lanes);
                let pairs = sum.as_chunks_mut().0.iter_mut().zip(other.as_chunks().0);
                match self.weight {
                    None => {
                        for (sum, other) in pairs {
                            let x = lanes.add(lanes.load(sum), lanes.load(other));
                            lanes.store(m.canonical(x), sum);
                        }
                    }
                    Some(weight) => {
                        let weight = m.broadcast(ntt.prime.factor(weight[j]));
                        for (sum, other) in pairs {
                            let x = m.add(m.mul_factor(lanes.load(other), weight), lanes.load(sum));
                            lanes.store(m.canonical(x), sum);
                        }
                    }
                }
            }
        }
    }
}

/// w·c, with w modulo each limb's prime.
pub(crate) struct Scale<'a> {
    pub(crate) ring: &'a Ring,
    pub(crate) ciphertext: &'a mut Ciphertext,
    pub(crate) weight: &'a [u64],
}

impl Kernel for Scale<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let n = self.ring.degree();
        for component in &mut self.ciphertext.0 {
            let limbs = component.chunks_exact_mut(n).zip(&self.ring.q).zip(self.weight);
            for ((limb, ntt), weight) in limbs {
                let m = ntt.prime.on(lanes);
                let weight = m.broadcast(ntt.prime.factor(*weight));
                for words in limb.as_chunks_mut().0 {
                    lanes.store(m.canonical(m.mul_factor(lanes.load(words), weight)), words);
                }
            }
        }
    }
}
