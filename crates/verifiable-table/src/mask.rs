//! Masks of tags: pseudorandom, yet a few evaluations give their sum over a range.
//!
//! s(i) is pseudorandom, and the mask of block i is r(i) = Δ^K s(i). The masks of N blocks
//! are independent and uniform, and Σ_{a≤i<b} r(i) = Δ^{K−1}s(b) − Δ^{K−1}s(a).

use crate::cipher::Ciphertext;
use crate::keys::Keys;
use crate::label::{Address, Column, Kind, Order, Segment, mask_parts};
use crate::messages::{Run, Weights};
use crate::ring::Ring;
use crate::sampling::{self, Stream};
use crate::tag::Tag;
use alpheus_crypto::labels;
use alpheus_crypto::prf::Prf;

/// The masks of one kind of tag in one segment and epoch.
pub(crate) struct Masks<'a> {
    ring: &'a Ring,
    order: Order,
    prf: Prf,
}

impl<'a> Masks<'a> {
    pub(crate) fn new(keys: &'a Keys, address: (Segment, u32), kind: Kind) -> Self {
        let parts = mask_parts(keys.ring, keys.data_set, address, kind, keys.order);
        let prf = sampling::subkey(keys.masks.expose(), labels::TABLE_MASK, &[&parts]);
        Self { ring: keys.ring, order: keys.order, prf }
    }

    /// s(i): one residue of stream i for each limb and repetition.
    fn value(&self, i: u64) -> Tag {
        let (mut tag, mut stream) = (Tag::zero(self.ring), Stream::new(&self.prf, i));
        for (ntt, limb) in self.ring.q.iter().zip(&mut tag.0) {
            stream.residues(ntt.prime.p, &mut limb[..self.ring.spec.repetitions]);
        }
        tag
    }

    /// (Δ^d s)(i) = Σ_j (−1)^{d−j} C(d, j) s(i + j).
    fn difference(&self, d: u8, i: u64) -> Tag {
        let mut sum = Tag::zero(self.ring);
        for j in 0..=d {
            let sign = if (d - j).is_multiple_of(2) { 1 } else { -1 };
            let term = self.value(i.wrapping_add(j.into()));
            sum.add_times(self.ring, &term, sign * binomial(d, j));
        }
        sum
    }

    /// r(i), the mask of one block.
    pub(crate) fn mask(&self, i: u64) -> Tag {
        self.difference(self.order.get(), i)
    }

    /// Adds Σ w(i)·r(i) over a run of blocks, by the shortest way for these weights.
    pub(crate) fn add_run(&self, sum: &mut Tag, run: &Run, weights: &Weights) {
        match weights {
            Weights::Ones => {
                let last = self.order.get() - 1;
                sum.add(self.ring, &self.difference(last, run.to));
                sum.add_times(self.ring, &self.difference(last, run.from), -1);
            }
            Weights::Polynomial(coefficients)
                if coefficients.len() <= usize::from(self.order.get()) =>
            {
                self.add_end(sum, run.to, weights, 1);
                self.add_end(sum, run.from, weights, -1);
            }
            Weights::Polynomial(_) | Weights::Powers(_) | Weights::Each(..) => {
                for i in run.from..run.to {
                    sum.add_scaled(self.ring, &self.mask(i), &weights.residues(self.ring, i));
                }
            }
        }
    }

    /// Adds ± Σ_{j<K} (−1)^j (Δ^j w)(i)·(Δ^{K−1−j} s)(i + j): one end of a range, after
    /// summation by parts.
    fn add_end(&self, sum: &mut Tag, i: u64, weights: &Weights, sign: i128) {
        let order = self.order.get();
        for j in 0..order {
            let mut weight = vec![0; self.ring.limbs()];
            for k in 0..=j {
                let flips = u8::from(sign < 0) + j + (j - k);
                let times = if flips.is_multiple_of(2) { 1 } else { -1 } * binomial(j, k);
                let at = weights.residues(self.ring, i.wrapping_add(k.into()));
                for ((sum, w), ntt) in weight.iter_mut().zip(at).zip(&self.ring.q) {
                    let product = ntt.prime.mul(w, ntt.prime.signed(times));
                    *sum = (*sum + product) % ntt.prime.p;
                }
            }
            let term = self.difference(order - 1 - j, i.wrapping_add(j.into()));
            sum.add_scaled(self.ring, &term, &weight);
        }
    }
}

impl Keys {
    /// r(label) + L(c).
    pub(crate) fn tag(&self, address: &Address, kind: Kind, ciphertext: &Ciphertext) -> Tag {
        self.masked(address, kind, &self.hash.hash(self.ring, &ciphertext.parts()))
    }

    /// The tags of a whole block: of each column, and of each product.
    pub(crate) fn tags(
        &self,
        address: &Address,
        columns: &[Ciphertext],
        products: &[(Column, Column)],
    ) -> (Vec<Tag>, Vec<Tag>) {
        let places = |(a, b): &(Column, Column)| (usize::from(a.0), usize::from(b.0));
        let places: Vec<_> = products.iter().map(places).collect();
        let hashes = self.hash.hash_block(self.ring, columns, &places);
        let kinds = (0..).map(|column| Kind::Column(Column(column)));
        let masked = |(kind, hash): (Kind, &Tag)| self.masked(address, kind, hash);
        let linear = kinds.zip(&hashes.columns).map(masked).collect();
        let kinds = products.iter().map(|(a, b)| Kind::Product(*a, *b));
        (linear, kinds.zip(&hashes.products).map(masked).collect())
    }

    fn masked(&self, address: &Address, kind: Kind, hash: &Tag) -> Tag {
        let masks = Masks::new(self, (address.segment, address.epoch), kind);
        let mut tag = masks.mask(address.index);
        tag.add(self.ring, hash);
        tag
    }
}

/// C(n, k) for small n.
fn binomial(n: u8, k: u8) -> i128 {
    (0..k).fold(1, |c, i| c * i128::from(n - i) / i128::from(i + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::tests::keys;

    #[test]
    fn every_short_form_equals_the_sum_of_single_masks() {
        let segment = Segment([3; 16]);
        for order in 1..=4 {
            let keys = keys(Order::new(order).unwrap());
            let masks = Masks::new(&keys, (segment, 0), Kind::Column(crate::label::Column(0)));
            let polynomials = (0..=4)
                .map(|degree| Weights::Polynomial((0..=degree).map(|c| 7 * c - 11).collect()));
            for weights in polynomials.chain([Weights::Ones, Weights::Powers(12)]) {
                let run = Run { segment, epoch: 0, from: 5, to: 17 };
                let (mut short, mut long) = (Tag::zero(keys.ring), Tag::zero(keys.ring));
                masks.add_run(&mut short, &run, &weights);
                for i in run.from..run.to {
                    long.add_scaled(keys.ring, &masks.mask(i), &weights.residues(keys.ring, i));
                }
                assert!(short.0 == long.0, "order {order}, {weights:?}");
            }
        }
    }
}
