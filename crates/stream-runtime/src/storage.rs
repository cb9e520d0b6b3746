//! Names in the stores, and the durable ledgers of controllers and service.

use super::service_error::ServiceError;
use alpheus_time::Timestamp;
use alpheus_transport::{
    Batch, Error, FetchedRecords, Limits, NewRecord, Offset, Partition, Record, Space, Store,
    Topic, partition_for_key,
};
use bytes::Bytes;

/// Topics and spaces of a deployment.
#[derive(Clone, Debug)]
pub struct Topics {
    /// Encrypted events, keyed by stream.
    pub events: Topic,
    /// Result rows.
    pub results: Topic,
    /// Receipts of verified and bounded windows, in parts.
    pub receipts: Topic,
    /// Events that were refused, with the reason.
    pub refused: Topic,
    /// The service's records.
    pub service: Space,
    /// The controllers' records.
    pub ledger: Space,
    /// Keys of owners, devices and controllers.
    pub keys: Space,
    /// How far a replay has come.
    pub progress: Space,
    /// Partitions of the events topic.
    pub partitions: u32,
    /// Topics of the job, if a job sums events.
    pub job: JobTopics,
}

/// Topics between the service and the job; `jvm/docs/protocol.md` describes their records.
#[derive(Clone, Debug)]
pub struct JobTopics {
    /// Plans and opening sets, to the job: one partition.
    pub instructions: Topic,
    /// Controllers' answers, to the job.
    pub tokens: Topic,
    /// Summaries of streams, from the job.
    pub summaries: Topic,
    /// Sums of windows, from the job.
    pub sums: Topic,
    /// Records that either of them could not read.
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
            receipts: Topic::new("receipts")?,
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
/// Announcements of plans that have ended and whose rows are sealed, verified or bounded, or have noise,
/// whose cost is asked for later.
pub(super) const KEPT: &[u8] = b"sealed/";
/// When these plans ran.
pub(super) const ENDED: &[u8] = b"ended/";
/// Plans by epochs that run, in the service's space.
pub(super) const TERMS: &[u8] = b"terms/";

/// Reads a partition to its end from a position on, which moves along.
///
/// # Errors
/// The error of the store or of `each`.
pub fn read_on<E: From<Error>>(
    store: &dyn Store,
    partition: &Partition,
    position: &mut Offset,
    mut each: impl FnMut(FetchedRecords) -> Result<(), E>,
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

/// The recorded read position of each partition of a topic, stored under `name`.
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

/// Records these positions in a batch.
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

/// How much is kept of a record that is too long for a dead letter.
const BEGINNING: usize = 64 << 10;

/// Adds a record to the dead letters, with the reason in a header.
///
/// # Errors
/// None in practice: records that are too long are truncated.
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
        // Too long with the reason: its beginning still identifies the stream.
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
/// The store's error.
pub fn reached(store: &dyn Store, topics: &Topics) -> Result<Option<Timestamp>, Error> {
    let stored = store.get(&topics.progress, FED)?;
    let number = |bytes: Bytes| bytes.as_ref().try_into().ok().map(u64::from_be_bytes);
    Ok(stored.and_then(number).map(Timestamp))
}

/// Records it in the batch with the fed events.
///
/// # Errors
/// None in practice: the key is short.
pub fn reach(batch: &mut Batch, topics: &Topics, to: Timestamp) -> Result<(), Error> {
    batch.put(&topics.progress, FED, to.0.to_be_bytes().to_vec())
}
