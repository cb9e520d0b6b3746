//! Reading committed records of partitions, each through a queue of its own.
//!
//! Between records there may be gaps: ends of transactions, what was aborted, what was
//! compacted. That nothing lies before an offset is known only from an end of
//! the partition that was reported after we had asked for just these records, by a
//! replica that has come as far.

use super::client::{Clients, Context};
use super::refused::Refused;
use crate::names::Offset;
use crate::store::Limits;
use rdkafka::consumer::base_consumer::PartitionQueue;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::{Offset as At, TopicPartitionList};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const AGAIN: Duration = Duration::from_millis(2);
/// How long one look into a queue takes at most.
const LOOK: Duration = Duration::from_millis(200);

/// The partitions that are being read, each at one place.
pub(super) struct Reader {
    clients: Arc<Clients>,
    consumer: Arc<BaseConsumer<Context>>,
    cursors: Mutex<Cursors>,
    /// The furthest end that was told of each partition.
    ends: Mutex<HashMap<(String, i32), Offset>>,
    arrived: Arc<dyn Fn() + Send + Sync>,
}

type Cursors = HashMap<(String, i32), Arc<Mutex<Cursor>>>;

struct Cursor {
    queue: PartitionQueue<Context>,
    /// The offset that the queue goes on at; `None` while that is unknown.
    next: Option<u64>,
    /// It has reported an end, and does so once for each.
    ended: bool,
    used: Instant,
}

/// Where a reader stands in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It goes on just there.
    Here,
    /// It has not read this partition.
    Nowhere,
    /// Elsewhere, since it was last used.
    Elsewhere(Instant),
    /// It is reading.
    Busy,
}

/// What to read.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) topic: &'a str,
    pub(super) partition: i32,
    pub(super) from: Offset,
    /// Everything before it is decided: committed, aborted or a gap.
    pub(super) end: Offset,
    pub(super) limits: Limits,
}

impl Reader {
    /// `arrived` is called, from a thread of librdkafka, when a partition that was
    /// read has something new.
    pub(super) fn new(
        clients: Arc<Clients>,
        consumer: Arc<BaseConsumer<Context>>,
        arrived: Arc<dyn Fn() + Send + Sync>,
    ) -> Self {
        Self { clients, consumer, cursors: Mutex::default(), ends: Mutex::default(), arrived }
    }

    /// Whether it would go on at an offset without losing what it fetched ahead.
    pub(super) fn standing(&self, topic: &str, partition: i32, at: Offset) -> Standing {
        let cursor = self.cursors().get(&(topic.to_owned(), partition)).cloned();
        let Some(cursor) = cursor else { return Standing::Nowhere };
        match cursor.try_lock() {
            Ok(cursor) if cursor.next == Some(at.0) => Standing::Here,
            Ok(cursor) => Standing::Elsewhere(cursor.used),
            Err(_) => Standing::Busy,
        }
    }

    /// The first offset there is, and the end of what is decided, which never goes back: a
    /// broker that has just started tells less for a moment.
    pub(super) fn bounds(&self, topic: &str, partition: i32) -> Result<(Offset, Offset), Refused> {
        self.clients.listen();
        let until = Instant::now() + self.clients.patience;
        loop {
            let asked = self.consumer.fetch_watermarks(topic, partition, until - Instant::now());
            match asked {
                Ok((_, high))
                    if self.is_behind(topic, partition, offset(high))
                        && Instant::now() + AGAIN < until =>
                {
                    std::thread::sleep(AGAIN);
                }
                Ok((low, high)) => return Ok((offset(low), offset(high))),
                // While a leader is elected, or a broker starts.
                Err(error) if is_passing(&error) && Instant::now() + AGAIN < until => {
                    std::thread::sleep(AGAIN);
                }
                Err(error) => return Err(self.clients.refused("read", topic, error)),
            }
        }
    }

    /// Whether an end is before one that was told.
    fn is_behind(&self, topic: &str, partition: i32, end: Offset) -> bool {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let furthest = ends.entry((topic.to_owned(), partition)).or_insert(end);
        *furthest = end.max(*furthest);
        end < *furthest
    }

