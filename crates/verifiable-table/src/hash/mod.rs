//! L: a secret linear functional on ciphertexts, for each limb and repetition.
//!
//! `L(c) = Σ_{d,b,l} B[d,b,l] · Σ_{v<64} A[v]·c[d, 512b + 8v + l]` modulo q_j. On a non-zero
//! difference, it is a non-zero polynomial of degree two in A and B. So two different
//! ciphertexts of a limb collide with probability at most 2/q_j (Schwartz, Zippel), and in
//! three repetitions with (2/q_j)^3.

mod block;

use crate::arithmetic::lanes::{Kernel, Lanes, WIDTH};
use crate::arithmetic::prime::{MAX_PRODUCTS, Modular, Wide};
use crate::ring::{Ring, Words};
use crate::sampling::Stream;
use crate::tag::Tag;
use alpheus_crypto::prf::Prf;
use zeroize::Zeroizing;

/// Vectors that share an A.
const DEPTH: usize = 64;
const _: () = assert!(DEPTH <= MAX_PRODUCTS);
const _: () = assert!(COMPONENTS * crate::ring::MAX_SLOTS / BLOCK <= MAX_PRODUCTS);
/// The words of a hash block.
const BLOCK: usize = DEPTH * WIDTH;
/// The components of a product.
pub(crate) const COMPONENTS: usize = 3;
const MAX_REPETITIONS: usize = 3;

/// A and B, secret and fixed for the life of a table.
pub(crate) struct HashKey {
    /// For each limb and repetition: A, 64 words, then B, one for each component,
    /// block and lane.
    words: Vec<[Words; MAX_REPETITIONS]>,
    /// ⌊A·2^52 / q_j⌋.
    quotients: Vec<[Words; MAX_REPETITIONS]>,
}

impl HashKey {
    /// Draws A and B from the stream of number limb·3 + repetition.
    pub(crate) fn new(ring: &Ring, prf: &Prf) -> Self {
        let length = DEPTH + COMPONENTS * ring.degree() / DEPTH;
        let words = ring.q.iter().enumerate().map(|(j, ntt)| {
            std::array::from_fn(|k| {
                let mut words = Zeroizing::new(vec![0; length]);
                Stream::new(prf, (j * MAX_REPETITIONS + k) as u64)
                    .residues(ntt.prime.p, &mut words);
                words
            })
        });
        let words: Vec<[Words; MAX_REPETITIONS]> = words.collect();
        let quotients = words.iter().zip(&ring.q).map(|(words, ntt)| {
            let quotient = |a: &u64| ntt.prime.secret_quotient(*a);
            words.each_ref().map(|a| Zeroizing::new(a[..DEPTH].iter().map(quotient).collect()))
        });
        Self { quotients: quotients.collect(), words }
    }

    /// L of a ciphertext's two components, or of a product's three.
    pub(crate) fn hash(&self, ring: &Ring, components: &[&[u64]]) -> Tag {
        ring.backend.run(Hash { ring, key: self, components })
    }
}

struct Hash<'a> {
    ring: &'a Ring,
    key: &'a HashKey,
    components: &'a [&'a [u64]],
}

impl Kernel for Hash<'_> {
    type Output = Tag;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Tag {
        let (ring, n) = (self.ring, self.ring.degree());
        let mut tag = Tag::zero(ring);
        for (j, ((ntt, keys), out)) in
            ring.q.iter().zip(&self.key.words).zip(&mut tag.0).enumerate()
        {
            let m = ntt.prime.on(lanes);
            let mut sums = Sums::new(m, keys, n);
            for (d, component) in self.components.iter().enumerate() {
                let limb = &component[j * n..(j + 1) * n];
                for (b, block) in limb.as_chunks::<BLOCK>().0.iter().enumerate() {
                    sums.add(d, b, inner(m, block, keys));
                }
            }
            sums.fold_to(&mut out[..ring.spec.repetitions]);
        }
        tag
    }
}

/// One limb's hash, accumulated block by block.
struct Sums<'a, L: Lanes> {
    m: Modular<L>,
    keys: &'a [Words; MAX_REPETITIONS],
    blocks: usize,
    sums: [Wide<L::V>; MAX_REPETITIONS],
}

impl<'a, L: Lanes> Sums<'a, L> {
    #[inline(always)]
    fn new(m: Modular<L>, keys: &'a [Words; MAX_REPETITIONS], n: usize) -> Self {
        Self { m, keys, blocks: n / BLOCK, sums: [m.zero_sum(); MAX_REPETITIONS] }
    }

    /// Adds block `b` of component `d`: its inner sums, below 2^52.
    #[inline(always)]
    fn add(&mut self, d: usize, b: usize, inner: [L::V; MAX_REPETITIONS]) {
        let at = DEPTH + (d * self.blocks + b) * WIDTH;
        for ((sum, inner), key) in self.sums.iter_mut().zip(inner).zip(self.keys) {
            let weights = key[at..at + WIDTH].as_chunks::<WIDTH>().0;
            *sum = self.m.accumulate(*sum, inner, self.m.lanes.load(&weights[0]));
        }
    }

    /// Writes the sums and clears them: without a mask they reveal the key.
    #[inline(always)]
    fn fold_to(&mut self, out: &mut [u64]) {
        for (sum, out) in self.sums.iter().zip(out) {
            *out = fold_lanes(self.m, self.m.reduce_sum(*sum));
        }
        self.sums = std::hint::black_box([self.m.zero_sum(); MAX_REPETITIONS]);
    }
}

/// `Σ_v A[v]·c[v]` of one block, for each repetition.
#[inline(always)]
fn inner<L: Lanes>(
    m: Modular<L>,
    block: &[u64; BLOCK],
    keys: &[Words; MAX_REPETITIONS],
) -> [L::V; MAX_REPETITIONS] {
    let mut sums = [m.zero_sum(); MAX_REPETITIONS];
    let [first, second, third] = keys.each_ref().map(|key| &key[..DEPTH]);
    let words = block.as_chunks::<WIDTH>().0.iter();
    for (((words, a), b), c) in words.zip(first).zip(second).zip(third) {
        let words = m.lanes.load(words);
        for (sum, key) in sums.iter_mut().zip([a, b, c]) {
            *sum = m.accumulate(*sum, words, m.lanes.splat(*key));
        }
    }
    let mut reduced = [m.lanes.splat(0); MAX_REPETITIONS];
    for (out, sum) in reduced.iter_mut().zip(sums) {
        *out = m.reduce_sum(sum);
    }
    reduced
}

/// The sum of eight canonical words, canonical.
#[inline(always)]
fn fold_lanes<L: Lanes>(m: Modular<L>, x: L::V) -> u64 {
    let mut words = [0; WIDTH];
    m.lanes.store(x, &mut words);
    // Less than 8p < 2^54, so its low bits and their carry are reduced as one sum.
    let sum = m.lanes.splat(words.iter().sum());
    m.lanes.store(m.reduce_sum(Wide { low: sum, high: m.lanes.splat(0) }), &mut words);
    words[0]
}
