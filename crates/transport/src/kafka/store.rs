//! The contract, over a cluster.

use super::client::Clients;
use super::options::Options;
use super::reader::{Reader, Wanted};
use super::refused::Refused;
use super::topics::{Kind, Known, Names, Topics};
use super::transaction::{TIME_HEADER, Transactions, position_of};
use crate::batch::{Batch, Parts};
use crate::error::Error;
use crate::names::{Bounds, Group, Offset, Partition, Space, Topic};
use crate::queue::Queue;
use crate::receipt::{Durable, Pending, Placed, Sequence, Synced};
use crate::record::{Chunk, Record};
use crate::store::{Fetched, Limits, Stats, Store};
use bytes::Bytes;
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::producer::Producer;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// What framing adds to a record at most, beside its headers' own.
const FRAMING: usize = 512;
const AGAIN: Duration = Duration::from_millis(1);

/// A store in a Kafka cluster. The reader is dropped first: its callbacks, on threads
/// of librdkafka, must not be the last to hold the queue.
pub(super) struct Kafka {
    reader: Reader,
    queue: Arc<Queue<Transactions>>,
    clients: Arc<Clients>,
    topics: Topics,
    names: Names,
    arrived: Arc<AtomicBool>,
}

/// One accepted batch.
#[derive(Debug, Default)]
pub(super) struct Change {
    pub(super) appends: Vec<(Partition, Vec<Chunk>)>,
    pub(super) states: Vec<(Space, Bytes, Option<Bytes>)>,
    pub(super) positions: Vec<(Group, Partition, Offset)>,
    pub(super) placed: Placed,
}

/// What is durable of states and positions, and where our records end.
#[derive(Debug, Default)]
pub(super) struct Shared {
    spaces: HashMap<Space, BTreeMap<Bytes, Bytes>>,
    positions: HashMap<(Group, Partition), Offset>,
    ends: HashMap<Partition, Offset>,
}

pub(super) fn open(options: &Options) -> Result<Arc<dyn Store>, Error> {
    let clients = Arc::new(Clients::new(options)?);
    let (names, id) = (Names::new(options), options.writer_id());
    let topics = Topics::new(Arc::clone(&clients));
    // Before anything else, since it says best what is wrong with a connection.
    let there = topics.list()?;
    // Whoever had the store can write no more, and what it had begun is decided.
    let fenced = clients.producer.init_transactions(clients.patience);
    fenced.map_err(|error| clients.refused("become the writer", &id, error))?;
    clients.answered();
    let writer = Transactions { clients: Arc::clone(&clients), names: names.clone(), id };
    let queue = Arc::new(Queue::new(writer, Shared::default(), options.max_staged));
    let arrived = Arc::new(AtomicBool::new(false));
    let reader = Reader::new(Arc::clone(&clients), wakes(&queue, &arrived));
    let store = Kafka { reader, queue, clients, topics, names, arrived };
    store.load(&there)?;
    Ok(Arc::new(store))
}

/// Wakes who waits at the end of a partition.
fn wakes(
    queue: &Arc<Queue<Transactions>>,
    arrived: &Arc<AtomicBool>,
) -> Arc<dyn Fn() + Send + Sync> {
    let (queue, arrived): (Weak<_>, _) = (Arc::downgrade(queue), Arc::clone(arrived));
    Arc::new(move || {
        arrived.store(true, Ordering::Release);
        if let Some(queue) = queue.upgrade() {
            queue.nudge();
        }
    })
}

impl Change {
    fn new(parts: Parts, placed: Placed) -> Self {
        let Parts { appends, states, positions } = parts;
        Self { appends, states, positions, placed }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.appends.is_empty() && self.states.is_empty() && self.positions.is_empty()
    }
}

