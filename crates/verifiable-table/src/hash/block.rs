//! L of all columns and products of a block at once, for sealing.
//!
//! `A[v]·c[v]` is computed once for each column, by Shoup's quotients. Its sum gives the
//! column's hash. Its products with another column's words give the hash of a product: they
//! are accumulated without reduction, and the product itself is never made. The middle
//! component is Karatsuba's: a0b1 + a1b0 = (a0 + a1)(b0 + b1) − a0b0 − a1b1.

use super::{BLOCK, COMPONENTS, DEPTH, HashKey, MAX_REPETITIONS, Sums, inner};
use crate::arithmetic::lanes::{Kernel, Lanes, WIDTH};
use crate::arithmetic::prime::{Factors, Modular, Wide};
use crate::cipher::Ciphertext;
use crate::ring::{Ring, Words};
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
        ring.backend.run(HashBlock { ring, key: self, columns, products })
    }
}

struct HashBlock<'a> {
    ring: &'a Ring,
    key: &'a HashKey,
    columns: &'a [Ciphertext],
    products: &'a [(usize, usize)],
}

/// One hash block of both components of a column.
type Pair<'a> = [&'a [u64; BLOCK]; 2];

/// A's products with a [`Pair`], for each repetition. Aligned so that a vector is one cache
/// line.
#[derive(Zeroize, ZeroizeOnDrop)]
#[repr(align(64))]
struct WeightedColumn([[[u64; BLOCK]; 2]; MAX_REPETITIONS]);

impl Kernel for HashBlock<'_> {
    type Output = BlockHashes;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> BlockHashes {
        let (ring, n) = (self.ring, self.ring.degree());
        let zero = |count| (0..count).map(|_| Tag::zero(ring)).collect();
        let (columns, products) = (zero(self.columns.len()), zero(self.products.len()));
        let mut out = BlockHashes { columns, products };
        let mut weighted = WeightedColumn([[[0; BLOCK]; 2]; MAX_REPETITIONS]);
        let keys = self.key.words.iter().zip(&self.key.quotients);
        for (j, (ntt, (words, quotients))) in ring.q.iter().zip(keys).enumerate() {
            let m = ntt.prime.on(lanes);
            let sums = |count| (0..count).map(|_| Sums::new(m, words, n)).collect::<Vec<_>>();
            let mut linear = sums(self.columns.len());
            let mut products = sums(self.products.len());
            let limbs: Vec<_> = self
                .columns
                .iter()
                .map(|c| c.pair().map(|words| words[j * n..(j + 1) * n].as_chunks::<BLOCK>().0))
                .collect();
            for at in 0..n / BLOCK {
                for (first, x) in limbs.iter().enumerate() {
                    let x = x.map(|x| &x[at]);
                    let with = self.products.iter().zip(&mut products);
                    let mut with = with.filter(|((a, _), _)| *a == first).peekable();
                    if with.peek().is_none() {
                        linear[first].add(0, at, inner(m, x[0], words));
                        linear[first].add(1, at, inner(m, x[1], words));
                        continue;
                    }
                    let sums = weight_column(m, x, (words, quotients), &mut weighted);
                    linear[first].add_all(at, sums);
                    for ((_, second), sums) in with {
                        let y = limbs[*second].map(|y| &y[at]);
                        sums.add_all(at, product(m, &weighted, y));
                    }
                }
            }
            let all = linear.iter_mut().zip(&mut out.columns);
            for (sums, tag) in all.chain(products.iter_mut().zip(&mut out.products)) {
                sums.fold_to(&mut tag.0[j][..ring.spec.repetitions]);
            }
        }
        out
    }
}

impl<L: Lanes> Sums<'_, L> {
    #[inline(always)]
    fn add_all<const D: usize>(&mut self, b: usize, inner: [[L::V; MAX_REPETITIONS]; D]) {
        for (d, inner) in inner.into_iter().enumerate() {
            self.add(d, b, inner);
        }
    }
}

/// Computes A·c of both components, canonical, and returns its sums over v.
#[inline(always)]
fn weight_column<L: Lanes>(
    m: Modular<L>,
    column: Pair<'_>,
    (words, quotients): (&[Words; MAX_REPETITIONS], &[Words; MAX_REPETITIONS]),
    weighted: &mut WeightedColumn,
) -> [[L::V; MAX_REPETITIONS]; 2] {
    let zero = m.lanes.splat(0);
    let mut sums = [[zero; MAX_REPETITIONS]; 2];
    for (k, ((a, quotients), out)) in words.iter().zip(quotients).zip(&mut weighted.0).enumerate() {
        for (d, (component, out)) in column.iter().zip(out).enumerate() {
            let vectors = component.as_chunks::<WIDTH>().0.iter().zip(out.as_chunks_mut().0);
            let mut sum = zero;
            for (((c, out), value), quotient) in vectors.zip(&a[..DEPTH]).zip(quotients.iter()) {
                let a =
                    Factors { value: m.lanes.splat(*value), quotient: m.lanes.splat(*quotient) };
                let x = m.canonical(m.mul_factor(m.lanes.load(c), a));
                sum = m.lanes.add(sum, x);
                m.lanes.store(x, out);
            }
            sums[d][k] = m.reduce_sum(Wide { low: sum, high: zero });
        }
    }
    sums
}

/// The inner sums of a product's components: weighted words times the other column's.
#[inline(always)]
fn product<L: Lanes>(
    m: Modular<L>,
    weighted: &WeightedColumn,
    other: Pair<'_>,
) -> [[L::V; MAX_REPETITIONS]; COMPONENTS] {
    let mut sums = [[m.lanes.splat(0); MAX_REPETITIONS]; COMPONENTS];
    let [b0, b1] = other.map(|words| words.as_chunks::<WIDTH>().0);
    for (k, [a0, a1]) in weighted.0.iter().enumerate() {
        let (a0, a1) = (a0.as_chunks::<WIDTH>().0, a1.as_chunks::<WIDTH>().0);
        let [mut outer, mut both, mut inner] = [m.zero_sum(); COMPONENTS];
        for (((a0, a1), b0), b1) in a0.iter().zip(a1).zip(b0).zip(b1) {
            let (a0, a1) = (m.lanes.load(a0), m.lanes.load(a1));
            let (b0, b1) = (m.lanes.load(b0), m.lanes.load(b1));
            outer = m.accumulate(outer, a0, b0);
            // The words are canonical, so their sums are below 2^52.
            both = m.accumulate(both, m.lanes.add(a0, a1), m.lanes.add(b0, b1));
            inner = m.accumulate(inner, a1, b1);
        }
        sums[0][k] = m.reduce_sum(outer);
        sums[2][k] = m.reduce_sum(inner);
        sums[1][k] = m.sub(m.sub(m.reduce_sum(both), sums[0][k]), sums[2][k]);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::lanes::Backend;
    use crate::cipher::Tensor;
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
