//! The interface of storage: everything that the services need, and nothing more.

use crate::batch::Batch;
use crate::error::Error;
use crate::names::{Bounds, Group, Offset, Partition, Space, Topic};
use crate::receipt::{CommitReceipt, PendingCommit, Sequence, SyncPoint};
use crate::record::{Chunk, Record};
use bytes::Bytes;
use std::ops::Bound;
use std::time::Duration;

/// Topics of bytes, state spaces and consumer positions, changed by atomic batches.
///
/// Every implementation has these guarantees, and one suite tests all of them:
///
/// - **Order.** Batches have one order. The records of a partition have increasing offsets
///   in that order.
/// - **Atomicity.** After a crash a batch is there completely or not at all. If it is there,
///   so is every earlier batch.
/// - **Durability.** A batch with a receipt from [`Store::commit`] survives any crash.
/// - **Visibility.** A reader sees only durable batches, each completely.
/// - **Bounded memory.** Accepted batches that wait for a sync take bounded memory. Beyond
///   that, committing waits.
/// - **Fail-stop.** The outcome of a failed write is unknown, so the store refuses all work
///   until it is opened again.
///
/// Calls block. Threads share a store by reference.
pub trait Store: Send + Sync {
    /// Creates a topic durably, unless it exists.
    ///
    /// # Errors
    /// [`Error::TopicDiffers`] if it exists with another number of partitions.
    fn ensure_topic(&self, topic: &Topic, partitions: u32) -> Result<(), Error>;

    /// The same of a topic whose records have the time at which a cluster's brokers take them, by their
    /// clocks ([`Membership::time`](crate::Membership::time)). A store of one machine has no other time.
    ///
    /// # Errors
    /// As [`Store::ensure_topic`], also if it exists and its records have other times.
    fn ensure_stamped_topic(&self, topic: &Topic, partitions: u32) -> Result<(), Error> {
        self.ensure_topic(topic, partitions)
    }

    /// The number of partitions of a topic, if it exists.
    ///
    /// # Errors
    /// Only errors of the storage itself.
    fn partitions(&self, topic: &Topic) -> Result<Option<u32>, Error>;

    /// Creates a state space durably, unless it exists.
    ///
    /// # Errors
    /// Only errors of the storage itself.
    fn ensure_space(&self, space: &Space) -> Result<(), Error>;

    /// Accepts a batch and orders it. It becomes visible, with its offsets, once it is durable.
    /// Waits while too much is unsynced.
    ///
    /// # Errors
    /// If a name does not exist, the batch is too large (it is then refused completely, without
    /// other effects), or the storage fails.
    fn commit_buffered(&self, batch: Batch) -> Result<PendingCommit, Error>;

    /// Makes all accepted batches durable. Concurrent callers share one flush of the disk.
    ///
    /// # Errors
    /// If the storage fails. The outcome of the batches is then unknown.
    fn sync(&self) -> Result<SyncPoint, Error>;

    /// Waits until a batch and all earlier ones are durable.
    ///
    /// # Errors
    /// As [`Store::sync`].
    fn settle(&self, pending: PendingCommit) -> Result<CommitReceipt, Error>;

    /// Accepts a batch and makes it durable.
    ///
    /// # Errors
    /// As [`Store::commit_buffered`] and [`Store::sync`].
    fn commit(&self, batch: Batch) -> Result<CommitReceipt, Error> {
        self.settle(self.commit_buffered(batch)?)
    }

    /// Reads records of a partition from an offset on, within limits. Before the end of the
    /// partition, [`FetchedRecords::next_offset`] always advances, with at least one record if
    /// there is one. At the end it does not advance, and the result is empty.
    ///
    /// # Errors
    /// [`Error::OffsetOutOfRange`] before the partition's start or after its end.
    /// [`Error::CorruptRecords`] with the offset to resume at.
    fn read(
        &self,
        partition: &Partition,
        from: Offset,
        limits: Limits,
    ) -> Result<FetchedRecords, Error>;

    /// The bounds of a partition.
    ///
    /// # Errors
    /// If a name does not exist or the storage fails.
    fn bounds(&self, partition: &Partition) -> Result<Bounds, Error>;

    /// Allows the store to delete the records before `before` (retention). This is durable with
    /// the next sync, and not part of any batch.
    ///
    /// # Errors
    /// [`Error::OffsetOutOfRange`] after the end.
    fn truncate_before(&self, partition: &Partition, before: Offset) -> Result<(), Error>;

    /// The value of a key of a state space.
    ///
    /// # Errors
    /// If a name does not exist or the storage fails.
    fn get(&self, space: &Space, key: &[u8]) -> Result<Option<Bytes>, Error>;