impl Shared {
    /// A change is durable; how many records it had.
    pub(super) fn take(&mut self, change: Change) -> u64 {
        for (space, key, value) in change.states {
            self.put(&space, key, value);
        }
        for (group, partition, next) in change.positions {
            self.positions.insert((group, partition), next);
        }
        for appended in change.placed.appended() {
            let end = self.ends.entry(appended.partition.clone()).or_default();
            *end = (*end).max(appended.end);
        }
        change.appends.iter().flat_map(|(_, chunks)| chunks).map(Chunk::count).sum()
    }

    fn put(&mut self, space: &Space, key: Bytes, value: Option<Bytes>) {
        let Some(space) = self.spaces.get_mut(space) else { return };
        match value {
            Some(value) => space.insert(key, value),
            None => space.remove(&key),
        };
    }

    fn space(&self, space: &Space) -> Result<&BTreeMap<Bytes, Bytes>, Error> {
        self.spaces.get(space).ok_or_else(|| Error::UnknownSpace { space: space.clone() })
    }
}

impl Kafka {
    /// Reads positions and all state spaces that are there.
    fn load(&self, there: &[String]) -> Result<(), Error> {
        let positions = self.names.positions();
        self.topics.ensure(&positions, 1, Kind::State)?;
        self.each_last(&positions, &mut |shared, key, value| {
            let next = value.and_then(|v| std::str::from_utf8(&v).ok()?.parse().ok());
            if let Some((place, next)) = position_of(&key).zip(next) {
                shared.positions.insert(place, Offset(next));
            }
        })?;
        for name in there {
            if let Some(space) = self.names.space_of(name) {
                self.topics.check(name, Kind::State)?;
                self.load_space(&space, name)?;
            }
        }
        Ok(())
    }

    fn load_space(&self, space: &Space, name: &str) -> Result<(), Error> {
        self.queue.usable()?.shared.spaces.entry(space.clone()).or_default();
        self.each_last(name, &mut |shared, key, value| shared.put(space, key, value))
    }

    /// Goes through a compacted topic, in order.
    fn each_last(
        &self,
        topic: &str,
        each: &mut dyn FnMut(&mut Shared, Bytes, Option<Bytes>),
    ) -> Result<(), Error> {
        let (mut from, end) = self.reader.bounds(topic, 0)?;
        while from < end {
            let limits = Limits::default();
            let mut read = Vec::new();
            let wanted = Wanted { topic, partition: 0, from, end, limits };
            from = self.reader.read(wanted, &mut |message| {
                let copy = |part: Option<&[u8]>| part.map(Bytes::copy_from_slice);
                let key = copy(message.key()).unwrap_or_default();
                read.push((key, copy(message.payload())));
                message.key_len() + message.payload_len()
            })?;
            let mut state = self.queue.usable()?;
            read.into_iter().for_each(|(key, value)| each(&mut state.shared, key, value));
        }
        self.reader.forget(topic, 0)?;
        Ok(())
    }

    /// A partition's topic in the cluster, and its number there.
    fn place(&self, partition: &Partition) -> Result<(String, i32, Known), Error> {
        let name = self.names.topic(&partition.topic)?;
        let unknown = || Error::UnknownTopic { topic: partition.topic.clone() };
        let known = self.topics.find(&name)?.ok_or_else(unknown)?;
        let partitions = known.partitions;
        match i32::try_from(partition.index) {
            Ok(index) if partition.index < partitions => Ok((name, index, known)),
            _ => Err(Error::UnknownPartition { partition: partition.clone(), partitions }),
        }
    }

    /// Checks the names and sizes of a batch, but for its spaces' names.
    fn check(&self, parts: &Parts) -> Result<(), Error> {
        for (partition, chunks) in &parts.appends {
            let (name, _, known) = self.place(partition)?;
            for chunk in chunks.iter().filter(|chunk| chunk.len() + FRAMING > known.max_bytes) {
                chunk.records().try_for_each(|record| fits(&name, known, record.len()))?;
            }
        }
        for (_, partition, _) in &parts.positions {
            self.place(partition)?;
        }
        for (space, key, value) in &parts.states {
            let name = self.names.space(space);
            let known = self.topics.find(&name)?;
            let known = known.ok_or_else(|| Error::UnknownSpace { space: space.clone() })?;
            fits(&name, known, key.len() + value.as_ref().map_or(0, Bytes::len))?;
        }
        Ok(())
    }

