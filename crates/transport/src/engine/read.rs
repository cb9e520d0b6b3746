//! Finding the records at an offset, and getting past damaged ones.

use super::Engine;
use crate::error::Error;
use crate::names::{Bounds, Offset, Partition};
use crate::record::Chunk;
use crate::store::{Fetched, Limits};
use crate::tables::{At, Table, Tables, chunk_offset};
use std::ops::Bound;

impl<T: Tables> Engine<T> {
    /// Reads durable records; see [`crate::Store::read`].
    pub(super) fn fetch(
        &self,
        partition: &Partition,
        from: Offset,
        limits: Limits,
    ) -> Result<Fetched, Error> {
        let (at, bounds) = self.queue.usable()?.shared.partition(partition)?;
        check_range(partition, from, bounds)?;
        if from == bounds.end {
            return Ok(Fetched::new(Vec::new(), from, 0));
        }
        let limits = Limits { records: limits.records.max(1), ..limits };
        match self.chunks(at, from, bounds.end, limits) {
            Ok(chunks) => Ok(Fetched::new(chunks, from, limits.records)),
            Err(Broken::Store(error)) => Err(error),
            Err(Broken::Records(base)) => {
                let resume_at = self.after_chunk(at, base, bounds.end)?;
                let offset = base.max(from);
                Err(Error::CorruptRecords { partition: partition.clone(), offset, resume_at })
            }
        }
    }

    /// Chunks from the one that holds `from` on, as many as the limits let in.
    fn chunks(
        &self,
        at: At,
        from: Offset,
        end: Offset,
        limits: Limits,
    ) -> Result<Vec<(Offset, Chunk)>, Broken> {
        let (low, here) = (at.chunk(Offset(0)), at.chunk(from));
        let first = self.tables().floor(Table::Log, &low, &here).map_err(Broken::Store)?;
        let Some(first) = first else { return Err(Broken::Records(from)) };
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
            (true, Some(base), _) => Err(Broken::Records(base)),
            (true, None, Ok(())) => Err(Broken::Records(from)),
            (true, None, Err(Error::Corrupt { .. })) => {
                Err(Broken::Records(chunk_offset(&first).unwrap_or(from)))
            }
            (true, None, Err(error)) => Err(Broken::Store(error)),
        }
    }

    /// The first offset after the chunk at `base`.
    fn after_chunk(&self, at: At, base: Offset, end: Offset) -> Result<Option<Offset>, Error> {
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

/// Refuses an offset that the partition does not hold.
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

/// What stops a read: the store, or the records at an offset.
enum Broken {
    Store(Error),
    Records(Offset),
}
