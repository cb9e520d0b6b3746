//! L of all columns and products of a block at once, for sealing.
//!
//! x = αc0 + βc1 is computed once for each column, by Shoup's quotients. Its sum gives the
//! column's hash, and its product with another column's x the hash of a product: products are
//! accumulated without reduction, and never made as ciphertexts.

use super::{BLOCK, DEPTH, HashKey, MAX_REPETITIONS, Sums, Weights, accumulate, hash_blocks};
use crate::arithmetic::lanes::{Kernel, Lanes, WIDTH};
use crate::arithmetic::prime::{Factor, Modular, Wide};
use crate::cipher::Ciphertext;
use crate::ring::Ring;
use crate::tag::Tag;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// The hashes of a block's columns and products.
pub(crate) struct BlockHashes {
    pub(crate) columns: Vec<Tag>,
    pub(crate) products: Vec<Tag>,
}

impl HashKey {
    /// L of each column, and of each product, given by two column indices.
    pub(crate) fn hash_block(
        &self,
        ring: &Ring,
        columns: &[Ciphertext],
        products: &[(usize, usize)],
    ) -> BlockHashes {
        debug_assert!(products.iter().all(|(a, b)| *a.max(b) < columns.len()));
        ring.backend.run(HashColumns { ring, key: self, columns, products })
    }
}

struct HashColumns<'a> {
    ring: &'a Ring,
    key: &'a HashKey,
    columns: &'a [Ciphertext],
    products: &'a [(usize, usize)],
}

/// The vectors of a hash block that all repetitions take before the next ones: as many as the
/// innermost cache holds, for three columns.
const CHUNK: usize = 32;
/// The most columns, and the most products with one column, that are computed together.
const TOGETHER: usize = 3;

type Chunk = [[u64; WIDTH]; CHUNK];

/// x of one column and chunk. Aligned so that a vector is one cache line.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
#[repr(align(64))]
struct MixedChunk(Chunk);

/// Products with one column in common. Columns are indices among those that are multiplied.
struct Group {
    first: usize,
    /// The other columns, and the products' indices.
    others: Vec<(usize, usize)>,
}

/// The columns that are multiplied, and their products.
struct Shape {
    multiplied: Vec<usize>,
    groups: Vec<Group>,
}

impl Shape {
    fn new(columns: usize, products: &[(usize, usize)]) -> Self {
        let takes = |column: &usize| products.iter().any(|(a, b)| column == a || column == b);
        let multiplied: Vec<usize> = (0..columns).filter(takes).collect();
        let place = |column: usize| multiplied.partition_point(|other| *other < column);
        let with = |first: &usize| {
            let products = products.iter().enumerate().filter(|(_, (a, _))| a == first);
            let others: Vec<_> = products.map(|(at, (_, b))| (place(*b), at)).collect();
            let first = place(*first);
            let some = |others: &[(usize, usize)]| Group { first, others: others.to_vec() };
            others.chunks(TOGETHER).map(some).collect::<Vec<_>>()
        };
        let groups = multiplied.iter().flat_map(with).collect();
        Self { multiplied, groups }
    }
}

