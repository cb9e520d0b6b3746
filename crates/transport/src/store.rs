//! The seam: everything that the services ask of storage, and nothing more.

use crate::batch::Batch;
use crate::error::Error;
use crate::names::{Bounds, Group, Offset, Partition, Space, Topic};
use crate::receipt::{Durable, Pending, Sequence, Synced};
use crate::record::{Chunk, Record};
use bytes::Bytes;
use std::ops::Bound;
use std::time::Duration;

/// Topics of bytes, state spaces and consumer positions, changed by atomic batches.
///
/// Every implementation keeps these promises, and one suite holds all to them:
///
/// - **Order.** Batches have one order; the records of a partition have
///   increasing offsets in that order.
/// - **All or nothing.** After a crash a batch is there whole or not at all,
///   and if it is there, so is every batch before it.
/// - **Durable when it returns.** What [`Store::commit`] returned a receipt for
///   is there after any crash.
/// - **What is seen is safe.** A reader sees durable batches only, each whole.
/// - **Bounded.** Accepted batches that wait for a sync take bounded memory;
///   beyond it, committing waits.
/// - **No guessing after a failure.** When a write fails its outcome is
///   unknown; the store then refuses all work until it is opened again.
///
/// Calls block; a store is shared by reference between threads.
pub trait Store: Send + Sync {
    /// Creates a topic, durably, unless it is there.
    ///
    /// # Errors
    /// [`Error::TopicDiffers`] if it is there with another number of partitions.
    fn ensure_topic(&self, topic: &Topic, partitions: u32) -> Result<(), Error>;

    /// How many partitions a topic has; `None` if there is no such topic.
    ///
    /// # Errors
    /// Only what the storage itself fails with.
    fn partitions(&self, topic: &Topic) -> Result<Option<u32>, Error>;

    /// Creates a state space, durably, unless it is there.
    ///
    /// # Errors
    /// Only what the storage itself fails with.
    fn ensure_space(&self, space: &Space) -> Result<(), Error>;

    /// Accepts a batch: it has its place in the order, and is seen, with its
    /// offsets, once it is durable. Waits while too much is unsynced.
    ///
    /// # Errors
    /// A name that does not exist, a batch beyond the bound (the batch is then
    /// refused whole and nothing else is affected), or what the storage fails with.
    fn commit_buffered(&self, batch: Batch) -> Result<Pending, Error>;

    /// Makes every accepted batch durable. Callers at the same time share one
    /// flush of the disk.
    ///
    /// # Errors
    /// What the storage fails with; the batches' outcome is then unknown.
    fn sync(&self) -> Result<Synced, Error>;

    /// Waits until a batch is durable, along with all before it.
    ///
    /// # Errors
    /// As [`Store::sync`].
    fn settle(&self, pending: Pending) -> Result<Durable, Error>;

    /// Accepts a batch and makes it durable.
    ///
    /// # Errors
    /// As [`Store::commit_buffered`] and [`Store::sync`].
    fn commit(&self, batch: Batch) -> Result<Durable, Error> {
        self.settle(self.commit_buffered(batch)?)
    }

    /// Reads records of a partition from an offset on, within limits. Before
    /// the end of the partition [`Fetched::next_offset`] always moves on, with a
    /// record if there is one; at the end it stays, and the answer is empty.
    ///
    /// # Errors
    /// [`Error::OffsetOutOfRange`] before the partition's start or beyond its
    /// end; [`Error::CorruptRecords`] with the offset to resume at.
    fn read(&self, partition: &Partition, from: Offset, limits: Limits) -> Result<Fetched, Error>;

    /// The offsets that a partition holds.
    ///
    /// # Errors
    /// A name that does not exist, or what the storage fails with.
    fn bounds(&self, partition: &Partition) -> Result<Bounds, Error>;

    /// Lets the store drop the records before `before` (retention). Durable
    /// with the next sync; not part of any batch.
    ///
    /// # Errors
    /// [`Error::OffsetOutOfRange`] beyond the end.
    fn truncate_before(&self, partition: &Partition, before: Offset) -> Result<(), Error>;

    /// The value of a key of a state space.
    ///
    /// # Errors
    /// A name that does not exist, or what the storage fails with.
    fn get(&self, space: &Space, key: &[u8]) -> Result<Option<Bytes>, Error>;

    /// Keys and values of a state space in byte order of the keys, starting
    /// after or at `from`, keys with `prefix` only, at most `limit` of them.
    /// To go on, scan again from `Bound::Excluded` of the last key.
    ///
    /// # Errors
    /// A name that does not exist, or what the storage fails with.
    fn scan(
        &self,
        space: &Space,
        prefix: &[u8],
        from: Bound<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>, Error>;

    /// The offset that a group reads next; `None` if it never said.
    ///
    /// # Errors
    /// A name that does not exist, or what the storage fails with.
    fn position(&self, group: &Group, partition: &Partition) -> Result<Option<Offset>, Error>;

    /// The last durable batch; waits up to `timeout` for one after `seen`, so
    /// that a reader at the end of its partition need not poll.
    ///
    /// # Errors
    /// What the storage failed with.
    fn wait(&self, seen: Sequence, timeout: Duration) -> Result<Sequence, Error>;

    /// What the store did since it was opened.
    fn stats(&self) -> Stats;
}

/// How much to read at once. At least one record comes if there is one.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// At most so many records.
    pub records: usize,
    /// At most about so many bytes of chunks.
    pub bytes: usize,
}

impl Default for Limits {
    /// 10,000 records or 4 MiB.
    fn default() -> Self {
        Self { records: 10_000, bytes: 4 << 20 }
    }
}

/// What a store did since it was opened; for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Batches made durable.
    pub batches: u64,
    /// Records made durable.
    pub records: u64,
    /// Bytes of records, state and framing made durable.
    pub bytes: u64,
    /// Flushes of the disk on behalf of commits: as many batches as came
    /// together share one.
    pub syncs: u64,
    /// Time spent in these flushes, writes included.
    pub sync_time: Duration,
    /// Bytes that are accepted and not yet durable.
    pub staged_bytes: u64,
    /// Bytes that the store takes on disk, where it is known.
    pub disk_bytes: u64,
}

/// Records that were read, in order. Decodes as it goes; nothing is copied.
#[derive(Debug)]
pub struct Fetched {
    chunks: std::vec::IntoIter<(Offset, Chunk)>,
    #[cfg(feature = "kafka")]
    records: std::vec::IntoIter<Record>,
    current: Option<(Chunk, usize, Offset)>,
    skip_to: Offset,
    left: usize,
    next: Offset,
}

impl Fetched {
    /// The records of `chunks` from `from` on, at most `limit`; `chunks` are
    /// in order and each says its first record's offset.
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

    /// These records, and where the read after this one starts.
    #[cfg(feature = "kafka")]
    pub(crate) fn of_records(records: Vec<Record>, next: Offset) -> Self {
        Self { records: records.into_iter(), next, ..Self::new(Vec::new(), next, 0) }
    }

    /// Where the read after this one starts, also if not all is iterated.
    #[must_use]
    pub const fn next_offset(&self) -> Offset {
        self.next
    }

    /// With fewer records wanted than are there, the next read starts earlier.
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

impl Iterator for Fetched {
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
