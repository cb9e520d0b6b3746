//! The contract, over a cluster.

use super::client::Clients;
use super::options::Options;
use super::reader::{Reader, Standing, Wanted};
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
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// What framing adds to a record at most, beside its headers' own.
const FRAMING: usize = 512;
const AGAIN: Duration = Duration::from_millis(1);

/// A store in a Kafka cluster. The readers are dropped first: their callbacks, on threads
/// of librdkafka, must not be the last to hold the queue.
pub(super) struct Kafka {
    readers: [Reader; 2],
    queue: Arc<Queue<Transactions>>,
    clients: Arc<Clients>,
    topics: Topics,
    names: Names,
    arrived: Arc<AtomicBool>,
    /// One space is made at a time.
    making: Mutex<()>,
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
    ours: HashMap<Partition, Ours>,
}

/// Where our records of the last transaction begin and end in a partition.
#[derive(Clone, Copy, Debug)]
struct Ours {
    first: Offset,
    end: Offset,
}

pub(super) fn open(options: &Options) -> Result<Arc<dyn Store>, Error> {
    let clients = Arc::new(Clients::new(options)?);
    let (names, id) = (Names::new(options), options.writer_id());
    let topics = Topics::new(Arc::clone(&clients), options.least_copies);
    // Before anybody is fenced: who cannot open the store must not end the one who has it.
    topics.check_all(&names)?;
    // Whoever had the store can write no more, and what it had begun is decided.
    let fenced = clients.producer.init_transactions(clients.patience);
    fenced.map_err(|error| clients.refused("become the writer", &id, error))?;
    clients.answered();
    let (deciding, writing) = (AtomicBool::new(false), Arc::clone(&clients));
    let writer = Transactions { clients: writing, names: names.clone(), id, deciding };
    let queue = Arc::new(Queue::new(writer, Shared::default(), options.max_staged));
    let arrived = Arc::new(AtomicBool::new(false));
    let wakes = wakes(&queue, &arrived);
    let readers = [&clients.consumer, &clients.wanderer].map(|consumer| {
        Reader::new(Arc::clone(&clients), Arc::clone(consumer), Arc::clone(&wakes))
    });
    let making = Mutex::default();
    let store = Kafka { readers, queue, clients, topics, names, arrived, making };
    store.load()?;
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
    /// A transaction is durable; how many records it had.
    pub(super) fn take(&mut self, group: Vec<Change>) -> u64 {
        let mut ours: HashMap<Partition, Ours> = HashMap::new();
        for appended in group.iter().flat_map(|change| change.placed.appended()) {
            let (first, end) = (appended.first, appended.end);
            let ours = ours.entry(appended.partition.clone()).or_insert(Ours { first, end });
            (ours.first, ours.end) = (ours.first.min(first), ours.end.max(end));
        }
        self.ours.extend(ours);
        group.into_iter().map(|change| self.take_one(change)).sum()
    }

    fn take_one(&mut self, change: Change) -> u64 {
        for (space, key, value) in change.states {
            self.put(&space, key, value);
        }
        for (group, partition, next) in change.positions {
            self.positions.insert((group, partition), next);
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
    fn load(&self) -> Result<(), Error> {
        let name = self.names.positions();
        self.topics.ensure(&name, 1, Kind::State)?;
        let mut positions = HashMap::new();
        for (key, value) in self.last_values(&name)? {
            let next = std::str::from_utf8(&value).ok().and_then(|next| next.parse().ok());
            let Some((place, next)) = position_of(&key).zip(next) else {
                return Err(Error::Corrupt { path: name.into(), what: "a position", source: None });
            };
            positions.insert(place, Offset(next));
        }
        self.queue.usable()?.shared.positions = positions;
        for (name, space) in self.topics.spaces(&self.names)? {
            self.load_space(&space, &name)?;
        }
        Ok(())
    }

    /// The space is there once it is read whole.
    fn load_space(&self, space: &Space, name: &str) -> Result<(), Error> {
        let values = self.last_values(name)?;
        self.queue.usable()?.shared.spaces.insert(space.clone(), values);
        Ok(())
    }

    /// What a compacted topic says.
    fn last_values(&self, topic: &str) -> Result<BTreeMap<Bytes, Bytes>, Error> {
        let [reader, _] = &self.readers;
        let (mut from, end) = reader.bounds(topic, 0)?;
        let mut values = BTreeMap::new();
        while from < end {
            let wanted = Wanted { topic, partition: 0, from, end, limits: Limits::default() };
            from = reader.read(wanted, &mut |message| {
                let key = Bytes::copy_from_slice(message.key().unwrap_or_default());
                match message.payload() {
                    Some(value) => values.insert(key, Bytes::copy_from_slice(value)),
                    None => values.remove(&key),
                };
                message.key_len() + message.payload_len()
            })?;
        }
        reader.forget(topic, 0)?;
        Ok(values)
    }

    /// The reader that goes on at an offset, or loses least by going there.
    fn reader(&self, topic: &str, partition: i32, at: Offset) -> &Reader {
        let [first, second] = &self.readers;
        let standing = |reader: &Reader| reader.standing(topic, partition, at);
        match (standing(first), standing(second)) {
            (Standing::Here | Standing::Nowhere, _) => first,
            (_, Standing::Here | Standing::Nowhere) => second,
            (Standing::Elsewhere(one), Standing::Elsewhere(other)) if one < other => first,
            (Standing::Elsewhere(_), Standing::Busy) => first,
            _ => second,
        }
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

    /// What a partition holds, with all that we have committed to it, unless a
    /// transaction of somebody else is open before that.
    fn extent(&self, partition: &Partition) -> Result<Extent, Error> {
        drop(self.queue.usable()?);
        let (name, index, _) = self.place(partition)?;
        let [reader, _] = &self.readers;
        let until = Instant::now() + self.clients.patience;
        let mut again = AGAIN;
        loop {
            let (start, end) = reader.bounds(&name, index)?;
            // Marks of a transaction may stand here and not yet there: what is decided and
            // not published is not seen.
            let deciding = self.queue.writer().deciding.load(Ordering::SeqCst);
            let state = if deciding { self.queue.after_write()? } else { self.queue.usable()? };
            let ours = state.shared.ours.get(partition).copied();
            drop(state);
            // A commit is durable a moment before its mark stands in each partition: until
            // then, and then alone, what is decided ends where our records begin.
            let lacks_mark = ours.is_some_and(|ours| ours.first == end && ours.end > end);
            if !lacks_mark || Instant::now() > until {
                let bounds = Bounds { start, end };
                return Ok(Extent {
                    name,
                    index,
                    bounds,
                    known: ours.map_or(end, |o| o.end.max(end)),
                });
            }
            std::thread::sleep(again);
            again = (again * 2).min(AGAIN * 16);
        }
    }
}

/// A partition in the cluster, and what it holds.
struct Extent {
    name: String,
    index: i32,
    bounds: Bounds,
    /// The end of what we know to be there, though it may be hidden.
    known: Offset,
}

impl Store for Kafka {
    fn ensure_topic(&self, topic: &Topic, partitions: u32) -> Result<(), Error> {
        self.queue.flush()?;
        let known = self.topics.ensure(&self.names.topic(topic)?, partitions, Kind::Records)?;
        if known.partitions == partitions {
            return Ok(());
        }
        Err(Error::TopicDiffers { topic: topic.clone(), have: known.partitions, want: partitions })
    }

    fn partitions(&self, topic: &Topic) -> Result<Option<u32>, Error> {
        drop(self.queue.usable()?);
        let known = self.topics.find(&self.names.topic(topic)?)?;
        Ok(known.map(|known| known.partitions))
    }

    fn ensure_space(&self, space: &Space) -> Result<(), Error> {
        self.queue.flush()?;
        let _one = self.making.lock().unwrap_or_else(PoisonError::into_inner);
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
        drop(self.queue.usable()?);
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
        let Extent { name, index, bounds, known } = self.extent(partition)?;
        if from < bounds.start || from > known {
            let partition = partition.clone();
            return Err(Error::OffsetOutOfRange { partition, offset: from, bounds });
        }
        // Of what is hidden by somebody's open transaction there is nothing yet.
        if from > bounds.end {
            return Ok(Fetched::of_records(Vec::new(), from));
        }
        let end = bounds.end;
        let limits = Limits { records: limits.records.max(1), ..limits };
        let mut records = Vec::new();
        let wanted = Wanted { topic: &name, partition: index, from, end, limits };
        let next = self.reader(&name, index, from).read(wanted, &mut |message| {
            let record = record_of(message);
            let bytes = record.len();
            records.push(record);
            bytes
        })?;
        Ok(Fetched::of_records(records, next))
    }

    fn bounds(&self, partition: &Partition) -> Result<Bounds, Error> {
        self.extent(partition).map(|extent| extent.bounds)
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