impl Kernel for HashColumns<'_> {
    type Output = BlockHashes;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> BlockHashes {
        let (ring, n) = (self.ring, self.ring.degree());
        let zero = |count| (0..count).map(|_| Tag::zero(ring)).collect();
        let (columns, products) = (zero(self.columns.len()), zero(self.products.len()));
        let mut out = BlockHashes { columns, products };
        let shape = Shape::new(self.columns.len(), self.products);
        let mut mixed = vec![MixedChunk([[0; WIDTH]; CHUNK]); shape.multiplied.len()];
        for (j, (ntt, keys)) in ring.q.iter().zip(&self.key.0).enumerate() {
            let m = ntt.prime.on(lanes);
            let sums = |count| (0..count).map(|_| Sums::new(m)).collect::<Vec<_>>();
            let (mut linear, mut products) = (sums(self.columns.len()), sums(self.products.len()));
            for (at, (column, sums)) in self.columns.iter().zip(&mut linear).enumerate() {
                if !shape.multiplied.contains(&at) {
                    add_alone(m, column, keys, (j, n), sums);
                }
            }
            let limbs: Vec<_> = shape
                .multiplied
                .iter()
                .map(|column| self.columns[*column].pair().map(|c| &c[j * n..(j + 1) * n]))
                .collect();
            let mut inner = Inner::new(m, &shape, self.products.len());
            for at in 0..n / BLOCK {
                for chunk in 0..DEPTH / CHUNK {
                    for (k, weights) in keys.iter().enumerate() {
                        let from = at * BLOCK + chunk * CHUNK * WIDTH;
                        inner.mix(&limbs, from, (weights, chunk, k), &mut mixed);
                        inner.multiply(&shape.groups, &mixed, k);
                    }
                }
                inner.add_to(&shape, keys, at, (&mut linear, &mut products));
            }
            inner.clear();
            let all = linear.iter_mut().zip(&mut out.columns);
            for (sums, tag) in all.chain(products.iter_mut().zip(&mut out.products)) {
                sums.fold_to(&mut tag.0[j][..ring.spec.repetitions]);
            }
        }
        out
    }
}

/// Adds the hash of a column that no product takes.
#[inline(always)]
fn add_alone<L: Lanes>(
    m: Modular<L>,
    column: &Ciphertext,
    keys: &[Weights; MAX_REPETITIONS],
    (limb, n): (usize, usize),
    sums: &mut Sums<L>,
) {
    let column = column.pair().map(|component| hash_blocks(component, limb, n));
    for at in 0..n / BLOCK {
        let mut block = [m.zero_sum(); MAX_REPETITIONS];
        for (d, component) in column.into_iter().enumerate() {
            let weights = keys.each_ref().map(|keys| &keys.factors[d * DEPTH..(d + 1) * DEPTH]);
            accumulate(m, &component[at], weights, &mut block);
        }
        for (k, (block, weights)) in block.into_iter().zip(keys).enumerate() {
            sums.add(k, m.reduce_sum(block), weights.outer(at));
        }
    }
}

/// The inner sums of one hash block, for each repetition: of columns that are multiplied, and
/// of products.
struct Inner<L: Lanes> {
    m: Modular<L>,
    columns: Vec<[L::V; MAX_REPETITIONS]>,
    products: Vec<[Wide<L::V>; MAX_REPETITIONS]>,
}

impl<L: Lanes> Inner<L> {
    #[inline(always)]
    fn new(m: Modular<L>, shape: &Shape, products: usize) -> Self {
        let columns = vec![[m.lanes.splat(0); MAX_REPETITIONS]; shape.multiplied.len()];
        Self { m, columns, products: vec![[m.zero_sum(); MAX_REPETITIONS]; products] }
    }

    /// Computes x of a chunk of all columns, and adds it to their sums.
    #[inline(always)]
    fn mix(
        &mut self,
        limbs: &[[&[u64]; 2]],
        from: usize,
        (weights, chunk, k): (&Weights, usize, usize),
        mixed: &mut [MixedChunk],
    ) {
        let (m, weights) = (self.m, HashChunk::new(weights, chunk));
        let sums = self.columns.chunks_mut(TOGETHER);
        for ((limbs, mixed), sums) in
            limbs.chunks(TOGETHER).zip(mixed.chunks_mut(TOGETHER)).zip(sums)
        {
            match (limbs, mixed, sums) {
                ([a], [x], [s]) => mix(m, [a], from, &weights, [&mut x.0], [&mut s[k]]),
                ([a, b], [x, y], [s, t]) => {
                    let (mixed, sums) = ([&mut x.0, &mut y.0], [&mut s[k], &mut t[k]]);
                    mix(m, [a, b], from, &weights, mixed, sums);
                }
                ([a, b, c], [x, y, z], [s, t, u]) => {
                    let mixed = [&mut x.0, &mut y.0, &mut z.0];
                    let sums = [&mut s[k], &mut t[k], &mut u[k]];
                    mix(m, [a, b, c], from, &weights, mixed, sums);
                }
                _ => {}
            }
        }
    }

