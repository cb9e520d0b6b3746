//! Finds the records at an offset, and skips damaged ones.

use super::Engine;
use crate::error::Error;
use crate::names::{Bounds, Offset, Partition};
use crate::record::Chunk;
use crate::store::{FetchedRecords, Limits};
use crate::tables::{PartitionKey, Table, Tables, chunk_offset};
use std::ops::Bound;

impl<T: Tables> Engine<T> {
    /// Reads durable records; see [`crate::Store::read`].
    pub(super) fn fetch(
        &self,
        partition: &Partition,
        from: Offset,
        limits: Limits,
    ) -> Result<FetchedRecords, Error> {
        let (at, bounds) = self.queue.usable()?.shared.partition(partition)?;
        check_range(partition, from, bounds)?;
        if from == bounds.end {
            return Ok(FetchedRecords::new(Vec::new(), from, 0));
        }
        let limits = Limits { records: limits.records.max(1), ..limits };
        match self.chunks(at, from, bounds.end, limits) {
            Ok(chunks) => Ok(FetchedRecords::new(chunks, from, limits.records)),
            Err(ReadError::Store(error)) => Err(error),
            Err(ReadError::Records(base)) => {
                let resume_at = self.after_chunk(at, base, bounds.end)?;
                let offset = base.max(from);
                Err(Error::CorruptRecords { partition: partition.clone(), offset, resume_at })
            }
        }
    }

    /// Chunks starting with the one that contains `from`, within the limits.
    fn chunks(
        &self,
        at: PartitionKey,
        from: Offset,
        end: Offset,
        limits: Limits,
    ) -> Result<Vec<(Offset, Chunk)>, ReadError> {
        let (low, here) = (at.chunk(Offset(0)), at.chunk(from));
        let first = self.tables().floor(Table::Log, &low, &here).map_err(ReadError::Store)?;
        let Some(first) = first else { return Err(ReadError::Records(from)) };
        let high = at.chunk(end);
        let (mut chunks, mut bytes, mut records) = (Vec::new(), 0, 0);
        let mut broken = None;
        let range = (Bound::Included(&first[..]), Bound::Excluded(&high[..]));
        let read = self.tables().range(Table::Log, range, &mut |key, value| {
            let parsed = chunk_offset(&key).zip(Chunk::parse(value));
            let Some((base, chunk)) = parsed else {
                broken = chunk_offset(&key);
                return false;
            };
            bytes += chunk.len();
            records += (base.0 + chunk.count()).saturating_sub(base.0.max(from.0));
            chunks.push((base, chunk));
            bytes < limits.bytes && records < limits.records as u64
        });
        match (chunks.is_empty(), broken, read) {
            (false, ..) => Ok(chunks),
            (true, Some(base), _) => Err(ReadError::Records(base)),
            (true, None, Ok(())) => Err(ReadError::Records(from)),
            (true, None, Err(Error::Corrupt { .. })) => {
                Err(ReadError::Records(chunk_offset(&first).unwrap_or(from)))
            }
            (true, None, Err(error)) => Err(ReadError::Store(error)),
        }
    }

    /// The first offset after the chunk at `base`.
    fn after_chunk(
        &self,
        at: PartitionKey,
        base: Offset,
        end: Offset,
    ) -> Result<Option<Offset>, Error> {
        let (low, high) = (at.chunk(base), at.chunk(end));
        let range = (Bound::Excluded(&low[..]), Bound::Excluded(&high[..]));
        let mut next = None;
        self.tables().keys(Table::Log, range, &mut |key| {
            next = chunk_offset(key);
            false
        })?;
        Ok(next)
    }
}

/// Rejects an offset outside the partition.
pub(super) fn check_range(
    partition: &Partition,
    offset: Offset,
    bounds: Bounds,
) -> Result<(), Error> {
    if (bounds.start..=bounds.end).contains(&offset) {
        return Ok(());
    }
    Err(Error::OffsetOutOfRange { partition: partition.clone(), offset, bounds })
}

/// The cause of a failed read: the store, or the records at an offset.
enum ReadError {
    Store(Error),
    Records(Offset),
}
