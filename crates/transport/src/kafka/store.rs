//! Implements `Store` over a cluster.

use super::client::Clients;
use super::group::Offsets;
use super::options::Options;
use super::reader::{CursorPosition, ReadRequest, Reader};
use super::topics::{Kind, Names, TopicInfo, Topics};
use super::transaction::{TIME_HEADER, Transactions, position_of};
use crate::batch::{Batch, Parts};
use crate::error::Error;
use crate::error::cluster::ClusterError;
use crate::names::{Bounds, Group, Offset, Partition, Space, Topic};
use crate::queue::Queue;
use crate::receipt::{CommitReceipt, PendingCommit, Placement, Sequence, SyncPoint};
use crate::record::{Chunk, Record};
use crate::store::{ExportEntry, FetchedRecords, Limits, Stats, Store};
use bytes::Bytes;
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::producer::Producer;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Maximum overhead of framing a record, without that of its headers.
const MAX_FRAMING: usize = 512;
const RETRY_PAUSE: Duration = Duration::from_millis(1);
/// How long a read waits, once for each transaction, for the marker that makes it readable.
/// Usually it takes milliseconds. A broker that ends meanwhile can leave it out, until the next
/// transaction of that partition.
const MARKER_WAIT: Duration = Duration::from_secs(10);

/// A store in a Kafka cluster. The readers are dropped first, because their callbacks, on
/// threads of librdkafka, must not hold the last reference to the queue.
pub(super) struct Kafka {
    readers: [Reader; 2],
    queue: Arc<Queue<Transactions>>,
    clients: Arc<Clients>,
    topics: Topics,
    names: Names,
    arrived: Arc<AtomicBool>,
    /// Held while a space is created.
    making: Mutex<()>,
    /// Ends of our records for whose markers a read has waited in vain.
    overdue: Mutex<HashMap<Partition, Offset>>,
}

/// An accepted batch.
#[derive(Debug, Default)]
pub(super) struct Change {
    pub(super) appends: Vec<(Partition, Vec<Chunk>)>,
    pub(super) states: Vec<(Space, Bytes, Option<Bytes>)>,
    pub(super) positions: Vec<(Group, Partition, Offset)>,
    pub(super) placement: Placement,
}

/// Durable state and positions, and the ends of our records.
#[derive(Debug, Default)]
pub(super) struct KafkaState {
    spaces: HashMap<Space, BTreeMap<Bytes, Bytes>>,
    positions: HashMap<(Group, Partition), Offset>,
    ours: HashMap<Partition, OwnRecords>,
}

/// Start and end of our records of the last transaction in a partition.
#[derive(Clone, Copy, Debug)]
struct OwnRecords {
    first: Offset,
    end: Offset,
}

pub(super) fn open(options: &Options) -> Result<Arc<dyn Store>, Error> {
    let store = open_as(options, options.writer_id(), None)?;
    store.load()?;
    Ok(Arc::new(store))
}

/// Opens the store as the writer with this transactional id, and loads no state. A process of a
/// group commits the group's offsets.
pub(super) fn open_as(
    options: &Options,
    id: String,
    offsets: Option<Offsets>,
) -> Result<Kafka, Error> {
    let clients = Arc::new(Clients::new(options, &id)?);
    let names = Names::new(options);
    let topics = Topics::new(Arc::clone(&clients), options.min_copies);
    // Checked before fencing: a process that cannot open the store must not stop the one that
    // has it open.
    topics.check_all(&names)?;
    // From here on, the previous writer cannot write, and its transaction is decided.
    let fenced = clients.producer.init_transactions(clients.patience);
    fenced.map_err(|error| clients.refused("become the writer", &id, error))?;
    clients.answered();
    let (deciding, writing) = (AtomicBool::new(false), Arc::clone(&clients));
    let writer = Transactions { clients: writing, names: names.clone(), id, offsets, deciding };
    let queue = Arc::new(Queue::new(writer, KafkaState::default(), options.max_staged));
    let arrived = Arc::new(AtomicBool::new(false));
    let wakes = wakes(&queue, &arrived);
    let readers = [&clients.consumer, &clients.second_consumer].map(|consumer| {
        Reader::new(Arc::clone(&clients), Arc::clone(consumer), Arc::clone(&wakes))
    });
    let (making, overdue) = (Mutex::default(), Mutex::default());
    Ok(Kafka { readers, queue, clients, topics, names, arrived, making, overdue })
}

/// Wakes a reader that waits at the end of a partition.
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
    fn new(parts: Parts, placement: Placement) -> Self {
        let Parts { appends, states, positions } = parts;
        Self { appends, states, positions, placement }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.appends.is_empty() && self.states.is_empty() && self.positions.is_empty()
    }
}

