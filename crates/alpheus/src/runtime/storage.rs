//! Names in the stores, and the durable ledgers of controllers and service.

use super::service::ServiceError;
use alpheus_encrypted_stream::ledger::{Change, Ledger, LedgerError};
use alpheus_policy::time::Timestamp;
use alpheus_transport::{
    Batch, Error, Fetched, Limits, NewRecord, Offset, Partition, Record, Space, Store, Topic,
    partition_for_key,
};
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
    /// What a job reads and writes, if one adds up.
    pub job: JobTopics,
}

/// Topics between the service and the job that adds up; `jvm/docs/protocol.md` has their
/// records.
#[derive(Clone, Debug)]
pub struct JobTopics {
    /// Plans and opening sets, to the job: one partition.
    pub instructions: Topic,
    /// Controllers' answers, to the job.
    pub tokens: Topic,
    /// What it has of streams, from the job.
    pub summaries: Topic,
    /// Sums of windows, from the job.
    pub sums: Topic,
    /// What either of them could not read.
    pub dead_letters: Topic,
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
            job: JobTopics {
                instructions: Topic::new("instructions")?,
                tokens: Topic::new("tokens")?,
                summaries: Topic::new("summaries")?,
                sums: Topic::new("sums")?,
                dead_letters: Topic::new("dead-letters")?,
            },
        })
    }
}

/// The partition that a stream's frames go to.
#[must_use]
pub fn device_partition(topics: &Topics, key: &[u8]) -> Partition {
    topics.events.partition(partition_for_key(key, topics.partitions))
}

/// Announcements of plans that run, in the service's space.
pub(super) const PLANS: &[u8] = b"announcement/";

/// Reads a partition to its end from a position on, which moves along.
///
/// # Errors
/// What the store or `each` says.
pub fn read_on<E: From<Error>>(
    store: &dyn Store,
    partition: &Partition,
    position: &mut Offset,
    mut each: impl FnMut(Fetched) -> Result<(), E>,
) -> Result<(), E> {
    loop {
        let fetched = store.read(partition, *position, Limits::default())?;
        let next = fetched.next_offset();
        if next == *position {
            return Ok(());
        }
        each(fetched)?;
        *position = next;
    }
}

/// How far each partition of a topic was read when that was last noted under a name.
///
/// # Errors
/// [`ServiceError`] if it cannot be read.
pub fn stored_positions(
    store: &dyn Store,
    topics: &Topics,
    name: &[u8],
    partitions: u32,
) -> Result<Vec<Option<Offset>>, ServiceError> {
    let stored = |partition: u32| {
        let key = [name, &partition.to_be_bytes()].concat();
        let Some(bytes) = store.get(&topics.service, &key)? else { return Ok(None) };
        let bytes =
            bytes.as_ref().try_into().map_err(|_| ServiceError::Damaged { what: "position" })?;
        Ok(Some(Offset(u64::from_be_bytes(bytes))))
    };
    (0..partitions).map(stored).collect()
}

/// Notes that in a batch.
///
/// # Errors
/// None in practice: the keys are short.
pub fn note_positions(
    batch: &mut Batch,
    topics: &Topics,
    name: &[u8],
    positions: &[Offset],
) -> Result<(), ServiceError> {
    for (partition, position) in (0u32..).zip(positions) {
        let key = [name, &partition.to_be_bytes()].concat();
        batch.put(&topics.service, key, position.0.to_be_bytes().to_vec())?;
    }
    Ok(())
}

/// What is kept of a record that is too long to be a dead letter.
const BEGINNING: usize = 64 << 10;

/// Lays a record with the dead letters, with the reason in a header.
///
/// # Errors
/// None in practice: what is too long is cut.
pub fn bury(
    dead: &mut Batch,
    topic: &Topic,
    header: &str,
    record: &Record,
    reason: &str,
) -> Result<(), Error> {
    let headers: [(&str, &[u8]); 1] = [(header, reason.as_bytes())];
    let (topic, timestamp) = (topic.partition(0), record.timestamp);
    let whole = NewRecord { key: &record.key, value: &record.value, timestamp, headers: &headers };
    match dead.append(&topic, &whole) {
        // No room for the reason beside it: its beginning tells whose it was.
        Err(Error::RecordTooLarge { .. }) => {
            let (key, value) = (beginning(&record.key), beginning(&record.value));
            dead.append(&topic, &NewRecord { key, value, timestamp, headers: &headers })
        }
        appended => appended,
    }
}

fn beginning(bytes: &[u8]) -> &[u8] {
    bytes.get(..BEGINNING).unwrap_or(bytes)
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
