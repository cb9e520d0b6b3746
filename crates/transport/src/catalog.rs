//! The existing topics, partitions and spaces, the bounds of each partition, and its next
//! offset.

use crate::batch::Parts;
use crate::error::Error;
use crate::names::{Bounds, Offset, Partition, Space, Topic};
use crate::receipt::OffsetRange;
use crate::tables::{
    self, Op, PartitionKey, Table, Tables, be_u64, chunk_offset, two_u32, two_u64,
};
use bytes::Bytes;
use std::collections::HashMap;
use std::ops::Bound;

/// Kept in memory, and rebuilt from the tables when a store is opened.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    topics: HashMap<Topic, TopicEntry>,
    spaces: HashMap<Space, u32>,
    next_id: u32,
}

#[derive(Debug)]
struct TopicEntry {
    id: u32,
    partitions: Vec<Extent>,
}

/// The bounds of a partition, now and once all staged batches are durable.
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    durable: Bounds,
    next: Offset,
    cut: Offset,
}

/// An entry of the tables is damaged.
pub(crate) struct CatalogError(pub(crate) &'static str);

impl Catalog {
    /// Rebuilds the catalog.
    pub(crate) fn load(from: &impl Tables) -> Result<Result<Self, CatalogError>, Error> {
        let mut catalog = Self::default();
        let mut damaged = false;
        for (prefix, is_topic) in [(tables::TOPICS, true), (tables::SPACES, false)] {
            each_with_prefix(from, prefix, &mut |name, value| {
                let defined = name.and_then(|name| catalog.define(name, is_topic, value));
                damaged |= defined.is_none();
            })?;
        }
        if damaged {
            return Ok(Err(CatalogError("the list of topics and state spaces")));
        }
        let starts = truncations(from)?;
        for topic in catalog.topics.values_mut() {
            for (index, extent) in (0..).zip(&mut topic.partitions) {
                let at = PartitionKey { topic: topic.id, index };
                let Some(found) = extent_of(from, at, starts.get(&at).copied())? else {
                    return Ok(Err(CatalogError("the last records of a partition")));
                };
                *extent = found;
            }
        }
        Ok(Ok(catalog))
    }

    /// Adds a definition. `None` if it is damaged.
    fn define(&mut self, name: &str, is_topic: bool, value: &[u8]) -> Option<()> {
        let id = if is_topic {
            let (id, partitions) = two_u32(value)?;
            self.insert_topic(&Topic::new(name).ok()?, id, partitions);
            id
        } else {
            let id = u32::from_be_bytes(value.try_into().ok()?);
            self.spaces.insert(Space::new(name).ok()?, id);
            id
        };
        self.next_id = self.next_id.max(id.checked_add(1)?);
        Some(())
    }

    fn insert_topic(&mut self, topic: &Topic, id: u32, partitions: u32) {
        let partitions = (0..partitions).map(|_| Extent::default()).collect();
        self.topics.insert(topic.clone(), TopicEntry { id, partitions });
    }

    /// Adds a topic. Returns the change to make durable, or `None` if it exists.
    pub(crate) fn add_topic(&mut self, topic: &Topic, want: u32) -> Result<Option<Op>, Error> {
        if let Some(have) = self.partitions(topic) {
            let topic = topic.clone();
            return if have == want {
                Ok(None)
            } else {
                Err(Error::TopicDiffers { topic, have, want })
            };
        }
        let id = self.take_id();
        self.insert_topic(topic, id, want);
        let value = tables::joined(&[&id.to_be_bytes(), &want.to_be_bytes()]);
        Ok(Some(define_op(tables::TOPICS, topic.as_bytes(), value)))
    }

    /// Adds a state space. Returns the change to make durable, or `None` if it exists.
    pub(crate) fn add_space(&mut self, space: &Space) -> Option<Op> {
        if self.spaces.contains_key(space) {
            return None;
        }
        let id = self.take_id();
        self.spaces.insert(space.clone(), id);
        let value = Bytes::copy_from_slice(&id.to_be_bytes());
        Some(define_op(tables::SPACES, space.as_bytes(), value))
    }

    fn take_id(&mut self) -> u32 {
        self.next_id += 1;
        self.next_id - 1
    }

    /// The number of partitions of a topic.
    pub(crate) fn partitions(&self, topic: &Topic) -> Option<u32> {
        self.topics.get(topic).and_then(|entry| u32::try_from(entry.partitions.len()).ok())
    }

    /// The number of a space.
    pub(crate) fn space(&self, space: &Space) -> Result<u32, Error> {
        let unknown = || Error::UnknownSpace { space: space.clone() };
        self.spaces.get(space).copied().ok_or_else(unknown)
    }

    /// A partition's key in the tables, and its durable bounds.
    pub(crate) fn partition(&self, partition: &Partition) -> Result<(PartitionKey, Bounds), Error> {
        self.find(partition).map(|(at, extent)| (at, extent.durable))
    }

    fn find(&self, partition: &Partition) -> Result<(PartitionKey, Extent), Error> {
        let topic = self.topic(partition)?;
        let index = partition.index as usize;
        match topic.partitions.get(index) {
            Some(extent) => Ok((PartitionKey { topic: topic.id, index: partition.index }, *extent)),
            None => Err(self.no_partition(partition)),
        }
    }

    fn topic(&self, partition: &Partition) -> Result<&TopicEntry, Error> {
        let unknown = || Error::UnknownTopic { topic: partition.topic.clone() };
        self.topics.get(&partition.topic).ok_or_else(unknown)
    }

    fn no_partition(&self, partition: &Partition) -> Error {
        let partitions = self.partitions(&partition.topic).unwrap_or_default();
        Error::UnknownPartition { partition: partition.clone(), partitions }
    }

    fn extent_mut(&mut self, partition: &Partition) -> Option<&mut Extent> {
        let topic = self.topics.get_mut(&partition.topic)?;
        topic.partitions.get_mut(partition.index as usize)
    }

    /// Checks all names in a batch before any of it takes effect.
    pub(crate) fn check(&self, parts: &Parts) -> Result<(), Error> {
        let appended = parts.appends.iter().map(|(partition, _)| partition);
        let moved = parts.positions.iter().map(|(_, partition, _)| partition);
        appended.chain(moved).try_for_each(|partition| self.find(partition).map(drop))?;
        parts.states.iter().try_for_each(|(space, ..)| self.space(space).map(drop))
    }

    /// Assigns offsets to the records of a checked batch.
    pub(crate) fn assign(&mut self, parts: &Parts) -> Vec<OffsetRange> {
        let assign = |(partition, chunks): &(Partition, Vec<crate::record::Chunk>)| {
            let count: u64 = chunks.iter().map(crate::record::Chunk::count).sum();
            let extent = self.extent_mut(partition)?;
            let first = extent.next;
            extent.next = Offset(first.0 + count);
            Some(OffsetRange { partition: partition.clone(), first, end: extent.next })
        };
        parts.appends.iter().filter_map(assign).collect()
    }

    /// Records that a batch's records are durable.
    pub(crate) fn publish(&mut self, appended: &[OffsetRange]) {
        for appended in appended {
            if let Some(extent) = self.extent_mut(&appended.partition) {
                extent.durable.end = extent.durable.end.max(appended.end);
            }
        }
    }

    /// Whether a truncation goes beyond all earlier requests.
    pub(crate) fn cut(&mut self, partition: &Partition, before: Offset) -> bool {
        let Some(extent) = self.extent_mut(partition) else { return false };
        let is_new = before > extent.cut;
        extent.cut = extent.cut.max(before);
        is_new
    }

    /// Records that a partition's records before `start` were removed.
    pub(crate) fn truncate(&mut self, partition: &Partition, start: Offset) {
        if let Some(extent) = self.extent_mut(partition) {
            extent.durable.start = extent.durable.start.max(start);
        }
    }
}

fn define_op(prefix: &[u8], name: &[u8], value: Bytes) -> Op {
    Op { table: Table::State, key: tables::joined(&[prefix, name]), value: Some(value) }
}

fn each_with_prefix(
    from: &impl Tables,
    prefix: &[u8],
    each: &mut dyn FnMut(Option<&str>, &[u8]),
) -> Result<(), Error> {
    let end = tables::after_prefix(prefix).unwrap_or_default();
    let range = (Bound::Included(prefix), Bound::Excluded(&end[..]));
    from.range(Table::State, range, &mut |key, value| {
        let name = key.strip_prefix(prefix).and_then(|name| std::str::from_utf8(name).ok());
        each(name, &value);
        true
    })
}

/// Start and end of each truncated partition, at its last truncation.
fn truncations(from: &impl Tables) -> Result<HashMap<PartitionKey, (u64, u64)>, Error> {
    let mut starts = HashMap::new();
    let end = tables::after_prefix(tables::TRUNCATED).unwrap_or_default();
    let range = (Bound::Included(tables::TRUNCATED), Bound::Excluded(&end[..]));
    from.range(Table::State, range, &mut |key, value| {
        starts.extend(PartitionKey::of_truncated(&key).zip(two_u64(&value)));
        true
    })?;
    Ok(starts)
}

/// The extent of a partition, from its last chunk. `None` if that is damaged.
fn extent_of(
    from: &impl Tables,
    at: PartitionKey,
    truncated: Option<(u64, u64)>,
) -> Result<Option<Extent>, Error> {
    let (start, mut end) = truncated.unwrap_or_default();
    let (low, high) = (at.chunk(Offset(0)), at.chunk(Offset(u64::MAX)));
    if let Some(key) = from.floor(Table::Log, &low, &high)? {
        let count = from.get(Table::Log, &key)?.and_then(crate::record::Chunk::parse);
        let Some((base, chunk)) = chunk_offset(&key).zip(count) else { return Ok(None) };
        end = end.max(base.0 + chunk.count());
    }
    let durable = Bounds { start: Offset(start), end: Offset(end) };
    Ok(Some(Extent { durable, next: durable.end, cut: durable.start }))
}

/// Decodes a position from the tables.
pub(crate) fn parse_offset(value: &[u8]) -> Option<Offset> {
    be_u64(value).map(Offset)
}
