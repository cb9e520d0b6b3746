//! Stores, names and seeded random numbers for the tests.

use alpheus_transport::local::{self, Options};
use alpheus_transport::simulation::Machine;
use alpheus_transport::{
    Batch, Bound, Bytes, Error, Group, Limits, NewRecord, Offset, Partition, Record, Space, Store,
    Topic,
};
use std::sync::Arc;

/// The limit of unsynced bytes in these tests.
pub(crate) const MAX_STAGED: usize = 1 << 20;

/// A location at which one store after the other can be opened on the same data.
pub(crate) enum World {
    Local(tempfile::TempDir, Options),
    Simulated(Machine),
    #[cfg(feature = "kafka")]
    Kafka(alpheus_transport::kafka::Options),
}

impl World {
    pub(crate) fn local() -> Self {
        Self::Local(tempfile::tempdir().unwrap(), options())
    }

    pub(crate) fn simulated() -> Self {
        Self::Simulated(Machine::new().with_max_staged(MAX_STAGED))
    }

    /// A new prefix in the shared broker, if there is one.
    #[cfg(feature = "kafka")]
    pub(crate) fn kafka() -> Option<Self> {
        let broker = crate::broker::Broker::shared()?;
        Some(Self::Kafka(crate::kafka::options(broker)))
    }

    pub(crate) fn open(&self) -> Arc<dyn Store> {
        self.try_open().unwrap()
    }

    pub(crate) fn try_open(&self) -> Result<Arc<dyn Store>, Error> {
        match self {
            Self::Local(dir, options) => local::open(&dir.path().join("store"), options),
            Self::Simulated(machine) => machine.open(),
            #[cfg(feature = "kafka")]
            Self::Kafka(options) => alpheus_transport::kafka::open(options),
        }
    }
}

pub(crate) fn options() -> Options {
    let mut options = Options::default();
    options.max_staged = MAX_STAGED;
    options
}

pub(crate) fn topic(name: &str) -> Topic {
    Topic::new(name).unwrap()
}

pub(crate) fn space() -> Space {
    Space::new("state").unwrap()
}

pub(crate) fn group() -> Group {
    Group::new("readers").unwrap()
}

pub(crate) fn record(value: &[u8]) -> NewRecord<'_> {
    NewRecord { key: b"key", value, timestamp: 1, ..Default::default() }
}

/// A batch of one record.
pub(crate) fn one(partition: &Partition, value: &[u8]) -> Batch {
    let mut batch = Batch::new();
    batch.append(partition, &record(value)).unwrap();
    batch
}

/// All records of a partition, in small reads.
pub(crate) fn read_all(store: &dyn Store, partition: &Partition) -> Vec<Record> {
    let bounds = store.bounds(partition).unwrap();
    let mut from = bounds.start;
    let mut all: Vec<Record> = Vec::new();
    while from < bounds.end {
        let before = from;
        let fetched = store.read(partition, from, Limits { records: 7, bytes: 300 }).unwrap();
        from = fetched.next_offset();
        assert!(from > before, "a read before the end advances");
        for record in fetched {
            assert!(all.last().is_none_or(|last| last.offset < record.offset), "offsets increase");
            assert!(
                (before..from).contains(&record.offset),
                "the offset is in the range of the read"
            );
            all.push(record);
        }
    }
    assert!(from >= bounds.end);
    all
}

/// The offsets of a partition's records, then its end.
pub(crate) fn offsets(store: &dyn Store, partition: &Partition) -> Vec<Offset> {
    let records = read_all(store, partition).into_iter().map(|record| record.offset);
    records.chain([store.bounds(partition).unwrap().end]).collect()
}

pub(crate) fn values(store: &dyn Store, partition: &Partition) -> Vec<Bytes> {
    read_all(store, partition).into_iter().map(|record| record.value).collect()
}

/// All entries of the state space.
pub(crate) fn scan_all(store: &dyn Store) -> Vec<(Bytes, Bytes)> {
    let mut all: Vec<(Bytes, Bytes)> = Vec::new();
    loop {
        let from = all.last().map_or(Bound::Unbounded, |(key, _)| Bound::Excluded(&key[..]));
        let more = store.scan(&space(), b"", from, 3).unwrap();
        if more.is_empty() {
            return all;
        }
        all.extend(more);
    }
}

pub(crate) fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

pub(crate) fn offset_of(store: &dyn Store, partition: &Partition) -> Offset {
    store.position(&group(), partition).unwrap().unwrap_or_default()
}

/// SplitMix64: reproducible numbers from a seed.
pub(crate) struct SplitMix(pub(crate) u64);

impl SplitMix {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
