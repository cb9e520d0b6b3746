//! What must be durable before a block may leave: a [`Step`] holds changes and what
//! they entitle to, and committing is the only way to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use zeroize::Zeroizing;

/// One change: a key and its new value, or its removal. Values of the tail are the
/// owner's data in the clear, so they are wiped and there is no `Debug`.
pub struct Change {
    /// Starts with the kind of record. From [`crate::owner::APPLICATION`] on they are
    /// the application's own.
    pub key: Vec<u8>,
    /// The value; none removes the key.
    pub value: Option<Zeroizing<Vec<u8>>>,
}

impl Change {
    /// Sets a key.
    #[must_use]
    pub fn put(key: Vec<u8>, value: Vec<u8>) -> Self {
        Self { key, value: Some(Zeroizing::new(value)) }
    }

    /// Removes a key.
    #[must_use]
    pub fn remove(key: Vec<u8>) -> Self {
        Self { key, value: None }
    }
}

/// The store did not make the changes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the owner's state could not be stored, so nothing was sent. Mend the store, then open the table anew"
)]
pub struct LedgerError;

/// An earlier change of the owner's is in memory and not in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an earlier change of the table was not stored: its step failed or was dropped. Open the table anew from what the store holds"
)]
pub struct Uncommitted;

/// Whether a step is out that was not committed. To go on after one would make its
/// blocks part of the table, whose bytes no store has.
#[derive(Clone, Default)]
pub(crate) struct Pending(Arc<AtomicBool>);

impl Pending {
    pub(crate) fn check(&self) -> Result<(), Uncommitted> {
        if self.0.load(Ordering::Acquire) { Err(Uncommitted) } else { Ok(()) }
    }
}

/// A durable store of changes with one writer: all or none of a commit, in order.
/// After an `Err` the owner is to be opened anew from what the store holds.
pub trait Ledger {
    /// Makes the changes durable, all or none. Of several to one key the last stands.
    ///
    /// # Errors
    /// [`LedgerError`] if they may not be durable.
    fn commit(&mut self, changes: &[Change]) -> Result<(), LedgerError>;
}

/// A ledger in memory, for tests and examples: it forgets with the process.
impl Ledger for std::collections::BTreeMap<Vec<u8>, Vec<u8>> {
    fn commit(&mut self, changes: &[Change]) -> Result<(), LedgerError> {
        for Change { key, value } in changes {
            match value {
                Some(value) => self.insert(key.clone(), value.to_vec()),
                None => self.remove(key),
            };
        }
        Ok(())
    }
}

/// Changes to make durable first, then what they entitle to.
#[must_use = "a step that is not committed releases nothing"]
pub struct Step<T> {
    changes: Vec<Change>,
    released: T,
    pending: Pending,
}

impl<T> Step<T> {
    /// Of an owner whose changes `pending` watches.
    pub(crate) fn new(changes: Vec<Change>, released: T, pending: &Pending) -> Self {
        pending.0.store(true, Ordering::Release);
        Self { changes, released, pending: pending.clone() }
    }

    /// With changes of the application's own, in the same commit.
    pub fn and(mut self, changes: impl IntoIterator<Item = Change>) -> Self {
        self.changes.extend(changes);
        self
    }

    /// Makes the changes durable, then hands out what they entitle to.
    ///
    /// # Errors
    /// [`LedgerError`]: what was to be released is gone, and the owner makes no more
    /// changes; it is to be opened anew.
    pub fn commit(self, ledger: &mut impl Ledger) -> Result<T, LedgerError> {
        if !self.changes.is_empty() {
            ledger.commit(&self.changes)?;
        }
        self.pending.0.store(false, Ordering::Release);
        Ok(self.released)
    }
}