    /// What a partition holds, with all that we have committed to it.
    fn extent(&self, name: &str, index: i32, ours: Option<Offset>) -> Result<Bounds, Error> {
        let until = Instant::now() + self.clients.patience;
        loop {
            let (start, end) = self.reader.bounds(name, index)?;
            // A commit is durable a moment before its mark stands in each partition.
            if ours.is_none_or(|ours| end >= ours) || Instant::now() > until {
                return Ok(Bounds { start, end });
            }
            std::thread::sleep(AGAIN);
        }
    }

    /// Where our own records of a partition end; an error if a write has failed.
    fn ours(&self, partition: &Partition) -> Result<Option<Offset>, Error> {
        Ok(self.queue.usable()?.shared.ends.get(partition).copied())
    }
}

impl Store for Kafka {
    fn ensure_topic(&self, topic: &Topic, partitions: u32) -> Result<(), Error> {
        self.queue.flush()?;
        let (known, _) =
            self.topics.ensure(&self.names.topic(topic)?, partitions, Kind::Records)?;
        if known.partitions == partitions {
            return Ok(());
        }
        Err(Error::TopicDiffers { topic: topic.clone(), have: known.partitions, want: partitions })
    }

    fn partitions(&self, topic: &Topic) -> Result<Option<u32>, Error> {
        let known = self.topics.find(&self.names.topic(topic)?)?;
        Ok(known.map(|known| known.partitions))
    }

    fn ensure_space(&self, space: &Space) -> Result<(), Error> {
        self.queue.flush()?;
        if self.queue.usable()?.shared.spaces.contains_key(space) {
            return Ok(());
        }
        let name = self.names.space(space);
        self.topics.ensure(&name, 1, Kind::State)?;
        self.load_space(space, &name)
    }

    fn commit_buffered(&self, batch: Batch) -> Result<Pending, Error> {
        let (bytes, placed) = (batch.bytes(), Placed::default());
        let parts = batch.into_parts();
        self.check(&parts)?;
        let sequence = self.queue.stage(bytes, |shared| {
            parts.states.iter().try_for_each(|(space, ..)| shared.space(space).map(drop))?;
            Ok(Some(Change::new(parts, placed.clone())))
        })?;
        Ok(Pending { sequence: sequence.unwrap_or_default(), placed })
    }

    fn sync(&self) -> Result<Synced, Error> {
        self.queue.flush().map(Synced)
    }

    fn settle(&self, pending: Pending) -> Result<Durable, Error> {
        self.queue.settle(pending.sequence)?;
        Ok(pending.into_durable())
    }

    fn read(&self, partition: &Partition, from: Offset, limits: Limits) -> Result<Fetched, Error> {
        let ours = self.ours(partition)?;
        let (name, index, _) = self.place(partition)?;
        let bounds = self.extent(&name, index, ours)?;
        let Bounds { start, end } = bounds;
        if from < start || from > end {
            let partition = partition.clone();
            return Err(Error::OffsetOutOfRange { partition, offset: from, bounds });
        }
        // Between our last record and a next offset lies the mark of our commit.
        let is_mark = |at: Offset| ours == Some(at) && end.0 == at.0 + 1;
        if from == end || is_mark(from) {
            return Ok(Fetched::of_records(Vec::new(), end));
        }
        let limits = Limits { records: limits.records.max(1), ..limits };
        let mut records = Vec::new();
        let wanted = Wanted { topic: &name, partition: index, from, end, limits };
        let next = self.reader.read(wanted, &mut |message| {
            let record = record_of(message);
            let bytes = record.len();
            records.push(record);
            bytes
        })?;
        Ok(Fetched::of_records(records, if is_mark(next) { end } else { next }))
    }

