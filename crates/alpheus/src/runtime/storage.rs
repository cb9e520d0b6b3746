//! Names in the stores, and the durable ledgers of controllers and service.

use alpheus_encrypted_stream::ledger::{Change, Ledger, LedgerError};
use alpheus_policy::time::Timestamp;
use alpheus_transport::{Batch, Error, Partition, Space, Store, Topic, partition_for_key};
use bytes::Bytes;
use std::ops::Bound;
use std::sync::Arc;

/// Topics and spaces of a deployment.
#[derive(Clone, Debug)]
pub struct Topics {
    /// Encrypted events, keyed by stream.
    pub events: Topic,
    /// Result rows.
    pub results: Topic,
    /// Events that were refused, with the reason.
    pub refused: Topic,
    /// What the service must not forget.
    pub service: Space,
    /// What controllers must not forget.
    pub ledger: Space,
    /// Keys of owners, devices and controllers.
    pub keys: Space,
    /// How far a replay has come.
    pub progress: Space,
    /// Partitions of the events topic.
    pub partitions: u32,
}

impl Topics {
    /// The names.
    ///
    /// # Errors
    /// None in practice: the names are valid.
    pub fn new(partitions: u32) -> Result<Topics, Error> {
        Ok(Topics {
            events: Topic::new("events")?,
            results: Topic::new("results")?,
            refused: Topic::new("refused-events")?,
            service: Space::new("service")?,
            ledger: Space::new("ledger")?,
            keys: Space::new("keys")?,
            progress: Space::new("progress")?,
            partitions,
        })
    }
}

/// The partition that a stream's frames go to.
#[must_use]
pub fn device_partition(topics: &Topics, key: &[u8]) -> Partition {
    topics.events.partition(partition_for_key(key, topics.partitions))
}

const FED: &[u8] = b"fed-up-to";

/// How far a replay has been fed, if any has.
///
/// # Errors
/// What the store says.
pub fn reached(store: &dyn Store, topics: &Topics) -> Result<Option<Timestamp>, Error> {
    let stored = store.get(&topics.progress, FED)?;
    let number = |bytes: Bytes| bytes.as_ref().try_into().ok().map(u64::from_be_bytes);
    Ok(stored.and_then(number).map(Timestamp))
}

/// Notes it in the batch that feeds it.
///
/// # Errors
/// None in practice: the key is short.
pub fn reach(batch: &mut Batch, topics: &Topics, to: Timestamp) -> Result<(), Error> {
    batch.put(&topics.progress, FED, to.0.to_be_bytes().to_vec())
}

/// A ledger in a space of a store.
pub struct StoreLedger {
    store: Arc<dyn Store>,
    space: Space,
    /// Something could not be written: what was said before rests on the ledger
    /// as it was, so nothing more is until it is opened anew.
    failed: bool,
}

impl StoreLedger {
    /// The ledger in `space`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, space: Space) -> StoreLedger {
        StoreLedger { store, space, failed: false }
    }

    /// Disk flushes of its store.
    #[must_use]
    pub fn flushes(&self) -> u64 {
        self.store.stats().syncs
    }

    /// Adds changes to a batch that holds more than the ledger's.
    ///
    /// # Errors
    /// If a key is too long.
    pub fn stage(&self, changes: &[Change], batch: &mut Batch) -> Result<(), Error> {
        for change in changes {
            match &change.value {
                Some(value) => batch.put(&self.space, change.key.clone(), value.clone())?,
                None => batch.delete(&self.space, change.key.clone())?,
            }
        }
        Ok(())
    }
}

/// A ledger, and what stands in the same commit as the next change.
pub struct Beside<'a> {
    /// The ledger.
    pub ledger: &'a mut StoreLedger,
    /// What else is written.
    pub batch: Batch,
}

impl Ledger for Beside<'_> {
    fn commit(&mut self, changes: &[Change]) -> Result<(), LedgerError> {
        self.ledger.commit_with(changes, std::mem::take(&mut self.batch))
    }
}

impl Ledger for StoreLedger {
    fn commit(&mut self, changes: &[Change]) -> Result<(), LedgerError> {
        self.commit_with(changes, Batch::new())
    }
}

impl StoreLedger {
    fn commit_with(&mut self, changes: &[Change], mut batch: Batch) -> Result<(), LedgerError> {
        if self.failed {
            return Err(LedgerError);
        }
        let staged = self.stage(changes, &mut batch);
        staged.and_then(|()| self.store.commit(batch).map(|_| ())).map_err(|error| {
            tracing::error!(%error, "the ledger could not be written");
            self.failed = true;
            LedgerError
        })
    }
}

/// Every key of a space that starts with `prefix`, with its value.
///
/// # Errors
/// What the store says.
pub fn scan_all(
    store: &dyn Store,
    space: &Space,
    prefix: &[u8],
) -> Result<Vec<(Bytes, Bytes)>, Error> {
    const PAGE: usize = 1000;
    let mut all: Vec<(Bytes, Bytes)> = Vec::new();
    loop {
        let last = all.last().map(|(key, _)| key.clone());
        let from = last.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let page = store.scan(space, prefix, from, PAGE)?;
        let full = page.len() == PAGE;
        all.extend(page);
        if !full {
            return Ok(all);
        }
    }
}
