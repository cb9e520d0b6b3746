//! L: a secret linear functional on ciphertexts, for each limb and repetition.
//!
//! `L(c) = Σ_{b,l} B[b,l] · Σ_{v<64} Σ_d w_d[v]·c[d, 512b + 8v + l]` modulo q_j. The inner
//! weights w are (α, β) for a ciphertext, and (α², αβ, β²) for a product. So a product is
//! hashed without being made: (αa0 + βa1)(αb0 + βb1) = α²·d0 + αβ·d1 + β²·d2.
//!
//! On a non-zero difference, L is a non-zero polynomial in α, β and B, of degree two, or three
//! for products. So two different ciphertexts of a limb collide with probability at most 3/q_j
//! (Schwartz, Zippel), and in three repetitions with (3/q_j)^3.

mod block;

use crate::arithmetic::lanes::{Kernel, Lanes, WIDTH};
use crate::arithmetic::prime::{MAX_PRODUCTS, Modular, Wide};
use crate::ring::{Ring, Words};
use crate::sampling::Stream;
use crate::tag::Tag;
use alpheus_crypto::prf::Prf;
use zeroize::Zeroizing;

/// Vectors that share the inner weights.
const DEPTH: usize = 64;
const _: () = assert!(COMPONENTS * DEPTH <= MAX_PRODUCTS);
const _: () = assert!(crate::ring::MAX_SLOTS / BLOCK <= MAX_PRODUCTS);
/// The words of a hash block.
const BLOCK: usize = DEPTH * WIDTH;
/// The components of a product.
pub(crate) const COMPONENTS: usize = 3;
const MAX_REPETITIONS: usize = 3;

/// One hash block of one component.
type HashBlock = [[u64; WIDTH]; DEPTH];

/// The weights of a table, secret and fixed for its life: for each limb and repetition.
pub(crate) struct HashKey(Vec<[Weights; MAX_REPETITIONS]>);

/// The weights of one limb and repetition.
struct Weights {
    /// α, then β.
    factors: Words,
    /// ⌊w·2^52 / q_j⌋ of each.
    quotients: Words,
    /// α², αβ, β².
    products: Words,
    /// B: one for each block and lane.
    outer: Words,
}

impl Weights {
    /// Draws 64 words α, 64 words β, and B.
    fn draw(ring: &Ring, limb: usize, mut stream: Stream<'_>) -> Self {
        let prime = ring.q[limb].prime;
        let mut words = Zeroizing::new(vec![0; 2 * DEPTH + ring.degree() / DEPTH]);
        stream.residues(prime.p, &mut words);
        let (factors, outer) = words.split_at(2 * DEPTH);
        let quotients = factors.iter().map(|factor| prime.secret_quotient(*factor)).collect();
        let products = ring.backend.run(Squares { ring, limb, factors });
        let [factors, outer] = [factors, outer].map(|words| Zeroizing::new(words.to_vec()));
        Self { factors, quotients: Zeroizing::new(quotients), products, outer }
    }

    /// The inner weights of a ciphertext, or of a product.
    fn inner(&self, components: usize) -> &[u64] {
        if components == COMPONENTS { &self.products } else { &self.factors }
    }

    /// B of a block.
    fn outer(&self, block: usize) -> &[u64; WIDTH] {
        &self.outer.as_chunks::<WIDTH>().0[block]
    }
}

/// α², αβ and β², canonical.
struct Squares<'a> {
    ring: &'a Ring,
    limb: usize,
    factors: &'a [u64],
}

impl Kernel for Squares<'_> {
    type Output = Words;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Words {
        let m = self.ring.q[self.limb].prime.on(lanes);
        let (alpha, beta) = self.factors.split_at(DEPTH);
        let mut out = Zeroizing::new(vec![0; COMPONENTS * DEPTH]);
        let pairs = [(alpha, alpha), (alpha, beta), (beta, beta)];
        for ((a, b), out) in pairs.into_iter().zip(out.chunks_exact_mut(DEPTH)) {
            let (a, b) = (a.as_chunks().0, b.as_chunks().0);
            for ((a, b), out) in a.iter().zip(b).zip(out.as_chunks_mut().0) {
                lanes.store(m.mul(lanes.load(a), lanes.load(b)), out);
            }
        }
        out
    }
}

impl HashKey {
    /// Draws the weights from the stream of number limb·3 + repetition.
    pub(crate) fn new(ring: &Ring, prf: &Prf) -> Self {
        let stream = |j: usize, k| Stream::new(prf, (j * MAX_REPETITIONS + k) as u64);
        let limb = |j| std::array::from_fn(|k| Weights::draw(ring, j, stream(j, k)));
        Self((0..ring.limbs()).map(limb).collect())
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
        for (j, ((ntt, keys), out)) in ring.q.iter().zip(&self.key.0).zip(&mut tag.0).enumerate() {
            let m = ntt.prime.on(lanes);
            let inner = keys.each_ref().map(|weights| weights.inner(self.components.len()));
            let mut sums = Sums::new(m);
            for b in 0..n / BLOCK {
                let mut block = [m.zero_sum(); MAX_REPETITIONS];
                for (d, component) in self.components.iter().enumerate() {
                    let words = &hash_blocks(component, j, n)[b];
                    let weights = inner.map(|inner| &inner[d * DEPTH..(d + 1) * DEPTH]);
                    accumulate(m, words, weights, &mut block);
                }
                for (k, (block, weights)) in block.into_iter().zip(keys).enumerate() {
                    sums.add(k, m.reduce_sum(block), weights.outer(b));
                }
            }
            sums.fold_to(&mut out[..ring.spec.repetitions]);
        }
        tag
    }
}

/// The hash blocks of one limb of a component.
fn hash_blocks(component: &[u64], limb: usize, n: usize) -> &[HashBlock] {
    component[limb * n..(limb + 1) * n].as_chunks::<WIDTH>().0.as_chunks::<DEPTH>().0
}

/// One limb's hash, accumulated block by block.
struct Sums<L: Lanes> {
    m: Modular<L>,
    sums: [Wide<L::V>; MAX_REPETITIONS],
}

impl<L: Lanes> Sums<L> {
    #[inline(always)]
    fn new(m: Modular<L>) -> Self {
        Self { m, sums: [m.zero_sum(); MAX_REPETITIONS] }
    }

    /// Adds a block's inner sum, below 2^52, to one repetition.
    #[inline(always)]
    fn add(&mut self, repetition: usize, inner: L::V, outer: &[u64; WIDTH]) {
        let sum = &mut self.sums[repetition];
        *sum = self.m.accumulate(*sum, inner, self.m.lanes.load(outer));
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

/// Adds `Σ_v w[v]·c[v]` of one block and component, for each repetition.
#[inline(always)]
fn accumulate<L: Lanes>(
    m: Modular<L>,
    words: &HashBlock,
    weights: [&[u64]; MAX_REPETITIONS],
    sums: &mut [Wide<L::V>; MAX_REPETITIONS],
) {
    let [first, second, third] = weights;
    for (((words, a), b), c) in words.iter().zip(first).zip(second).zip(third) {
        let words = m.lanes.load(words);
        for (sum, weight) in sums.iter_mut().zip([a, b, c]) {
            *sum = m.accumulate(*sum, words, m.lanes.splat(*weight));
        }
    }
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