    fn bounds(&self, partition: &Partition) -> Result<Bounds, Error> {
        let ours = self.ours(partition)?;
        let (name, index, _) = self.place(partition)?;
        self.extent(&name, index, ours)
    }

    fn truncate_before(&self, partition: &Partition, before: Offset) -> Result<(), Error> {
        let bounds = self.bounds(partition)?;
        if before > bounds.end {
            let partition = partition.clone();
            return Err(Error::OffsetOutOfRange { partition, offset: before, bounds });
        }
        if before > bounds.start {
            let (name, ..) = self.place(partition)?;
            self.topics.delete_before(&name, partition, before)?;
        }
        Ok(())
    }

    fn get(&self, space: &Space, key: &[u8]) -> Result<Option<Bytes>, Error> {
        Ok(self.queue.usable()?.shared.space(space)?.get(key).cloned())
    }

    fn scan(
        &self,
        space: &Space,
        prefix: &[u8],
        from: Bound<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>, Error> {
        let state = self.queue.usable()?;
        let keys = state.shared.space(space)?;
        let low = match from {
            Bound::Included(key) | Bound::Excluded(key) if key >= prefix => from,
            _ => Bound::Included(prefix),
        };
        let found = keys.range::<[u8], _>((low, Bound::Unbounded));
        let found = found.take_while(|(key, _)| key.starts_with(prefix)).take(limit);
        Ok(found.map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    fn position(&self, group: &Group, partition: &Partition) -> Result<Option<Offset>, Error> {
        self.place(partition)?;
        let state = self.queue.usable()?;
        Ok(state.shared.positions.get(&(group.clone(), partition.clone())).copied())
    }

    fn wait(&self, seen: Sequence, timeout: Duration) -> Result<Sequence, Error> {
        let reached = self.queue.wait(seen, timeout)?;
        if reached > seen || !self.arrived.swap(false, Ordering::AcqRel) {
            return Ok(reached);
        }
        // What others wrote counts as a batch of ours that is empty.
        match self.queue.stage(0, |_| Ok(Some(Change::default())))? {
            Some(sequence) => self.queue.settle(sequence).map(|()| sequence),
            None => Ok(reached),
        }
    }

    fn stats(&self) -> Stats {
        self.queue.stats()
    }
}

fn fits(topic: &str, known: Known, bytes: usize) -> Result<(), Error> {
    if bytes + FRAMING <= known.max_bytes {
        return Ok(());
    }
    Err(Refused::TooLarge { topic: topic.to_owned(), bytes, limit: known.max_bytes }.into())
}

/// A record as it came, from us or from anybody.
fn record_of(message: &BorrowedMessage<'_>) -> Record {
    // A name that is no UTF-8, which no Java client could have written, makes the
    // library panic: such a record has no headers here.
    let headers = catch_unwind(AssertUnwindSafe(|| {
        let headers = message.headers().into_iter().flat_map(Headers::iter);
        headers.map(|h| (h.key, h.value.unwrap_or_default())).collect::<Vec<_>>()
    }));
    let headers = headers.unwrap_or_default();
    let exact = headers.iter().find(|(name, _)| *name == TIME_HEADER);
    let exact = exact.and_then(|(_, value)| Some(u64::from_be_bytes((*value).try_into().ok()?)));
    let milliseconds = message.timestamp().to_millis().and_then(|ms| u64::try_from(ms).ok());
    let timestamp = exact.unwrap_or_else(|| milliseconds.unwrap_or_default().saturating_mul(1_000));
    Record::new(
        Offset(u64::try_from(message.offset()).unwrap_or_default()),
        timestamp,
        message.key().unwrap_or_default(),
        message.payload().unwrap_or_default(),
        headers.into_iter().filter(|(name, _)| *name != TIME_HEADER),
    )
}