    /// Adds the products of a chunk.
    #[inline(always)]
    fn multiply(&mut self, groups: &[Group], mixed: &[MixedChunk], k: usize) {
        for Group { first, others } in groups {
            let (m, first) = (self.m, &mixed[*first].0);
            match others.as_slice() {
                [(a, p)] => {
                    let [a] = multiply(m, first, [&mixed[*a].0]);
                    self.add(*p, k, a);
                }
                [(a, p), (b, q)] => {
                    let [a, b] = multiply(m, first, [&mixed[*a].0, &mixed[*b].0]);
                    self.add(*p, k, a);
                    self.add(*q, k, b);
                }
                [(a, p), (b, q), (c, r), ..] => {
                    let others = [&mixed[*a].0, &mixed[*b].0, &mixed[*c].0];
                    let [a, b, c] = multiply(m, first, others);
                    self.add(*p, k, a);
                    self.add(*q, k, b);
                    self.add(*r, k, c);
                }
                [] => {}
            }
        }
    }

    #[inline(always)]
    fn add(&mut self, product: usize, k: usize, sum: Wide<L::V>) {
        let old = &mut self.products[product][k];
        *old = add_wide(self.m.lanes, *old, sum);
    }

    /// Adds the sums, weighted with B, to the hashes, and starts again from zero.
    #[inline(always)]
    fn add_to(
        &mut self,
        shape: &Shape,
        keys: &[Weights; MAX_REPETITIONS],
        at: usize,
        (columns, products): (&mut [Sums<L>], &mut [Sums<L>]),
    ) {
        let (m, zero) = (self.m, self.m.lanes.splat(0));
        for (column, inner) in shape.multiplied.iter().zip(&mut self.columns) {
            for (k, (inner, weights)) in inner.iter_mut().zip(keys).enumerate() {
                let sum = m.reduce_sum(Wide { low: *inner, high: zero });
                columns[*column].add(k, sum, weights.outer(at));
                *inner = zero;
            }
        }
        for (product, inner) in products.iter_mut().zip(&mut self.products) {
            for (k, (inner, weights)) in inner.iter_mut().zip(keys).enumerate() {
                product.add(k, m.reduce_sum(*inner), weights.outer(at));
                *inner = m.zero_sum();
            }
        }
    }

    /// Leaves no sum behind in memory.
    #[inline(always)]
    fn clear(mut self) {
        self.columns.fill([self.m.lanes.splat(0); MAX_REPETITIONS]);
        self.products.fill([self.m.zero_sum(); MAX_REPETITIONS]);
        std::hint::black_box((&self.columns, &self.products));
    }
}