impl KafkaState {
    /// Records that a transaction is durable. Returns its number of records.
    pub(super) fn take(&mut self, group: Vec<Change>) -> u64 {
        let mut ours: HashMap<Partition, OwnRecords> = HashMap::new();
        for appended in group.iter().flat_map(|change| change.placement.appended()) {
            let (first, end) = (appended.first, appended.end);
            let ours = ours.entry(appended.partition.clone()).or_insert(OwnRecords { first, end });
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
    fn ensure(&self, topic: &Topic, partitions: u32, kind: Kind) -> Result<(), Error> {
        self.queue.flush()?;
        let known = self.topics.ensure(&self.names.topic(topic)?, partitions, kind)?;
        if known.partitions == partitions {
            return Ok(());
        }
        Err(Error::TopicDiffers { topic: topic.clone(), have: known.partitions, want: partitions })
    }

    /// The clients, whose producer hears the brokers' time.
    pub(super) fn clients(&self) -> &Arc<Clients> {
        &self.clients
    }

    /// Reads positions and all existing state spaces.
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

    /// Loads a space. It exists once it is read completely.
    fn load_space(&self, space: &Space, name: &str) -> Result<(), Error> {
        let values = self.last_values(name)?;
        self.queue.usable()?.shared.spaces.insert(space.clone(), values);
        Ok(())
    }

    /// The last value of each key of a compacted topic.
    fn last_values(&self, topic: &str) -> Result<BTreeMap<Bytes, Bytes>, Error> {
        let [reader, _] = &self.readers;
        let (mut from, end) = reader.bounds(topic, 0)?;
        let mut values = BTreeMap::new();
        while from < end {
            let wanted = ReadRequest { topic, partition: 0, from, end, limits: Limits::default() };
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

    /// The reader that continues at an offset, or discards the least by moving there.
    fn reader(&self, topic: &str, partition: i32, at: Offset) -> &Reader {
        let [first, second] = &self.readers;
        let position = |reader: &Reader| reader.position(topic, partition, at);
        match (position(first), position(second)) {
            (CursorPosition::Here | CursorPosition::Nowhere, _) => first,
            (_, CursorPosition::Here | CursorPosition::Nowhere) => second,
            (CursorPosition::Elsewhere(one), CursorPosition::Elsewhere(other)) if one < other => {
                first
            }
            (CursorPosition::Elsewhere(_), CursorPosition::Busy) => first,
            _ => second,
        }
    }

    /// A partition's topic and index in the cluster.
    fn place(&self, partition: &Partition) -> Result<(String, i32, TopicInfo), Error> {
        let name = self.names.topic(&partition.topic)?;
        let unknown = || Error::UnknownTopic { topic: partition.topic.clone() };
        let known = self.topics.find(&name)?.ok_or_else(unknown)?;
        let partitions = known.partitions;
        match i32::try_from(partition.index) {
            Ok(index) if partition.index < partitions => Ok((name, index, known)),
            _ => Err(Error::UnknownPartition { partition: partition.clone(), partitions }),
        }
    }

    /// Checks the names and sizes of a batch, except the existence of its spaces.
    fn check(&self, parts: &Parts) -> Result<(), Error> {
        for (partition, chunks) in &parts.appends {
            let (name, _, known) = self.place(partition)?;
            for chunk in chunks.iter().filter(|chunk| chunk.len() + MAX_FRAMING > known.max_bytes) {
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

    /// The extent of a partition. It includes everything that we committed, unless another
    /// producer has an open transaction before that.
    fn extent(&self, partition: &Partition) -> Result<Extent, Error> {
        drop(self.queue.usable()?);
        let (name, index, _) = self.place(partition)?;
        let [reader, _] = &self.readers;
        let until = Instant::now() + self.clients.patience.min(MARKER_WAIT);
        let mut pause = RETRY_PAUSE;
        loop {
            let (start, end) = reader.bounds(&name, index)?;
            // Some partitions may have the marker of a transaction before others. What is decided
            // but not published must not be visible.
            let deciding = self.queue.writer().deciding.load(Ordering::SeqCst);
            let state = if deciding { self.queue.after_write()? } else { self.queue.usable()? };
            let ours = state.shared.ours.get(partition).copied();
            drop(state);
            // A commit is durable a moment before each partition has its marker. In that moment,
            // and only then, what is decided ends where our records begin. A broker that has just
            // started may report any end before that.
            let lacks_marker = ours.is_some_and(|ours| {
                ours.end > end && (ours.first == end || self.clients.may_lag())
            });
            let known = ours.map_or(end, |ours| ours.end.max(end));
            if !lacks_marker || self.is_overdue(partition, known, Instant::now() > until) {
                return Ok(Extent { name, index, bounds: Bounds { start, end }, known });
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(RETRY_PAUSE * 16);
        }
    }

    /// Whether a read has waited in vain for the marker before this end; from now on, if so `now`.
    fn is_overdue(&self, partition: &Partition, end: Offset, now: bool) -> bool {
        let mut overdue = self.overdue.lock().unwrap_or_else(PoisonError::into_inner);
        if now {
            overdue.insert(partition.clone(), end);
        }
        overdue.get(partition) == Some(&end)
    }
}

/// A partition in the cluster, and its bounds.
struct Extent {
    name: String,
    index: i32,
    bounds: Bounds,
    /// The end of the records that we know of, although they may be hidden.
    known: Offset,
}

impl Store for Kafka {
    fn ensure_topic(&self, topic: &Topic, partitions: u32) -> Result<(), Error> {
        self.ensure(topic, partitions, Kind::Records)
    }

    fn ensure_stamped_topic(&self, topic: &Topic, partitions: u32) -> Result<(), Error> {
        self.ensure(topic, partitions, Kind::Stamped)
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

    fn commit_buffered(&self, batch: Batch) -> Result<PendingCommit, Error> {
        let (bytes, placement) = (batch.bytes(), Placement::default());
        let parts = batch.into_parts();
        drop(self.queue.usable()?);
        self.check(&parts)?;
        let sequence = self.queue.stage(bytes, |shared| {
            parts.states.iter().try_for_each(|(space, ..)| shared.space(space).map(drop))?;
            Ok(Some(Change::new(parts, placement.clone())))
        })?;
        Ok(PendingCommit { sequence: sequence.unwrap_or_default(), placement })
    }

    fn sync(&self) -> Result<SyncPoint, Error> {
        self.queue.flush().map(SyncPoint)
    }

    fn settle(&self, pending: PendingCommit) -> Result<CommitReceipt, Error> {
        self.queue.settle(pending.sequence)?;
        Ok(pending.into_durable())
    }

    fn read(
        &self,
        partition: &Partition,
        from: Offset,
        limits: Limits,
    ) -> Result<FetchedRecords, Error> {
        let Extent { name, index, bounds, known } = self.extent(partition)?;
        if from < bounds.start || from > known {
            let partition = partition.clone();
            return Err(Error::OffsetOutOfRange { partition, offset: from, bounds });
        }
        // Records behind another producer's open transaction are not readable yet.
        if from > bounds.end {
            return Ok(FetchedRecords::of_records(Vec::new(), from));
        }
        let end = bounds.end;
        let limits = Limits { records: limits.records.max(1), ..limits };
        let mut records = Vec::new();
        let wanted = ReadRequest { topic: &name, partition: index, from, end, limits };
        let next = self.reader(&name, index, from).read(wanted, &mut |message| {
            let record = record_of(message);
            let bytes = record.len();
            records.push(record);
            bytes
        })?;
        Ok(FetchedRecords::of_records(records, next))
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
        let (name, index, _) = self.place(partition)?;
        if let Some(offsets) = &self.queue.writer().offsets {
            let found = offsets.committed(&name, index, self.clients.patience);
            return Ok(found.map_err(|e| self.clients.refused("read the position in", &name, e))?);
        }
        let state = self.queue.usable()?;
        Ok(state.shared.positions.get(&(group.clone(), partition.clone())).copied())
    }

    fn wait(&self, seen: Sequence, timeout: Duration) -> Result<Sequence, Error> {
        let reached = self.queue.wait(seen, timeout)?;
        if reached > seen || !self.arrived.swap(false, Ordering::AcqRel) {
            return Ok(reached);
        }
        // Records of other producers count as an empty batch.
        match self.queue.stage(0, |_| Ok(Some(Change::default())))? {
            Some(sequence) => self.queue.settle(sequence).map(|()| sequence),
            None => Ok(reached),
        }
    }

    fn export(&self, _: &mut dyn FnMut(ExportEntry) -> bool) -> Result<(), Error> {
        Err(Error::NoExport)
    }

    fn stats(&self) -> Stats {
        self.queue.stats()
    }
}

fn fits(topic: &str, known: TopicInfo, bytes: usize) -> Result<(), Error> {
    if bytes + MAX_FRAMING <= known.max_bytes {
        return Ok(());
    }
    Err(ClusterError::TooLarge { topic: topic.to_owned(), bytes, limit: known.max_bytes }.into())
}

/// Converts a record of any producer.
fn record_of(message: &BorrowedMessage<'_>) -> Record {
    // The library panics on a name that is not UTF-8, which no Java client could have written.
    // Such a record has no headers here.
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
