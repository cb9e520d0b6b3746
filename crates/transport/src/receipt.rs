//! What a store hands back, so that the type says what is already safe.

use crate::names::{Offset, Partition};
use std::sync::{Arc, OnceLock};

/// Counts the batches of a store since it was opened, in commit order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub(crate) u64);

/// The offsets that a batch's records got in one partition. Between them there
/// may be gaps, and records of others where others write to the topic too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Where.
    pub partition: Partition,
    /// The first record's offset; the others have larger ones, in order.
    pub first: Offset,
    /// One past the last record's offset.
    pub end: Offset,
}

/// Where a batch's records went, told once that is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Placed(Arc<OnceLock<Vec<Appended>>>);

impl Placed {
    /// Tells it; only the first time counts.
    pub(crate) fn set(&self, appended: Vec<Appended>) {
        self.0.get_or_init(|| appended);
    }

    /// What was told.
    pub(crate) fn appended(&self) -> &[Appended] {
        self.0.get().map_or(&[], |appended| appended)
    }
}

/// A batch is accepted and has its place in the order, but a crash may still
/// undo it, with all that came after it. Its offsets are known when it is durable:
/// not every store knows them before.
#[derive(Debug)]
#[must_use = "an accepted batch is lost by a crash until it is durable"]
pub struct Pending {
    pub(crate) sequence: Sequence,
    pub(crate) placed: Placed,
}

impl Pending {
    /// Its place in the order of batches.
    #[must_use]
    pub const fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// It is durable.
    pub(crate) fn into_durable(self) -> Durable {
        Durable { sequence: self.sequence, placed: self.placed }
    }

    /// Turns into a receipt if `synced` covers it, else stays what it was.
    ///
    /// # Errors
    /// Itself, when the sync came before it.
    pub fn settle(self, synced: Synced) -> Result<Durable, Self> {
        if self.sequence <= synced.0 { Ok(self.into_durable()) } else { Err(self) }
    }
}

/// Every batch up to a sequence is durable. Only a store makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Synced(pub(crate) Sequence);

impl Synced {
    /// The last batch it covers.
    #[must_use]
    pub const fn sequence(self) -> Sequence {
        self.0
    }
}

/// Proof that a batch, and every batch before it, survives a crash. What must
/// not happen before it is durable takes one of these as an argument.
#[derive(Debug)]
pub struct Durable {
    pub(crate) sequence: Sequence,
    pub(crate) placed: Placed,
}

impl Durable {
    /// Its place in the order of batches.
    #[must_use]
    pub const fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// The offsets that its records have.
    #[must_use]
    pub fn appended(&self) -> &[Appended] {
        self.placed.appended()
    }
}