/// A chunk of α and β, and of their quotients.
struct HashChunk<'a> {
    alpha: [&'a [u64; CHUNK]; 2],
    beta: [&'a [u64; CHUNK]; 2],
}

impl<'a> HashChunk<'a> {
    #[inline(always)]
    fn new(weights: &'a Weights, chunk: usize) -> Self {
        let (values, quotients) =
            (weights.factors.as_chunks::<CHUNK>().0, weights.quotients.as_chunks::<CHUNK>().0);
        let at = |chunk: usize| [&values[chunk], &quotients[chunk]];
        Self { alpha: at(chunk), beta: at(DEPTH / CHUNK + chunk) }
    }
}

/// Computes x = αc0 + βc1 of some columns, lazy, and adds it to their sums: in all at most 64
/// words below 2^52.
#[inline(always)]
fn mix<L: Lanes, const C: usize>(
    m: Modular<L>,
    limbs: [&[&[u64]; 2]; C],
    from: usize,
    weights: &HashChunk<'_>,
    mixed: [&mut Chunk; C],
    sums: [&mut L::V; C],
) {
    let length = CHUNK * WIDTH;
    let words = limbs.map(|limb| limb.map(|words| words[from..from + length].as_chunks().0));
    let mut added = [m.lanes.splat(0); C];
    for v in 0..CHUNK {
        let alpha = Factor { value: weights.alpha[0][v], quotient: weights.alpha[1][v] };
        let beta = Factor { value: weights.beta[0][v], quotient: weights.beta[1][v] };
        let (alpha, beta) = (m.broadcast(alpha), m.broadcast(beta));
        for c in 0..C {
            let x = m.mul_factor(m.lanes.load(&words[c][0][v]), alpha);
            let x = m.add(x, m.mul_factor(m.lanes.load(&words[c][1][v]), beta));
            added[c] = m.lanes.add(added[c], x);
            m.lanes.store(x, &mut mixed[c][v]);
        }
    }
    for (sum, added) in sums.into_iter().zip(added) {
        *sum = m.lanes.add(*sum, added);
    }
}

/// Sums over a chunk of products of one column's x with some others'.
#[inline(always)]
fn multiply<L: Lanes, const P: usize>(
    m: Modular<L>,
    first: &Chunk,
    others: [&Chunk; P],
) -> [Wide<L::V>; P] {
    // Two sums each: one would wait for itself.
    let (mut even, mut odd) = ([m.zero_sum(); P], [m.zero_sum(); P]);
    for v in 0..CHUNK / 2 {
        let (x, y) = (m.lanes.load(&first[2 * v]), m.lanes.load(&first[2 * v + 1]));
        for p in 0..P {
            even[p] = m.accumulate(even[p], x, m.lanes.load(&others[p][2 * v]));
            odd[p] = m.accumulate(odd[p], y, m.lanes.load(&others[p][2 * v + 1]));
        }
    }
    for p in 0..P {
        even[p] = add_wide(m.lanes, even[p], odd[p]);
    }
    even
}

#[inline(always)]
fn add_wide<L: Lanes>(lanes: L, a: Wide<L::V>, b: Wide<L::V>) -> Wide<L::V> {
    Wide { low: lanes.add(a.low, b.low), high: lanes.add(a.high, b.high) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::lanes::Backend;
    use crate::cipher::Tensor;
    use crate::hash::COMPONENTS;
    use crate::parameters::Set;
    use crate::sampling;
    use alpheus_crypto::prf::Prf;
    use subtle::ConstantTimeEq;

    /// On both kinds of lanes.
    #[test]
    fn a_blocks_hashes_equal_those_of_its_parts() {
        for (set, backend) in [
            (Set::S128, Backend::Portable),
            (Set::S128, Backend::detect()),
            (Set::L128, Backend::detect()),
        ] {
            let ring = &Ring::on(&set.spec(), backend);
            let key = HashKey::new(ring, &Prf::from_bytes(&[9; 16]));
            let columns: Vec<_> = (0..6_u8)
                .map(|at| [at, 100 + at].map(|seed| sampling::uniform(ring, &[seed; 32])))
                .map(|parts| Ciphertext(parts.to_vec()))
                .collect();
            let products = [(0, 0), (2, 1), (0, 3), (4, 4), (1, 2)];
            let found = key.hash_block(ring, &columns, &products);
            let same = |tag: &Tag, parts: &Ciphertext| {
                bool::from(tag.ct_eq(&key.hash(ring, &parts.parts())))
            };
            assert!(found.columns.iter().zip(&columns).all(|(tag, column)| same(tag, column)));
            for ((a, b), tag) in products.iter().zip(&found.products) {
                let mut sum = Ciphertext::zero(ring, COMPONENTS);
                let (a, b) = (&columns[*a], &columns[*b]);
                ring.backend.run(Tensor { ring, sum: &mut sum, a, b });
                assert!(same(tag, &sum));
                sum.0[1][77] ^= 1;
                assert!(!same(tag, &sum));
            }
        }
    }
}
