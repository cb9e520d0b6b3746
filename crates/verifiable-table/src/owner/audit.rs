//! Audits: check that the server still has every block as uploaded, by sums with weights
//! that it could not predict.

use super::Owner;
use crate::error::VerifyError;
use crate::label::{Column, Kind};
use crate::messages::{MAX_REQUEST_BLOCKS, Request, Weights};
use rand_core::CryptoRng;

/// The number of bits in a weight.
const WEIGHT: u32 = 50;

/// A question whose answer is checked but never decrypted.
#[derive(Debug)]
pub struct Audit {
    request: Request,
}

impl Audit {
    /// The request to send to the server.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }
}

impl Owner {
    /// Makes one question for each column and product, over all blocks, in parts of at most
    /// [`MAX_REQUEST_BLOCKS`]. Each block has a random 50-bit weight. A server that lost or
    /// changed a block passes with probability at most 2^−50, apart from guessing a tag.
    /// The answers are never decrypted, so noise does not limit the weights.
    pub fn audit(&self, rng: &mut impl CryptoRng) -> Vec<Audit> {
        if self.runs.is_empty() {
            return Vec::new();
        }
        let columns = (0..self.manifest.columns).map(Column).map(Kind::Column);
        let products = self.manifest.products.iter().map(|(a, b)| Kind::Product(*a, *b));
        let mut audit = |kind, from: u64| {
            let to = self.blocks().min(from + MAX_REQUEST_BLOCKS);
            let weight = |rng: &mut _| i128::from(random_word(rng) >> (u64::BITS - WEIGHT)) + 1;
            let weights = (from..to).map(|_| weight(rng)).collect();
            let weights = Weights::Each(from, weights);
            Audit { request: Request { kind, runs: self.runs_between(from, to), weights } }
        };
        let kinds: Vec<Kind> = columns.chain(products).collect();
        let parts =
            (0..self.blocks()).step_by(usize::try_from(MAX_REQUEST_BLOCKS).unwrap_or(1 << 20));
        parts
            .flat_map(|from| kinds.iter().map(move |kind| (*kind, from)))
            .map(|(kind, from)| audit(kind, from))
            .collect()
    }

    /// Checks the answer to an audit.
    ///
    /// # Errors
    /// [`VerifyError`].
    pub fn check_audit(&self, audit: &Audit, answer: &[u8]) -> Result<(), VerifyError> {
        self.keys.check(&audit.request, answer).map(drop)
    }
}

fn random_word(rng: &mut impl CryptoRng) -> u64 {
    u64::from_le_bytes(super::random(rng))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TableKey;
    use crate::label::Order;
    use crate::layout::{ColumnDeclaration, Layout};
    use crate::messages::Run;
    use crate::parameters::Set;
    use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
    use std::collections::BTreeMap;

    /// The parts together cover the whole table, and a server accepts each.
    #[test]
    fn large_tables_are_audited_in_parts() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let column = ColumnDeclaration { min: 0, max: 9, optional: false, squares: false };
        let layout = Layout::new(vec![column], &[]).unwrap();
        let key = TableKey::random(&mut rng);
        let step = Owner::create(&key, Set::L128, Order::ONE, layout, &mut rng);
        let mut owner = step.commit(&mut BTreeMap::new()).unwrap();
        let (segment, all) = (owner.segment, MAX_REQUEST_BLOCKS + 5);
        owner.runs = vec![Run { segment, epoch: 0, from: 0, to: all }];
        let audits = owner.audit(&mut rng);
        let ends: Vec<(u64, u64)> = audits
            .iter()
            .map(|audit| {
                audit.request().check(&owner.manifest).unwrap();
                let Weights::Each(first, weights) = &audit.request().weights else { panic!() };
                let run = audit.request().runs[0];
                assert_eq!((run.from, run.to - run.from), (*first, weights.len() as u64));
                (run.from, run.to)
            })
            .collect();
        assert_eq!(ends, [(0, MAX_REQUEST_BLOCKS), (MAX_REQUEST_BLOCKS, all)]);
    }
}