    /// Gives records in order to `take`, which says how many bytes each has; where the
    /// next read starts. One record at least, if there is one before the end.
    pub(super) fn read(
        &self,
        wanted: Wanted<'_>,
        take: &mut dyn FnMut(&BorrowedMessage<'_>) -> usize,
    ) -> Result<Offset, Refused> {
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
        wanted: Wanted<'_>,
        take: &mut dyn FnMut(&BorrowedMessage<'_>) -> usize,
    ) -> Result<Offset, Refused> {
        let Wanted { topic, from, end, limits, .. } = wanted;
        let (mut at, mut left, mut is_proved) = (from.0, limits, false);
        if cursor.next != Some(at) {
            self.seek(cursor, wanted, at)?;
        }
        let until = Instant::now() + self.clients.patience;
        // At the end what waits in the queue is taken too: only when it is empty does the
        // next thing that comes wake anybody.
        let is_at_end = at >= end.0;
        while at < end.0 || is_at_end {
            let has_some = left.records < limits.records;
            let is_quick = is_at_end || has_some || (cursor.ended && !is_proved);
            match cursor.queue.poll(if is_quick { Duration::ZERO } else { LOOK }) {
                Some(Ok(message)) => {
                    cursor.ended = false;
                    let offset = offset(message.offset()).0;
                    if offset >= at {
                        at = offset + 1;
                        left.records = left.records.saturating_sub(1);
                        left.bytes = left.bytes.saturating_sub(take(&message));
                    }
                    if left.records == 0 || left.bytes == 0 {
                        break;
                    }
                }
                Some(Err(KafkaError::PartitionEOF(_))) => {
                    cursor.ended = true;
                    at = if is_proved && !has_some { at.max(end.0) } else { at };
                }
                Some(Err(error)) if !is_passing(&error) => {
                    return Err(self.clients.refused("read", topic, error));
                }
                None if has_some || is_at_end => break,
                None if !is_proved => {
                    self.prove(cursor, wanted, until)?;
                    self.seek(cursor, wanted, at)?;
                    is_proved = true;
                }
                Some(Err(_)) | None if Instant::now() > until => return Err(self.silence(topic)),
                Some(Err(_)) | None => self.clients.listen(),
            }
        }
        Ok(Offset(at))
    }

    /// Waits until the replica that we read has come to the end that its leader told: after
    /// an election, or if it follows, it may lag behind.
    fn prove(
        &self,
        cursor: &mut Cursor,
        wanted: Wanted<'_>,
        until: Instant,
    ) -> Result<(), Refused> {
        self.seek(cursor, wanted, wanted.end.0)?;
        loop {
            match cursor.queue.poll(LOOK) {
                Some(Ok(_) | Err(KafkaError::PartitionEOF(_))) => return Ok(()),
                Some(Err(error)) if !is_passing(&error) => {
                    return Err(self.clients.refused("read", wanted.topic, error));
                }
                _ if Instant::now() > until => return Err(self.silence(wanted.topic)),
                _ => self.clients.listen(),
            }
        }
    }

    fn silence(&self, topic: &str) -> Refused {
        let silence = KafkaError::MessageConsumption(Code::OperationTimedOut);
        self.clients.refused("read", topic, silence)
    }

    /// Stops reading a partition ahead.
    pub(super) fn forget(&self, topic: &str, partition: i32) -> Result<(), Refused> {
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

    fn cursor(&self, wanted: Wanted<'_>) -> Result<Arc<Mutex<Cursor>>, Refused> {
        let Wanted { topic, partition, from, .. } = wanted;
        let refused = |error| self.clients.refused("read", topic, error);
        let mut cursors = self.cursors();
        if let Some(cursor) = cursors.get(&(topic.to_owned(), partition)) {
            return Ok(Arc::clone(cursor));
        }
        // The queue first, so that nothing goes to the one that all share.
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

    /// Asks for the records from `at` on; what was asked before is not given any more.
    fn seek(&self, cursor: &mut Cursor, wanted: Wanted<'_>, at: u64) -> Result<(), Refused> {
        let Wanted { topic, partition, .. } = wanted;
        cursor.ended = false;
        let until = Instant::now() + self.clients.patience;
        loop {
            let sought = self.consumer.seek(topic, partition, raw(at), self.clients.patience);
            match sought {
                Ok(()) => return Ok(()),
                // A partition that was assigned just now is not fetched yet.
                Err(_) if Instant::now() < until => std::thread::sleep(AGAIN),
                Err(error) => return Err(self.clients.refused("read", topic, error)),
            }
        }
    }
}

fn lock(cursor: &Mutex<Cursor>) -> MutexGuard<'_, Cursor> {
    cursor.lock().unwrap_or_else(PoisonError::into_inner)
}

fn raw(at: u64) -> At {
    At::Offset(i64::try_from(at).unwrap_or(i64::MAX))
}

/// An offset that a broker says; none is negative.
fn offset(raw: i64) -> Offset {
    Offset(u64::try_from(raw).unwrap_or_default())
}

/// What passes by itself when brokers come back or elect a leader.
fn is_passing(error: &KafkaError) -> bool {
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
