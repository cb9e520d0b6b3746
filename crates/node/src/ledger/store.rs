//! A ledger in a space of a durable store, without a fence.

use alpheus_crypto::ledger::{Change, Ledger, LedgerError};
use alpheus_transport::{Batch, Error, Space, Store};
use std::sync::Arc;

/// A ledger in a space of a store.
pub struct StoreLedger {
    store: Arc<dyn Store>,
    space: Space,
    /// A write failed. Earlier answers depend on the ledger as it was, so it accepts
    /// nothing until it is opened again.
    failed: bool,
}

/// A ledger, and what the next commit also writes.
pub struct LedgerWithBatch<'a> {
    /// The ledger.
    pub ledger: &'a mut StoreLedger,
    /// The other writes.
    pub batch: Batch,
}

impl StoreLedger {
    /// The ledger in `space`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, space: Space) -> Self {
        Self { store, space, failed: false }
    }

    /// Disk flushes of its store.
    #[must_use]
    pub fn flushes(&self) -> u64 {
        self.store.stats().syncs
    }

    /// A record.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.store.get(&self.space, key)?.map(|value| value.to_vec()))
    }

    fn commit_with(&mut self, changes: &[Change], mut batch: Batch) -> Result<(), LedgerError> {
        if self.failed {
            return Err(LedgerError);
        }
        let staged = stage(&mut batch, &self.space, changes);
        staged.and_then(|()| self.store.commit(batch).map(drop)).map_err(|error| {
            tracing::error!(%error, "the ledger could not be written");
            self.failed = true;
            LedgerError
        })
    }
}

/// Adds changes to a batch.
///
/// # Errors
/// If a key is too long.
pub(super) fn stage(batch: &mut Batch, space: &Space, changes: &[Change]) -> Result<(), Error> {
    for Change { key, value } in changes {
        match value {
            Some(value) => batch.put(space, key.clone(), value.to_vec())?,
            None => batch.delete(space, key.clone())?,
        }
    }
    Ok(())
}

impl Ledger for StoreLedger {
    fn commit(&mut self, changes: &[Change]) -> Result<(), LedgerError> {
        self.commit_with(changes, Batch::new())
    }
}

impl Ledger for LedgerWithBatch<'_> {
    fn commit(&mut self, changes: &[Change]) -> Result<(), LedgerError> {
        self.ledger.commit_with(changes, std::mem::take(&mut self.batch))
    }
}
