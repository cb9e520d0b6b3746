//! Atomic batches of records, state and positions.

use crate::error::Error;
use crate::names::{Group, Offset, Partition, Space};
use crate::record::{self, CHUNK_HEADER, Chunk, NewRecord};
use bytes::Bytes;
use std::collections::BTreeMap;

/// A chunk is closed at this size, so that a small read does not load much.
const MAX_CHUNK_BYTES: usize = 1 << 20;
/// Maximum size of a record. Every store, including Kafka, can be configured to accept it.
pub const MAX_RECORD_BYTES: usize = 16 << 20;
/// Maximum length of a key of a state space.
pub const MAX_STATE_KEY_BYTES: usize = 32 << 10;

/// Changes that become durable and visible together, or not at all.
///
/// The records of a partition keep the order in which they were appended. Of several puts
/// and deletes of a key, the last one counts. If a batch holds an operator's results, state
/// and consumer position, read-process-write is exactly-once.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    appends: BTreeMap<Partition, Chunks>,
    states: Vec<(Space, Bytes, Option<Bytes>)>,
    positions: Vec<(Group, Partition, Offset)>,
    bytes: usize,
}

/// The framed records for a partition.
#[derive(Clone, Debug, Default)]
struct Chunks {
    full: Vec<Chunk>,
    open: Vec<u8>,
    count: u32,
}

impl Batch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a record to a partition. It is copied once, into the batch.
    ///
    /// # Errors
    /// [`Error::RecordTooLarge`] beyond [`MAX_RECORD_BYTES`]. The batch does not change.
    pub fn append(&mut self, to: &Partition, record: &NewRecord<'_>) -> Result<(), Error> {
        let too_large = || Error::RecordTooLarge { partition: to.clone(), limit: MAX_RECORD_BYTES };
        let length = record::encoded_len(record).ok_or_else(too_large)?;
        if length > MAX_RECORD_BYTES {
            return Err(too_large());
        }
        if !self.appends.contains_key(to) {
            self.appends.insert(to.clone(), Chunks::default());
        }
        let added = self.appends.get_mut(to).and_then(|chunks| chunks.push(record, length));
        self.bytes += added.ok_or_else(too_large)?;
        Ok(())
    }

    /// Sets a key of a state space.
    ///
    /// # Errors
    /// [`Error::StateKeyTooLong`] beyond [`MAX_STATE_KEY_BYTES`].
    pub fn put(
        &mut self,
        space: &Space,
        key: impl Into<Bytes>,
        value: impl Into<Bytes>,
    ) -> Result<(), Error> {
        self.state(space, key.into(), Some(value.into()))
    }

    /// Removes a key of a state space, if it exists.
    ///
    /// # Errors
    /// [`Error::StateKeyTooLong`] beyond [`MAX_STATE_KEY_BYTES`].
    pub fn delete(&mut self, space: &Space, key: impl Into<Bytes>) -> Result<(), Error> {
        self.state(space, key.into(), None)
    }

    fn state(&mut self, space: &Space, key: Bytes, value: Option<Bytes>) -> Result<(), Error> {
        if key.len() > MAX_STATE_KEY_BYTES {
            return Err(Error::StateKeyTooLong {
                space: space.clone(),
                limit: MAX_STATE_KEY_BYTES,
            });
        }
        self.bytes += key.len() + value.as_ref().map_or(0, Bytes::len);
        self.states.push((space.clone(), key, value));
        Ok(())
    }

    /// Sets a group's position in a partition: `next` is the offset it reads next.
    pub fn set_position(&mut self, group: &Group, partition: &Partition, next: Offset) {
        self.positions.push((group.clone(), partition.clone(), next));
    }

    /// Whether the batch is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.appends.is_empty() && self.states.is_empty() && self.positions.is_empty()
    }

    /// The approximate number of bytes it adds to a store, for back-pressure.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Closes all chunks and converts the batch for a store.
    pub(crate) fn into_parts(self) -> Parts {
        let close = |(partition, chunks): (Partition, Chunks)| (partition, chunks.close());
        Parts {
            appends: self.appends.into_iter().map(close).collect(),
            states: self.states,
            positions: self.positions,
        }
    }
}

/// The contents of a batch, for a store.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) appends: Vec<(Partition, Vec<Chunk>)>,
    pub(crate) states: Vec<(Space, Bytes, Option<Bytes>)>,
    pub(crate) positions: Vec<(Group, Partition, Offset)>,
}

impl Chunks {
    /// Frames a record of `length` bytes. Returns the bytes that it takes.
    fn push(&mut self, record: &NewRecord<'_>, length: usize) -> Option<usize> {
        if self.count > 0 && self.open.len() + length > MAX_CHUNK_BYTES {
            self.close_open();
        }
        let mut added = length;
        if self.count == 0 {
            // If a chunk was filled, the next one probably will be, too.
            self.open = Chunk::start(if self.full.is_empty() { 0 } else { MAX_CHUNK_BYTES });
            added += CHUNK_HEADER;
        }
        record::encode(record, &mut self.open)?;
        self.count += 1;
        Some(added)
    }

    fn close_open(&mut self) {
        let bytes = std::mem::take(&mut self.open);
        self.full.push(Chunk::finish(bytes, self.count));
        self.count = 0;
    }

    fn close(mut self) -> Vec<Chunk> {
        if self.count > 0 {
            self.close_open();
        }
        self.full
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Topic;

    #[test]
    fn many_records_make_few_chunks_of_bounded_size() {
        let partition = Topic::new("t").unwrap().partition(0);
        let mut batch = Batch::new();
        let value = vec![1; 5_500];
        for _ in 0..1_000 {
            batch.append(&partition, &NewRecord { value: &value, ..Default::default() }).unwrap();
        }
        let reported = batch.bytes();
        let (_, chunks) = batch.into_parts().appends.remove(0);
        assert_eq!(chunks.iter().map(Chunk::count).sum::<u64>(), 1_000);
        assert_eq!(chunks.iter().map(Chunk::len).sum::<usize>(), reported);
        assert!(chunks.iter().all(|c| c.len() <= MAX_CHUNK_BYTES) && chunks.len() == 6);
    }

    #[test]
    fn too_large_entries_are_refused_and_do_not_change_the_batch() {
        let partition = Topic::new("t").unwrap().partition(0);
        let mut batch = Batch::new();
        let value = vec![0; MAX_RECORD_BYTES];
        let refused = batch.append(&partition, &NewRecord { value: &value, ..Default::default() });
        assert!(matches!(refused, Err(Error::RecordTooLarge { .. })));
        let space = Space::new("s").unwrap();
        let refused = batch.put(&space, vec![0; MAX_STATE_KEY_BYTES + 1], Bytes::new());
        assert!(matches!(refused, Err(Error::StateKeyTooLong { .. })));
        assert!(batch.is_empty() && batch.bytes() == 0);
    }
}
