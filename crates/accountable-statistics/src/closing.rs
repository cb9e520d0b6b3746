//! Both roots of a closing, and how a client sees that its own slot is under them.

use crate::definition::Agreed;
use crate::messages::{Closing, Entry, encode};
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::labels;
use alpheus_crypto::merkle::{self, Proof, Tree};
use alpheus_crypto::signed::Verified;
use std::collections::BTreeMap;

/// What is counted of an aggregate: the tree over all slots' entries, and the one over
/// those whose upload counts.
pub struct Trees {
    ledger: Tree,
    tuples: Tree,
}

/// The proof that a slot's entry is listed and counted.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Inclusion {
    /// In the ledger of slots.
    pub ledger: Proof,
    /// Among what is counted.
    pub tuples: Proof,
}

/// The closing does not count this entry. With receipts of a quorum for the entry that is
/// a proof against the aggregator, unless the upload itself was bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the closing does not count this entry; show receipts and closing to whoever runs the smoothers"
)]
pub struct NotCounted;

impl Trees {
    /// Over U slots: entries by slot, and which of them do not count.
    #[must_use]
    pub fn new(slots: u32, entries: &BTreeMap<u32, Entry>, counts: impl Fn(u32) -> bool) -> Self {
        let entry = |slot: u32| entries.get(&slot).map(listed);
        let counted = |slot: u32| entries.get(&slot).filter(|_| counts(slot)).map(counted);
        let tree = |of: &dyn Fn(u32) -> Option<Digest>| {
            let leaves = (0..slots).map(|slot| of(slot).unwrap_or_else(|| merkle::leaf(&[])));
            Tree::new(leaves.collect())
        };
        Self { ledger: tree(&entry), tuples: tree(&counted) }
    }

    /// Of the entries.
    #[must_use]
    pub fn ledger(&self) -> Digest {
        self.ledger.root()
    }

    /// Of what counts.
    #[must_use]
    pub fn tuples(&self) -> Digest {
        self.tuples.root()
    }

    /// Proves that a slot's entry is under both.
    #[must_use]
    pub fn prove(&self, slot: u32) -> Option<Inclusion> {
        let slot = usize::try_from(slot).ok()?;
        Some(Inclusion { ledger: self.ledger.prove(slot)?, tuples: self.tuples.prove(slot)? })
    }
}

fn listed(entry: &Entry) -> Digest {
    merkle::leaf(labelled(labels::STATISTICS_ENTRY, &[&encode(entry)]).as_bytes())
}

fn counted(entry: &Entry) -> Digest {
    merkle::leaf(labelled(labels::STATISTICS_COUNTED, &[&encode(entry)]).as_bytes())
}

impl Inclusion {
    /// Checks that a closing counts an entry.
    ///
    /// # Errors
    /// [`NotCounted`].
    pub fn check(
        &self,
        agreed: &Agreed,
        closing: &Verified<Closing>,
        entry: &Entry,
    ) -> Result<(), NotCounted> {
        let here = |proof: &Proof| {
            proof.index == u64::from(entry.slot) && proof.size == u64::from(agreed.slots)
        };
        let ours = closing.aggregate == agreed.name() && entry.aggregate == agreed.name();
        if !ours || !here(&self.ledger) || !here(&self.tuples) {
            return Err(NotCounted);
        }
        self.ledger.verify(&listed(entry), &closing.ledger).map_err(|_| NotCounted)?;
        self.tuples.verify(&counted(entry), &closing.tuples).map_err(|_| NotCounted)
    }
}
