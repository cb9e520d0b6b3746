//! Reads committed records of partitions, each through its own queue.
//!
//! There may be gaps between records: ends of transactions, aborted records, compacted
//! records. Whether there is a record before an offset is known only once a replica that is
//! up to date reports the end of the partition, after a request for exactly these records.

use super::client::{Clients, Context};
use crate::error::cluster::ClusterError;
use crate::names::Offset;
use crate::store::Limits;
use rdkafka::consumer::base_consumer::PartitionQueue;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const RETRY_PAUSE: Duration = Duration::from_millis(2);
/// Maximum wait for the next event of a queue.
const MAX_POLL: Duration = Duration::from_millis(200);

/// The partitions that are being read, each at one position.
pub(super) struct Reader {
    clients: Arc<Clients>,
    consumer: Arc<BaseConsumer<Context>>,
    cursors: Mutex<Cursors>,
    /// The furthest end reported for each partition.
    ends: Mutex<HashMap<(String, i32), Offset>>,
    arrived: Arc<dyn Fn() + Send + Sync>,
}

type Cursors = HashMap<(String, i32), Arc<Mutex<Cursor>>>;

struct Cursor {
    queue: PartitionQueue<Context>,
    /// The next offset of the queue, or `None` while that is unknown.
    next: Option<u64>,
    /// Whether the queue has reported its end. It does so once for each end.
    ended: bool,
    used: Instant,
}

/// The position of a reader in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CursorPosition {
    /// It would continue exactly there.
    Here,
    /// It does not read this partition.
    Nowhere,
    /// It is elsewhere, and was last used at this time.
    Elsewhere(Instant),
    /// It is reading.
    Busy,
}

/// The range to read.
#[derive(Clone, Copy)]
pub(super) struct ReadRequest<'a> {
    pub(super) topic: &'a str,
    pub(super) partition: i32,
    pub(super) from: Offset,
    /// Everything before this offset is decided: committed, aborted or a gap.
    pub(super) end: Offset,
    pub(super) limits: Limits,
}

impl Reader {
    /// `arrived` is called from a thread of librdkafka when a partition that was read has new
    /// records.
    pub(super) fn new(
        clients: Arc<Clients>,
        consumer: Arc<BaseConsumer<Context>>,
        arrived: Arc<dyn Fn() + Send + Sync>,
    ) -> Self {
        Self { clients, consumer, cursors: Mutex::default(), ends: Mutex::default(), arrived }
    }

    /// Whether it would continue at an offset without discarding prefetched records.
    pub(super) fn position(&self, topic: &str, partition: i32, at: Offset) -> CursorPosition {
        let cursor = self.cursors().get(&(topic.to_owned(), partition)).cloned();
        let Some(cursor) = cursor else { return CursorPosition::Nowhere };
        match cursor.try_lock() {
            Ok(cursor) if cursor.next == Some(at.0) => CursorPosition::Here,
            Ok(cursor) => CursorPosition::Elsewhere(cursor.used),
            Err(_) => CursorPosition::Busy,
        }
    }

    /// The first offset, and the end of what is decided. The end never goes back, although a
    /// broker that has just started reports less for a moment.
    pub(super) fn bounds(
        &self,
        topic: &str,
        partition: i32,
    ) -> Result<(Offset, Offset), ClusterError> {
        self.clients.listen();
        let until = Instant::now() + self.clients.patience;
        loop {
            let asked = self.consumer.fetch_watermarks(topic, partition, until - Instant::now());
            match asked {
                Ok((_, high))
                    if self.is_behind(topic, partition, offset(high))
                        && Instant::now() + RETRY_PAUSE < until =>
                {
                    std::thread::sleep(RETRY_PAUSE);
                }
                Ok((low, high)) => return Ok((offset(low), offset(high))),
                // A leader is being elected, or a broker starts.
                Err(error) if is_temporary(&error) && Instant::now() + RETRY_PAUSE < until => {
                    std::thread::sleep(RETRY_PAUSE);
                }
                Err(error) => return Err(self.clients.refused("read", topic, error)),
            }
        }
    }

