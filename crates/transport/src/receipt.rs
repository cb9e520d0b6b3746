//! Receipts of a store. Their types state what is already durable.

use crate::names::{Offset, Partition};
use std::sync::{Arc, OnceLock};

/// The number of a batch since the store was opened, in commit order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub(crate) u64);

/// The offsets of a batch's records in a partition. Between them there may be gaps, and
/// records of other producers if they write to the topic, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetRange {
    /// The partition.
    pub partition: Partition,
    /// The first record's offset. The others have larger ones, in order.
    pub first: Offset,
    /// One past the last record's offset.
    pub end: Offset,
}

/// The offsets of a batch's records, set once they are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Placement(Arc<OnceLock<Vec<OffsetRange>>>);

impl Placement {
    /// Sets the offsets. Only the first call has an effect.
    pub(crate) fn set(&self, appended: Vec<OffsetRange>) {
        self.0.get_or_init(|| appended);
    }

    /// The offsets, or nothing if they are not known yet.
    pub(crate) fn appended(&self) -> &[OffsetRange] {
        self.0.get().map_or(&[], |appended| appended)
    }
}

/// A batch that is accepted and ordered, but not yet durable: a crash may still undo it and all
/// later ones. Its offsets are known once it is durable, since not every store knows them
/// earlier.
#[derive(Debug)]
#[must_use = "a crash loses an accepted batch until it is durable"]
pub struct PendingCommit {
    pub(crate) sequence: Sequence,
    pub(crate) placement: Placement,
}

impl PendingCommit {
    /// Its position in the order of batches.
    #[must_use]
    pub const fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// Converts to the receipt of a durable batch.
    pub(crate) fn into_durable(self) -> CommitReceipt {
        CommitReceipt { sequence: self.sequence, placement: self.placement }
    }

    /// Converts to the receipt of a durable batch if `synced` covers it.
    ///
    /// # Errors
    /// Returns itself if the sync was earlier.
    pub fn settle(self, synced: SyncPoint) -> Result<CommitReceipt, Self> {
        if self.sequence <= synced.0 { Ok(self.into_durable()) } else { Err(self) }
    }
}

/// All batches up to a sequence are durable. Only a store creates this value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SyncPoint(pub(crate) Sequence);

impl SyncPoint {
    /// The last batch it covers.
    #[must_use]
    pub const fn sequence(self) -> Sequence {
        self.0
    }
}

/// Proof that a batch, and every earlier batch, survives a crash. Functions that must not run
/// before a batch is durable take this as an argument.
#[derive(Debug)]
pub struct CommitReceipt {
    pub(crate) sequence: Sequence,
    pub(crate) placement: Placement,
}

impl CommitReceipt {
    /// Its position in the order of batches.
    #[must_use]
    pub const fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// The offsets of its records.
    #[must_use]
    pub fn appended(&self) -> &[OffsetRange] {
        self.placement.appended()
    }
}
