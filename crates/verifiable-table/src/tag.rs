//! Tags: for each limb of the ring, one residue for each repetition. Arithmetic on them
//! takes constant time.

use crate::arithmetic::lanes::{Kernel, Lanes, WIDTH};
use crate::ring::Ring;
use subtle::{Choice, ConstantTimeEq};
use zeroize::Zeroize;

/// A tag, a mask or a hash: one vector of words for each limb. Words beyond the
/// repetitions are zero. Wiped when dropped, since most are secret.
#[derive(Clone)]
pub(crate) struct Tag(pub(crate) Vec<[u64; WIDTH]>);

impl Drop for Tag {
    fn drop(&mut self) {
        self.0.as_flattened_mut().zeroize();
    }
}

impl Tag {
    pub(crate) fn zero(ring: &Ring) -> Self {
        Self(vec![[0; WIDTH]; ring.limbs()])
    }

    /// The words on the wire, limb by limb.
    pub(crate) fn words(&self, ring: &Ring) -> impl Iterator<Item = u64> {
        let repetitions = ring.spec.repetitions;
        self.0.iter().flat_map(move |limb| limb[..repetitions].iter().copied())
    }

    /// Reads words from the wire. `None` if one is missing or not canonical.
    pub(crate) fn from_words(ring: &Ring, words: impl Iterator<Item = u64>) -> Option<Self> {
        let (mut tag, mut words) = (Self::zero(ring), words);
        for (ntt, limb) in ring.q.iter().zip(&mut tag.0) {
            for word in &mut limb[..ring.spec.repetitions] {
                *word = words.next().filter(|word| *word < ntt.prime.p)?;
            }
        }
        Some(tag)
    }

    /// Adds `other`.
    pub(crate) fn add(&mut self, ring: &Ring, other: &Self) {
        ring.backend.run(AddTag { ring, tag: self, other });
    }

    /// Adds w·`other`, with w modulo each limb's prime.
    pub(crate) fn add_scaled(&mut self, ring: &Ring, other: &Self, weight: &[u64]) {
        ring.backend.run(AddScaled { ring, tag: self, other, weight });
    }

    /// Adds w·`other` for a small public number w.
    pub(crate) fn add_times(&mut self, ring: &Ring, other: &Self, weight: i128) {
        let weight: Vec<u64> = ring.q.iter().map(|ntt| ntt.prime.signed(weight)).collect();
        self.add_scaled(ring, other, &weight);
    }
}

impl ConstantTimeEq for Tag {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.0.as_flattened().ct_eq(other.0.as_flattened())
    }
}

struct AddTag<'a> {
    ring: &'a Ring,
    tag: &'a mut Tag,
    other: &'a Tag,
}

impl Kernel for AddTag<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let limbs = self.tag.0.iter_mut().zip(&self.other.0);
        for (ntt, (limb, other)) in self.ring.q.iter().zip(limbs) {
            let sum = lanes.add(lanes.load(limb), lanes.load(other));
            lanes.store(ntt.prime.on(lanes).canonical(sum), limb);
        }
    }
}

struct AddScaled<'a> {
    ring: &'a Ring,
    tag: &'a mut Tag,
    other: &'a Tag,
    weight: &'a [u64],
}

impl Kernel for AddScaled<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let limbs = self.tag.0.iter_mut().zip(&self.other.0).zip(self.weight);
        for (ntt, ((limb, other), weight)) in self.ring.q.iter().zip(limbs) {
            let m = ntt.prime.on(lanes);
            let product = m.mul(lanes.load(other), lanes.splat(*weight));
            lanes.store(m.canonical(m.add(lanes.load(limb), product)), limb);
        }
    }
}
