//! Both roots of a closing, and how a client sees that what it gave is in the set under them.

use crate::definition::Agreed;
use crate::messages::{Entry, Ready, encode};
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::labels;
use alpheus_crypto::merkle;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is counted of an aggregate: the tree over all slots' entries, and the one over
/// those whose upload counts.
pub struct Trees {
    ledger: Digest,
    tuples: Digest,
    leaves: Leaves,
}

/// What an aggregate's closing counts: for each slot a leaf of the tuple tree.
///
/// # Privacy
/// For everybody, whole: who asks for all of it does not say which slots it has had. A leaf is a
/// hash of an entry, which holds digests that nobody else can guess.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaves(Vec<Digest>);

/// The set that a quorum of smoothers has agreed to, so that no other can be opened:
/// [`crate::verdict::verdict`] gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneSet(Ready);

/// What is in that set.
pub struct Counted {
    aggregate: Digest,
    leaves: Vec<Digest>,
}

/// The leaves are not those of the set that was agreed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the aggregator shows another set than the one that a quorum of smoothers has agreed to; show it to whoever runs the smoothers"
)]
pub struct OtherSet;

impl Trees {
    /// Over U slots: entries by slot, and which of them do not count.
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

    /// Of the entries.
    #[must_use]
    pub fn ledger(&self) -> Digest {
        self.ledger
    }

    /// Of what counts.
    #[must_use]
    pub fn tuples(&self) -> Digest {
        self.tuples
    }

    /// For clients.
    #[must_use]
    pub fn leaves(&self) -> &Leaves {
        &self.leaves
    }
}

fn listed(entry: &Entry) -> Digest {
    merkle::leaf(labelled(labels::STATISTICS_ENTRY, &[&encode(entry)]).as_bytes())
}

fn counted(entry: &Entry) -> Digest {
    merkle::leaf(labelled(labels::STATISTICS_COUNTED, &[&encode(entry)]).as_bytes())
}

impl OneSet {
    /// Of what a quorum has signed.
    pub(crate) fn new(ready: Ready) -> Self {
        Self(ready)
    }
}

impl Leaves {
    /// Checks that these are the leaves of the set that was agreed to.
    ///
    /// # Errors
    /// [`OtherSet`].
    pub fn check(self, agreed: &Agreed, set: &OneSet) -> Result<Counted, OtherSet> {
        let OneSet(Ready { aggregate, tuples, .. }) = *set;
        let ours = aggregate == agreed.name() && self.0.len() == agreed.slots as usize;
        if !ours || merkle::root(self.0.clone()) != tuples {
            return Err(OtherSet);
        }
        Ok(Counted { aggregate, leaves: self.0 })
    }
}

impl Counted {
    /// Whether an entry counts. If it does not though a quorum has given receipts for it, these are
    /// proof against the aggregator, unless the upload itself was bad.
    #[must_use]
    pub fn has(&self, entry: &Entry) -> bool {
        let leaf = usize::try_from(entry.slot).ok().and_then(|slot| self.leaves.get(slot));
        entry.aggregate == self.aggregate && leaf == Some(&counted(entry))
    }
}
