//! L of all columns and products of a block at once, for sealing.
//!
//! x = αc0 + βc1 is computed once for each column, by Shoup's quotients. Its sum gives the
//! column's hash, and its product with another column's x the hash of a product: products are
//! accumulated without reduction, and never made as ciphertexts.

use super::{DEPTH, HashBlock, HashKey, MAX_REPETITIONS, Sums, Weights, accumulate, hash_blocks};
use crate::arithmetic::lanes::{Kernel, Lanes, WIDTH};
use crate::arithmetic::prime::{Factors, Modular, Wide};
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

/// x of one column and hash block. Aligned so that a vector is one cache line.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
#[repr(align(64))]
struct Mixed(HashBlock);

/// The most products that are accumulated together.
const TOGETHER: usize = 3;

/// Products with one column in common.
struct Group {
    first: usize,
    /// The other columns, and the products' indices.
    others: Vec<(usize, usize)>,
}

/// Each column with the columns it is multiplied by, some at a time.
fn groups(columns: usize, products: &[(usize, usize)]) -> Vec<Group> {
    let of = |first| {
        let with = products.iter().enumerate().filter(move |(_, (a, _))| *a == first);
        let others: Vec<_> = with.map(|(at, (_, b))| (*b, at)).collect();
        let some = |others: &[(usize, usize)]| Group { first, others: others.to_vec() };
        others.chunks(TOGETHER).map(some).collect::<Vec<_>>()
    };
    (0..columns).flat_map(of).collect()
}

impl Kernel for HashColumns<'_> {
    type Output = BlockHashes;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> BlockHashes {
        let (ring, n) = (self.ring, self.ring.degree());
        let zero = |count| (0..count).map(|_| Tag::zero(ring)).collect();
        let (columns, products) = (zero(self.columns.len()), zero(self.products.len()));
        let mut out = BlockHashes { columns, products };
        let groups = groups(self.columns.len(), self.products);
        let multiplied: Vec<bool> = (0..self.columns.len())
            .map(|column| self.products.iter().any(|(a, b)| column == *a || column == *b))
            .collect();
        let mut mixed = vec![Mixed([[0; WIDTH]; DEPTH]); self.columns.len()];
        for (j, (ntt, keys)) in ring.q.iter().zip(&self.key.0).enumerate() {
            let m = ntt.prime.on(lanes);
            let sums = |count| (0..count).map(|_| Sums::new(m)).collect::<Vec<_>>();
            let (mut linear, mut products) = (sums(self.columns.len()), sums(self.products.len()));
            let limbs: Vec<_> =
                self.columns.iter().map(|c| c.pair().map(|c| hash_blocks(c, j, n))).collect();
            for at in 0..n / super::BLOCK {
                let each = limbs.iter().zip(&mut linear).zip(&multiplied);
                for ((x, sums), _) in each.filter(|(_, multiplied)| !**multiplied) {
                    add_alone(m, x.map(|x| &x[at]), keys, (at, sums));
                }
                for (k, weights) in keys.iter().enumerate() {
                    let outer = weights.outer(at);
                    let each = limbs.iter().zip(&mut linear).zip(&mut mixed).zip(&multiplied);
                    for (((x, sums), mixed), _) in each.filter(|(_, multiplied)| **multiplied) {
                        let sum = mix(m, x.map(|x| &x[at]), weights, &mut mixed.0);
                        sums.add(k, sum, outer);
                    }
                    for Group { first, others } in &groups {
                        let (first, other) = (&mixed[*first].0, |i: usize| &mixed[others[i].0].0);
                        let mut add = |i: usize, sum| products[others[i].1].add(k, sum, outer);
                        match others.len() {
                            1 => {
                                let [a] = multiply(m, first, [other(0)]);
                                add(0, a);
                            }
                            2 => {
                                let [a, b] = multiply(m, first, [other(0), other(1)]);
                                add(0, a);
                                add(1, b);
                            }
                            _ => {
                                let others = [other(0), other(1), other(2)];
                                let sums = multiply(m, first, others);
                                sums.into_iter().enumerate().for_each(|(i, sum)| add(i, sum));
                            }
                        }
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

/// Adds the hash of one block of a column that no product takes.
#[inline(always)]
fn add_alone<L: Lanes>(
    m: Modular<L>,
    column: [&HashBlock; 2],
    keys: &[Weights; MAX_REPETITIONS],
    (at, sums): (usize, &mut Sums<L>),
) {
    let mut block = [m.zero_sum(); MAX_REPETITIONS];
    for (d, component) in column.into_iter().enumerate() {
        let weights = keys.each_ref().map(|keys| &keys.factors[d * DEPTH..(d + 1) * DEPTH]);
        accumulate(m, component, weights, &mut block);
    }
    for (k, (block, weights)) in block.into_iter().zip(keys).enumerate() {
        sums.add(k, m.reduce_sum(block), weights.outer(at));
    }
}

/// Computes x = αc0 + βc1, lazy, and returns its sum over v.
#[inline(always)]
fn mix<L: Lanes>(
    m: Modular<L>,
    [c0, c1]: [&HashBlock; 2],
    weights: &Weights,
    mixed: &mut HashBlock,
) -> L::V {
    let factors = weights.factors.iter().zip(weights.quotients.iter());
    let factor = |(value, quotient): (&u64, &u64)| Factors {
        value: m.lanes.splat(*value),
        quotient: m.lanes.splat(*quotient),
    };
    let (alpha, beta) = (factors.clone().take(DEPTH), factors.skip(DEPTH));
    let mut sum = m.lanes.splat(0);
    for ((((c0, c1), out), alpha), beta) in c0.iter().zip(c1).zip(mixed).zip(alpha).zip(beta) {
        let a = m.mul_factor(m.lanes.load(c0), factor(alpha));
        let x = m.add(a, m.mul_factor(m.lanes.load(c1), factor(beta)));
        sum = m.lanes.add(sum, x);
        m.lanes.store(x, out);
    }
    // At most 64 words below 2^52.
    m.reduce_sum(Wide { low: sum, high: m.lanes.splat(0) })
}

/// Sums over v of products of one column's x with some others'.
#[inline(always)]
fn multiply<L: Lanes, const P: usize>(
    m: Modular<L>,
    first: &HashBlock,
    others: [&HashBlock; P],
) -> [L::V; P] {
    // Two sums each: one would wait for itself.
    let mut sums = [[m.zero_sum(); 2]; P];
    for v in 0..DEPTH {
        let x = m.lanes.load(&first[v]);
        for (sums, other) in sums.iter_mut().zip(others) {
            sums[v % 2] = m.accumulate(sums[v % 2], x, m.lanes.load(&other[v]));
        }
    }
    sums.map(|[a, b]| {
        m.reduce_sum(Wide { low: m.lanes.add(a.low, b.low), high: m.lanes.add(a.high, b.high) })
    })
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
