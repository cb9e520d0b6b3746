//! Whether the server still has every block as it was uploaded, by sums with weights
//! that it could not know before.

use super::Owner;
use crate::error::Rejected;
use crate::label::{Column, Kind};
use crate::messages::{Request, Weights};
use rand_core::CryptoRng;

/// Bits of a weight.
const WEIGHT: u32 = 50;

/// A question whose answer is checked and never opened.
#[derive(Debug)]
pub struct Audit {
    request: Request,
}

impl Audit {
    /// What the server is sent.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }
}

impl Owner {
    /// One question for each column and product, over all blocks, each block with a
    /// random weight of 50 bits. A server that has lost or changed a block passes with
    /// a chance of 2^−50 at most, but for lucky guesses of a tag. What it would decrypt
    /// to is not asked, so weights are not bound by the noise.
    pub fn audit(&self, rng: &mut impl CryptoRng) -> Vec<Audit> {
        if self.runs.is_empty() {
            return Vec::new();
        }
        let columns = (0..self.manifest.columns).map(Column).map(Kind::Column);
        let products = self.manifest.products.iter().map(|(a, b)| Kind::Product(*a, *b));
        let mut audit = |kind| {
            let weight = |rng: &mut _| i128::from(random_word(rng) >> (u64::BITS - WEIGHT)) + 1;
            let weights = (0..self.blocks()).map(|_| weight(rng)).collect();
            let weights = Weights::Each(0, weights);
            Audit { request: Request { kind, runs: self.runs.clone(), weights } }
        };
        columns.chain(products).map(&mut audit).collect()
    }

    /// Checks the answer to an audit.
    ///
    /// # Errors
    /// [`Rejected`].
    pub fn check_audit(&self, audit: &Audit, answer: &[u8]) -> Result<(), Rejected> {
        self.keys.check(&audit.request, answer).map(drop)
    }
}

fn random_word(rng: &mut impl CryptoRng) -> u64 {
    u64::from_le_bytes(super::random(rng))
}
