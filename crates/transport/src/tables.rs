//! The base of a store: two ordered tables of bytes that change together. The rest of a store
//! (offsets, group commit, bounds) is the same for every such pair; see [`crate::engine`].
//!
//! ```text
//! log:   topic:u32 partition:u32 offset:u64      -> chunk of records, the first at offset
//! state: 1 't' topic name                        -> topic:u32 partitions:u32
//!        1 's' space name                        -> space:u32
//!        2 topic:u32 partition:u32               -> start:u64 end:u64 (at the last truncation)
//!        3 topic:u32 partition:u32 group name    -> offset:u64
//!        4 space:u32 key                         -> value
//! ```
//! Integers are big-endian, so that byte order is numeric order.

use crate::error::Error;
use crate::names::{Group, Offset};
use bytes::Bytes;
use std::ops::Bound;

/// One of the two tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Table {
    /// Chunks of records.
    Log,
    /// Everything else.
    State,
}

/// Sets or, without a value, removes a key.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) table: Table,
    pub(crate) key: Bytes,
    pub(crate) value: Option<Bytes>,
}

/// Two ordered tables of bytes.
pub(crate) trait Tables: Send + Sync {
    /// Makes all changes atomically and durably. No key appears twice.
    fn apply(&self, ops: Vec<Op>) -> Result<(), Error>;

    /// The value of a key.
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, Error>;

    /// The largest key from `floor` to `key`, both inclusive.
    fn floor(&self, table: Table, floor: &[u8], key: &[u8]) -> Result<Option<Bytes>, Error>;

    /// Passes entries to `each` in order, while it returns true.
    fn range(
        &self,
        table: Table,
        range: Range<'_>,
        each: &mut dyn FnMut(Bytes, Bytes) -> bool,
    ) -> Result<(), Error>;

    /// Passes keys to `each` in order, while it returns true.
    fn keys(
        &self,
        table: Table,
        range: Range<'_>,
        each: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(), Error>;

    /// Passes all entries of both tables to `each`, first the log's, each table in order, as they are at one
    /// moment, while it returns true.
    fn all(&self, each: &mut dyn FnMut(Table, Bytes, Bytes) -> bool) -> Result<(), Error>;

    /// Size on disk, if known.
    fn disk_bytes(&self) -> u64;
}

/// Bounds of a range of keys.
pub(crate) type Range<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// A partition, by the number of its topic in this store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PartitionKey {
    pub(crate) topic: u32,
    pub(crate) index: u32,
}

pub(crate) const TOPICS: &[u8] = b"\x01t";
pub(crate) const SPACES: &[u8] = b"\x01s";
pub(crate) const TRUNCATED: &[u8] = b"\x02";

impl PartitionKey {
    /// Key of the chunk whose first record has this offset.
    pub(crate) fn chunk(self, offset: Offset) -> [u8; 16] {
        let mut key = [0; 16];
        key[..4].copy_from_slice(&self.topic.to_be_bytes());
        key[4..8].copy_from_slice(&self.index.to_be_bytes());
        key[8..].copy_from_slice(&offset.0.to_be_bytes());
        key
    }

    /// Key of the start of the partition.
    pub(crate) fn truncated(self) -> Bytes {
        joined(&[TRUNCATED, &self.topic.to_be_bytes(), &self.index.to_be_bytes()])
    }

    /// The partition of a key from [`PartitionKey::truncated`].
    pub(crate) fn of_truncated(key: &[u8]) -> Option<Self> {
        let (topic, index) = two_u32(key.strip_prefix(TRUNCATED)?)?;
        Some(Self { topic, index })
    }

    /// Key of a group's position.
    pub(crate) fn position(self, group: &Group) -> Bytes {
        let name = group.as_bytes();
        joined(&[b"\x03", &self.topic.to_be_bytes(), &self.index.to_be_bytes(), name])
    }
}

/// The offset in a key from [`PartitionKey::chunk`].
pub(crate) fn chunk_offset(key: &[u8]) -> Option<Offset> {
    key.get(8..).and_then(be_u64).map(Offset)
}

/// Key of a state space's key.
pub(crate) fn state_key(space: u32, key: &[u8]) -> Bytes {
    joined(&[b"\x04", &space.to_be_bytes(), key])
}

/// Length of the part of a [`state_key`] before the space's own key.
pub(crate) const STATE_PREFIX: usize = 5;

pub(crate) fn joined(parts: &[&[u8]]) -> Bytes {
    parts.concat().into()
}

/// The first key after all keys with `prefix`.
pub(crate) fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&b| b != u8::MAX)?;
    let mut end = prefix.get(..=last)?.to_vec();
    *end.last_mut()? += 1;
    Some(end)
}

pub(crate) fn be_u64(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}

pub(crate) fn two_u32(bytes: &[u8]) -> Option<(u32, u32)> {
    let (first, second) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*first), u32::from_be_bytes(second.try_into().ok()?)))
}

pub(crate) fn two_u64(bytes: &[u8]) -> Option<(u64, u64)> {
    let (first, second) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*first), be_u64(second)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_is_after_its_last_key() {
        assert_eq!(after_prefix(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(after_prefix(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!(after_prefix(b"\xff"), None);
    }
}
