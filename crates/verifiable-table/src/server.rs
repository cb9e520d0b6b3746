//! The server: adds up what it stores. It holds no key and is not trusted.

use crate::cipher::{Add, Ciphertext, Scale, Tensor};
use crate::error::BadRequest;
use crate::label::Kind;
use crate::messages::{Answer, Block, Manifest, Request, Weights};
use crate::ring::Ring;
use crate::tag::Tag;

/// A sum in the making. Several can work on parts of the blocks and be merged, in any
/// order.
pub struct Sum<'a> {
    manifest: &'a Manifest,
    kind: Kind,
    weights: &'a Weights,
    sum: Ciphertext,
    tag: Tag,
}

impl<'a> Sum<'a> {
    /// Of nothing yet.
    ///
    /// # Errors
    /// [`BadRequest`].
    pub fn new(manifest: &'a Manifest, request: &'a Request) -> Result<Self, BadRequest> {
        request.check(manifest)?;
        let ring = manifest.ring();
        let sum = Ciphertext(vec![vec![0; ring.words()]; request.kind.components()]);
        let (kind, weights) = (request.kind, &request.weights);
        Ok(Self { manifest, kind, weights, sum, tag: Tag::zero(ring) })
    }

    /// Adds one stored block, of some 0.1 ms.
    ///
    /// # Errors
    /// [`BadRequest::Damaged`] if what is stored is not canonical.
    pub fn add<B: AsRef<[u8]>>(&mut self, block: &Block<B>) -> Result<(), BadRequest> {
        let index = block.address().index;
        let damaged = BadRequest::Damaged(index);
        let ciphertext = |column| block.ciphertext(self.manifest, column).ok_or(damaged);
        let tag = block.tag(self.manifest, self.kind).ok_or(damaged)?;
        match self.kind {
            Kind::Column(column) => self.add_column(&ciphertext(column)?, &tag, index),
            Kind::Product(a, b) if a == b => {
                let a = ciphertext(a)?;
                self.add_product(a.clone(), &a, &tag, index);
            }
            Kind::Product(a, b) => self.add_product(ciphertext(a)?, &ciphertext(b)?, &tag, index),
        }
        Ok(())
    }

    fn weight(&self, index: u64) -> Option<Vec<u64>> {
        (*self.weights != Weights::Ones).then(|| self.weights.residues(self.manifest.ring(), index))
    }

    fn add_column(&mut self, other: &Ciphertext, tag: &Tag, index: u64) {
        let (ring, weight) = (self.manifest.ring(), self.weight(index));
        combine(ring, (&mut self.sum, &mut self.tag), (other, tag), weight.as_deref());
    }

    fn add_product(&mut self, mut a: Ciphertext, b: &Ciphertext, tag: &Tag, index: u64) {
        let (ring, weight) = (self.manifest.ring(), self.weight(index));
        if let Some(weight) = &weight {
            ring.backend.run(Scale { ring, ciphertext: &mut a, weight });
        }
        let product = ring.backend.run(Tensor { ring, a: &a, b });
        ring.backend.run(Add { ring, sum: &mut self.sum, other: &product, weight: None });
        self.tag.add_scaled(ring, tag, &weight.unwrap_or_else(|| vec![1; ring.limbs()]));
    }

    /// Adds what another has summed of the same request.
    pub fn merge(&mut self, other: &Self) {
        combine(
            self.manifest.ring(),
            (&mut self.sum, &mut self.tag),
            (&other.sum, &other.tag),
            None,
        );
    }

    /// The answer.
    #[must_use]
    pub fn answer(self) -> Answer {
        Answer { sum: self.sum, tag: self.tag }
    }
}

/// Adds a ciphertext and its tag to others, weighted alike.
fn combine(
    ring: &Ring,
    sum: (&mut Ciphertext, &mut Tag),
    other: (&Ciphertext, &Tag),
    weight: Option<&[u64]>,
) {
    ring.backend.run(Add { ring, sum: sum.0, other: other.0, weight });
    match weight {
        Some(weight) => sum.1.add_scaled(ring, other.1, weight),
        None => sum.1.add_times(ring, other.1, 1),
    }
}
