//! Both roots of a closing, and how a client checks that its upload is in the set under them.

use crate::definition::AgreedDefinition;
use crate::messages::{Entry, Ready, encode};
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_crypto::merkle;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The two Merkle trees of an aggregate: over the entries of all slots, and over those whose
/// upload counts.
pub struct Trees {
    ledger: Digest,
    tuples: Digest,
    leaves: Leaves,
}

/// The leaves of the tuple tree, one per slot: what an aggregate's closing counts.
///
/// # Privacy
/// For everybody, as a whole: a client that fetches all leaves does not reveal its slots. A leaf
/// is a hash of an entry, which holds digests that nobody else can guess.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaves(Vec<Digest>);

/// The set that a quorum of smoothers has agreed to, so that no other can be opened. Made by
/// [`crate::verdict::verdict`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgreedSet(Ready);

/// The entries in that set.
pub struct CountedSet {
    aggregate: Digest,
    leaves: Vec<Digest>,
}

/// The leaves are not those of the agreed set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the aggregator shows a different set from the one that a quorum of smoothers has agreed to; report it to the operators of the smoothers"
)]
pub struct OtherSetError;

impl Trees {
    /// Over U slots, from the entries by slot and which of them count.
    #[must_use]
    pub fn new(slots: u32, entries: &BTreeMap<u32, Entry>, counts: impl Fn(u32) -> bool) -> Self {
        let entry = |slot: u32| entries.get(&slot).map(listed);
        let counted = |slot: u32| entries.get(&slot).filter(|_| counts(slot)).map(counted);
        let leaves = |of: &dyn Fn(u32) -> Option<Digest>| -> Vec<Digest> {
            (0..slots).map(|slot| of(slot).unwrap_or_else(|| merkle::leaf(&[]))).collect()
        };
        let counts = leaves(&counted);
        let (ledger, tuples) = (merkle::root(leaves(&entry)), merkle::root(counts.clone()));
        Self { ledger, tuples, leaves: Leaves(counts) }
    }

    /// The root over the entries.
    #[must_use]
    pub fn ledger(&self) -> Digest {
        self.ledger
    }

    /// The root over the counted entries.
    #[must_use]
    pub fn tuples(&self) -> Digest {
        self.tuples
    }

    /// The leaves, for clients.
    #[must_use]
    pub fn leaves(&self) -> &Leaves {
        &self.leaves
    }
}

fn listed(entry: &Entry) -> Digest {
    merkle::leaf(labelled_hash(labels::STATISTICS_ENTRY, &[&encode(entry)]).as_bytes())
}

fn counted(entry: &Entry) -> Digest {
    merkle::leaf(labelled_hash(labels::STATISTICS_TUPLE_LEAF, &[&encode(entry)]).as_bytes())
}

impl AgreedSet {
    /// From what a quorum has signed.
    pub(crate) fn new(ready: Ready) -> Self {
        Self(ready)
    }
}

impl Leaves {
    /// Checks that these are the leaves of the agreed set.
    ///
    /// # Errors
    /// [`OtherSetError`].
    pub fn check(
        self,
        agreed: &AgreedDefinition,
        set: &AgreedSet,
    ) -> Result<CountedSet, OtherSetError> {
        let AgreedSet(Ready { aggregate, tuples, .. }) = *set;
        let ours = aggregate == agreed.name() && self.0.len() == agreed.slots as usize;
        if !ours || merkle::root(self.0.clone()) != tuples {
            return Err(OtherSetError);
        }
        Ok(CountedSet { aggregate, leaves: self.0 })
    }
}

impl CountedSet {
    /// Whether an entry counts. If it does not although a quorum signed receipts for it, the
    /// receipts are proof against the aggregator, unless the upload itself was bad.
    #[must_use]
    pub fn has(&self, entry: &Entry) -> bool {
        let leaf = usize::try_from(entry.slot).ok().and_then(|slot| self.leaves.get(slot));
        entry.aggregate == self.aggregate && leaf == Some(&counted(entry))
    }
}
