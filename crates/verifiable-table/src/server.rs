//! The server: adds up stored blocks. It holds no key and is not trusted.

use crate::cipher::{Add, Ciphertext, Scale, Tensor};
use crate::error::RequestError;
use crate::label::Kind;
use crate::messages::{Answer, Block, Manifest, Request, Weights, read_column, read_tag};
use crate::ring::Ring;
use crate::tag::Tag;

/// An unfinished sum. Several sums over parts of the blocks can be merged in any order.
pub struct Sum<'a> {
    manifest: &'a Manifest,
    kind: Kind,
    weights: &'a Weights,
    sum: Ciphertext,
    tag: Tag,
    /// Buffers for a block's ciphertexts: allocating them for each block would cost as much
    /// as the sum.
    buffers: [Ciphertext; 2],
}

impl<'a> Sum<'a> {
    /// An empty sum.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn new(manifest: &'a Manifest, request: &'a Request) -> Result<Self, RequestError> {
        request.check(manifest)?;
        let ring = manifest.ring();
        let sum = Ciphertext::zero(ring, request.kind.components());
        let (kind, weights) = (request.kind, &request.weights);
        let buffers = [0, 1].map(|_| Ciphertext::zero(ring, 2));
        Ok(Self { manifest, kind, weights, sum, tag: Tag::zero(ring), buffers })
    }

    /// Adds one stored block, in some 0.1 ms.
    ///
    /// # Errors
    /// [`RequestError::Damaged`] if the block is not canonical.
    pub fn add<B: AsRef<[u8]>>(&mut self, block: &Block<B>) -> Result<(), RequestError> {
        let index = block.address().index;
        let parts = self.manifest.parts(self.kind).unwrap_or_default();
        let parts: Option<Vec<&[u8]>> = parts.into_iter().map(|at| block.part(at)).collect();
        self.add_parts(index, &parts.ok_or(RequestError::Damaged(index))?)
    }

    /// Adds the block of this number, from the parts of its bytes that
    /// [`Manifest::parts`] names.
    ///
    /// # Errors
    /// [`RequestError::Damaged`] if a part is missing or not canonical.
    pub fn add_parts<B: AsRef<[u8]>>(
        &mut self,
        index: u64,
        parts: &[B],
    ) -> Result<(), RequestError> {
        let (ring, damaged) = (self.manifest.ring(), RequestError::Damaged(index));
        let (tag, columns) = parts.split_last().ok_or(damaged)?;
        let tag = read_tag(ring, tag.as_ref()).ok_or(damaged)?;
        let wanted = match self.kind {
            Kind::Product(a, b) if a != b => 2,
            Kind::Column(_) | Kind::Product(..) => 1,
        };
        if columns.len() != wanted {
            return Err(damaged);
        }
        for (column, buffer) in columns.iter().zip(&mut self.buffers) {
            read_column(ring, column.as_ref(), buffer).ok_or(damaged)?;
        }
        match self.kind {
            Kind::Column(_) => self.add_column(&tag, index),
            Kind::Product(..) => self.add_product(&tag, index, wanted == 1),
        }
        Ok(())
    }

    fn weight(&self, index: u64) -> Option<Vec<u64>> {
        (*self.weights != Weights::Ones).then(|| self.weights.residues(self.manifest.ring(), index))
    }

    fn add_column(&mut self, tag: &Tag, index: u64) {
        let (ring, weight) = (self.manifest.ring(), self.weight(index));
        let sum = (&mut self.sum, &mut self.tag);
        combine(ring, sum, (&self.buffers[0], tag), weight.as_deref());
    }

    fn add_product(&mut self, tag: &Tag, index: u64, square: bool) {
        let (ring, weight) = (self.manifest.ring(), self.weight(index));
        let [first, second] = &mut self.buffers;
        if let Some(weight) = &weight {
            if square {
                second.clone_from(first);
            }
            ring.backend.run(Scale { ring, ciphertext: first, weight });
        }
        let b = if square && weight.is_none() { &*first } else { &*second };
        ring.backend.run(Tensor { ring, sum: &mut self.sum, a: first, b });
        match weight {
            Some(weight) => self.tag.add_scaled(ring, tag, &weight),
            None => self.tag.add(ring, tag),
        }
    }

    /// Adds another sum for the same request.
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

/// Adds a ciphertext and its tag, with one weight.
fn combine(
    ring: &Ring,
    sum: (&mut Ciphertext, &mut Tag),
    other: (&Ciphertext, &Tag),
    weight: Option<&[u64]>,
) {
    ring.backend.run(Add { ring, sum: sum.0, other: other.0, weight });
    match weight {
        Some(weight) => sum.1.add_scaled(ring, other.1, weight),
        None => sum.1.add(ring, other.1),
    }
}