    /// Whether an end is before one that was already reported.
    fn is_behind(&self, topic: &str, partition: i32, end: Offset) -> bool {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let furthest = ends.entry((topic.to_owned(), partition)).or_insert(end);
        *furthest = end.max(*furthest);
        end < *furthest
    }

    /// Passes records in order to `take`, which returns the size of each. Returns where the
    /// next read starts. Passes at least one record if there is one before the end.
    pub(super) fn read(
        &self,
        wanted: ReadRequest<'_>,
        take: &mut dyn FnMut(&BorrowedMessage<'_>) -> usize,
    ) -> Result<Offset, ClusterError> {
        let cursor = self.cursor(wanted)?;
        let mut cursor = lock(&cursor);
        let outcome = self.read_at(&mut cursor, wanted, take);
        cursor.next = outcome.as_ref().ok().map(|next| next.0);
        cursor.used = Instant::now();
        outcome
    }

    fn read_at(
        &self,
        cursor: &mut Cursor,
        wanted: ReadRequest<'_>,
        take: &mut dyn FnMut(&BorrowedMessage<'_>) -> usize,
    ) -> Result<Offset, ClusterError> {
        let ReadRequest { topic, from, end, limits, .. } = wanted;
        let (mut at, mut left, mut is_caught_up, mut losses) = (from.0, limits, false, 0);
        if cursor.next != Some(at) {
            self.seek(cursor, wanted, at)?;
        }
        let until = Instant::now() + self.clients.patience;
        // Drain the queue at the end of the partition: new records wake waiters only if it was empty.
        let is_at_end = at >= end.0;
        while at < end.0 || is_at_end {
            let has_some = left.records < limits.records;
            let is_quick = is_at_end || has_some || (cursor.ended && !is_caught_up);
            match cursor.queue.poll(if is_quick { Duration::ZERO } else { MAX_POLL }) {
                Some(Ok(message)) => {
                    cursor.ended = false;
                    if offset(message.offset()).0 >= at {
                        at = offset(message.offset()).0 + 1;
                        left = without(left, take(&message));
                    }
                    if left.records == 0 || left.bytes == 0 {
                        break;
                    }
                }
                Some(Err(KafkaError::PartitionEOF(_))) => {
                    cursor.ended = true;
                    // A broker that has started again meanwhile reports an early end.
                    is_caught_up &= losses == self.clients.losses();
                    at = if is_caught_up && !has_some { at.max(end.0) } else { at };
                }
                Some(Err(error)) if !is_temporary(&error) => {
                    return Err(self.clients.refused("read", topic, error));
                }
                None if has_some || is_at_end => break,
                None if !is_caught_up => {
                    losses = self.clients.losses();
                    self.catch_up(cursor, wanted, until)?;
                    self.seek(cursor, wanted, at)?;
                    is_caught_up = true;
                }
                Some(Err(_)) | None if Instant::now() > until => return Err(self.timeout(topic)),
                Some(Err(_)) | None => self.clients.listen(),
            }
        }
        Ok(Offset(at))
    }

    /// Waits until the replica that we read from has reached the end reported by its leader. A
    /// follower, or a new leader, may lag behind.
    fn catch_up(
        &self,
        cursor: &mut Cursor,
        wanted: ReadRequest<'_>,
        until: Instant,
    ) -> Result<(), ClusterError> {
        self.seek(cursor, wanted, wanted.end.0)?;
        loop {
            match cursor.queue.poll(MAX_POLL) {
                Some(Ok(_) | Err(KafkaError::PartitionEOF(_))) => return Ok(()),
                Some(Err(error)) if !is_temporary(&error) => {
                    return Err(self.clients.refused("read", wanted.topic, error));
                }
                _ if Instant::now() > until => return Err(self.timeout(wanted.topic)),
                _ => self.clients.listen(),
            }
        }
    }

    fn timeout(&self, topic: &str) -> ClusterError {
        let timeout = KafkaError::MessageConsumption(Code::OperationTimedOut);
        self.clients.refused("read", topic, timeout)
    }

    /// Stops prefetching a partition.
    pub(super) fn forget(&self, topic: &str, partition: i32) -> Result<(), ClusterError> {
        let removed = self.cursors().remove(&(topic.to_owned(), partition));
        if removed.is_none() {
            return Ok(());
        }
        let mut list = TopicPartitionList::new();
        list.add_partition(topic, partition);
        let left = self.consumer.incremental_unassign(&list);
        left.map_err(|error| self.clients.refused("read", topic, error))
    }

    fn cursors(&self) -> MutexGuard<'_, Cursors> {
        self.cursors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cursor(&self, wanted: ReadRequest<'_>) -> Result<Arc<Mutex<Cursor>>, ClusterError> {
        let ReadRequest { topic, partition, from, .. } = wanted;
        let refused = |error| self.clients.refused("read", topic, error);
        let mut cursors = self.cursors();
        if let Some(cursor) = cursors.get(&(topic.to_owned(), partition)) {
            return Ok(Arc::clone(cursor));
        }
        // The queue comes first, so that no record goes to the shared queue.
        let queue = self.consumer.split_partition_queue(topic, partition);
        let mut queue = queue.ok_or_else(|| refused(KafkaError::NoMessageReceived))?;
        let arrived = Arc::clone(&self.arrived);
        queue.set_nonempty_callback(move || arrived());
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition, raw(from.0)).map_err(refused)?;
        self.consumer.incremental_assign(&list).map_err(refused)?;
        let cursor = Cursor { queue, next: Some(from.0), ended: false, used: Instant::now() };
        let cursor = Arc::new(Mutex::new(cursor));
        cursors.insert((topic.to_owned(), partition), Arc::clone(&cursor));
        Ok(cursor)
    }

    /// Requests the records from `at` on. Earlier requests are dropped.
    fn seek(
        &self,
        cursor: &mut Cursor,
        wanted: ReadRequest<'_>,
        at: u64,
    ) -> Result<(), ClusterError> {
        let ReadRequest { topic, partition, .. } = wanted;
        cursor.ended = false;
        let until = Instant::now() + self.clients.patience;
        loop {
            let sought = self.consumer.seek(topic, partition, raw(at), self.clients.patience);
            match sought {
                Ok(()) => return Ok(()),
                // A partition that was just assigned is not fetched yet.
                Err(_) if Instant::now() < until => std::thread::sleep(RETRY_PAUSE),
                Err(error) => return Err(self.clients.refused("read", topic, error)),
            }
        }
    }
}

/// What is left of the limits after one more record.
fn without(left: Limits, bytes: usize) -> Limits {
    Limits { records: left.records.saturating_sub(1), bytes: left.bytes.saturating_sub(bytes) }
}

fn lock(cursor: &Mutex<Cursor>) -> MutexGuard<'_, Cursor> {
    cursor.lock().unwrap_or_else(PoisonError::into_inner)
}

fn raw(at: u64) -> KafkaOffset {
    KafkaOffset::Offset(i64::try_from(at).unwrap_or(i64::MAX))
}

/// An offset from a broker, which is never negative.
fn offset(raw: i64) -> Offset {
    Offset(u64::try_from(raw).unwrap_or_default())
}

/// Whether the error is temporary: brokers come back or elect a leader.
fn is_temporary(error: &KafkaError) -> bool {
    error.rdkafka_error_code().is_some_and(|code| {
        matches!(
            code,
            Code::NotLeaderForPartition
                | Code::LeaderNotAvailable
                | Code::OffsetNotAvailable
                | Code::UnknownLeaderEpoch
                | Code::FencedLeaderEpoch
                | Code::BrokerTransportFailure
                | Code::AllBrokersDown
                | Code::BrokerNotAvailable
                | Code::ReplicaNotAvailable
                | Code::UnknownPartition
                | Code::WaitCache
                | Code::RequestTimedOut
                | Code::NetworkException
                | Code::BrokerDestroy
                | Code::DestroyBroker
        )
    })
}
