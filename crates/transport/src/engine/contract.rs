//! Implements `Store` with group commit over the tables.

use super::read::check_range;
use super::{Change, Engine};
use crate::batch::Batch;
use crate::catalog::{Catalog, parse_offset};
use crate::error::Error;
use crate::names::{Bounds, Group, Offset, Partition, Space, Topic};
use crate::receipt::{CommitReceipt, PendingCommit, Placement, Sequence, SyncPoint};
use crate::store::{ExportEntry, FetchedRecords, Limits, Stats, Store};
use crate::tables::{self, STATE_PREFIX, Table, Tables};
use bytes::Bytes;
use std::ops::Bound;
use std::time::Duration;

impl<T: Tables> Engine<T> {
    /// Changes the catalog durably. An existing entry may not be durable yet, so this flushes.
    fn define(
        &self,
        prepare: impl FnOnce(&mut Catalog) -> Result<Option<Change>, Error>,
    ) -> Result<(), Error> {
        match self.queue.stage(0, prepare)? {
            Some(sequence) => self.queue.settle(sequence),
            None => self.queue.flush().map(drop),
        }
    }

    fn damaged(&self, what: &'static str) -> Error {
        Error::Corrupt { path: self.queue.writer().path.clone(), what, source: None }
    }
}

impl<T: Tables> Store for Engine<T> {
    fn ensure_topic(&self, topic: &Topic, partitions: u32) -> Result<(), Error> {
        self.define(|catalog| {
            let op = catalog.add_topic(topic, partitions)?;
            Ok(op.map(|op| Change { ops: vec![op], ..Change::default() }))
        })
    }

    fn partitions(&self, topic: &Topic) -> Result<Option<u32>, Error> {
        Ok(self.queue.usable()?.shared.partitions(topic))
    }

    fn ensure_space(&self, space: &Space) -> Result<(), Error> {
        self.define(|catalog| {
            let op = catalog.add_space(space);
            Ok(op.map(|op| Change { ops: vec![op], ..Change::default() }))
        })
    }

    fn commit_buffered(&self, batch: Batch) -> Result<PendingCommit, Error> {
        let (bytes, placement) = (batch.bytes(), Placement::default());
        let prepare =
            |catalog: &mut Catalog| Change::of_batch(batch, catalog, &placement).map(Some);
        match self.queue.stage(bytes, prepare)? {
            Some(sequence) => Ok(PendingCommit { sequence, placement }),
            None => Err(self.damaged("a batch without a change")),
        }
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
        self.fetch(partition, from, limits)
    }

    fn bounds(&self, partition: &Partition) -> Result<Bounds, Error> {
        self.queue.usable()?.shared.partition(partition).map(|(_, bounds)| bounds)
    }

    fn truncate_before(&self, partition: &Partition, before: Offset) -> Result<(), Error> {
        let prepare = |catalog: &mut Catalog| {
            let (at, bounds) = catalog.partition(partition)?;
            check_range(partition, before.max(bounds.start), bounds)?;
            let is_new = catalog.cut(partition, before);
            let truncated = Some((partition.clone(), at, before));
            Ok(is_new.then(|| Change { truncated, ..Change::default() }))
        };
        self.queue.stage(0, prepare).map(drop)
    }

    fn get(&self, space: &Space, key: &[u8]) -> Result<Option<Bytes>, Error> {
        let space = self.queue.usable()?.shared.space(space)?;
        self.tables().get(Table::State, &tables::state_key(space, key))
    }

    fn scan(
        &self,
        space: &Space,
        prefix: &[u8],
        from: Bound<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>, Error> {
        let mut found = Vec::new();
        if limit == 0 {
            return Ok(found);
        }
        let space = self.queue.usable()?.shared.space(space)?;
        let first = tables::state_key(space, prefix);
        let low = from.map(|key| tables::state_key(space, key));
        let low = later(low, &first);
        let end = tables::after_prefix(&first);
        let high = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let low = low.as_ref().map(|key| &key[..]);
        if is_empty(low, high) {
            return Ok(found);
        }
        self.tables().range(Table::State, (low, high), &mut |key, value| {
            found.push((key.slice(STATE_PREFIX..), value));
            found.len() < limit
        })?;
        Ok(found)
    }

    fn position(&self, group: &Group, partition: &Partition) -> Result<Option<Offset>, Error> {
        let (at, _) = self.queue.usable()?.shared.partition(partition)?;
        let Some(value) = self.tables().get(Table::State, &at.position(group))? else {
            return Ok(None);
        };
        parse_offset(&value).map(Some).ok_or_else(|| self.damaged("a consumer position"))
    }

    fn wait(&self, seen: Sequence, timeout: Duration) -> Result<Sequence, Error> {
        self.queue.wait(seen, timeout)
    }

    fn stats(&self) -> Stats {
        Stats { disk_bytes: self.tables().disk_bytes(), ..self.queue.stats() }
    }

    fn export(&self, each: &mut dyn FnMut(ExportEntry) -> bool) -> Result<(), Error> {
        drop(self.queue.usable()?);
        self.tables().all(&mut |table, key, value| {
            each(ExportEntry { is_log: table == Table::Log, key, value })
        })
    }
}

/// The later of two lower bounds, the second inclusive.
fn later(low: Bound<Bytes>, first: &Bytes) -> Bound<Bytes> {
    match low {
        Bound::Included(key) if key > *first => Bound::Included(key),
        Bound::Excluded(key) if key >= *first => Bound::Excluded(key),
        _ => Bound::Included(first.clone()),
    }
}

/// Whether the range is empty. Ordered tables may reject such a range.
fn is_empty(low: Bound<&[u8]>, high: Bound<&[u8]>) -> bool {
    match (low, high) {
        (Bound::Included(low) | Bound::Excluded(low), Bound::Excluded(high)) => low >= high,
        _ => false,
    }
}