    /// Keys and values of a state space in byte order of the keys: those with `prefix`, starting
    /// at or after `from`, at most `limit`. To continue, scan from `Bound::Excluded` of the
    /// last key.
    ///
    /// # Errors
    /// If a name does not exist or the storage fails.
    fn scan(
        &self,
        space: &Space,
        prefix: &[u8],
        from: Bound<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>, Error>;

    /// The offset that a group reads next, or `None` if it never set one.
    ///
    /// # Errors
    /// If a name does not exist or the storage fails.
    fn position(&self, group: &Group, partition: &Partition) -> Result<Option<Offset>, Error>;

    /// The last durable batch. Waits up to `timeout` for one after `seen`, so that a reader at
    /// the end of its partition need not poll.
    ///
    /// # Errors
    /// If the storage has failed.
    fn wait(&self, seen: Sequence, timeout: Duration) -> Result<Sequence, Error>;

    /// Statistics since the store was opened.
    fn stats(&self) -> Stats;

    /// Passes everything that is durable at one moment to `each`, in order, while it returns true;
    /// others write meanwhile. [`local::import`](crate::local::import) makes a store of it.
    ///
    /// # Errors
    /// [`Error::NoExport`] if the store is not on this machine, or an error of the storage.
    fn export(&self, each: &mut dyn FnMut(ExportEntry) -> bool) -> Result<(), Error>;
}

/// A part of an exported store, as [`Store::export`] gives it. Its content has the store's format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportEntry {
    /// Whether it is a chunk of records; otherwise it is state, a position or a definition.
    pub is_log: bool,
    /// Its key.
    pub key: Bytes,
    /// Its value.
    pub value: Bytes,
}

/// How much to read at once. A read returns at least one record if there is one.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of records.
    pub records: usize,
    /// Approximate maximum size of chunks in bytes.
    pub bytes: usize,
}

impl Default for Limits {
    /// 10,000 records or 4 MiB.
    fn default() -> Self {
        Self { records: 10_000, bytes: 4 << 20 }
    }
}

/// Statistics since the store was opened, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Batches made durable.
    pub batches: u64,
    /// Records made durable.
    pub records: u64,
    /// Bytes of records, state and framing made durable.
    pub bytes: u64,
    /// Flushes of the disk for commits. Concurrent batches share one.
    pub syncs: u64,
    /// Time spent in these flushes, including writes.
    pub sync_time: Duration,
    /// Bytes that are accepted but not yet durable.
    pub staged_bytes: u64,
    /// Size of the store on disk, if known.
    pub disk_bytes: u64,
}

/// Records that were read, in order. They are decoded lazily and not copied.
#[derive(Debug)]
pub struct FetchedRecords {
    chunks: std::vec::IntoIter<(Offset, Chunk)>,
    #[cfg(feature = "kafka")]
    records: std::vec::IntoIter<Record>,
    current: Option<(Chunk, usize, Offset)>,
    skip_to: Offset,
    left: usize,
    next: Offset,
}

impl FetchedRecords {
    /// The records of `chunks` from `from` on, at most `limit`. `chunks` are in order, each with
    /// the offset of its first record.
    pub(crate) fn new(chunks: Vec<(Offset, Chunk)>, from: Offset, limit: usize) -> Self {
        let end = chunks.last().map_or(from.0, |(base, chunk)| base.0 + chunk.count());
        let mut fetched = Self {
            chunks: chunks.into_iter(),
            #[cfg(feature = "kafka")]
            records: Vec::new().into_iter(),
            current: None,
            skip_to: from,
            left: limit,
            next: Offset(end.max(from.0)),
        };
        fetched.bound_next(from);
        fetched
    }

    /// These records, and the start of the next read.
    #[cfg(feature = "kafka")]
    pub(crate) fn of_records(records: Vec<Record>, next: Offset) -> Self {
        Self { records: records.into_iter(), next, ..Self::new(Vec::new(), next, 0) }
    }

    /// The start of the next read, even if not all records are iterated.
    #[must_use]
    pub const fn next_offset(&self) -> Offset {
        self.next
    }

    /// If the limit is below the number of records, the next read starts earlier.
    fn bound_next(&mut self, from: Offset) {
        let mut left = self.left as u64;
        for (base, chunk) in self.chunks.as_slice() {
            let first = base.0.max(from.0);
            let count = (base.0 + chunk.count()).saturating_sub(first);
            if count >= left {
                self.next = Offset(first + left);
                return;
            }
            left -= count;
        }
    }
}

impl Iterator for FetchedRecords {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        #[cfg(feature = "kafka")]
        if let Some(record) = self.records.next() {
            return Some(record);
        }
        loop {
            if self.left == 0 {
                return None;
            }
            if self.current.is_none() {
                let (base, chunk) = self.chunks.next()?;
                self.current = Some((chunk, crate::record::CHUNK_HEADER, base));
            }
            let (chunk, at, offset) = self.current.as_mut()?;
            let Some((record, after)) = chunk.record_at(*at, *offset) else {
                self.current = None;
                continue;
            };
            (*at, *offset) = (after, Offset(offset.0 + 1));
            if record.offset >= self.skip_to {
                self.left -= 1;
                return Some(record);
            }
        }
    }
}
