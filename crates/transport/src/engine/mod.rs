//! A store over a pair of tables: offsets, bounds, reads.
//!
//! Waiting batches are written as one change of the tables, with one flush of the disk. So
//! readers see only durable batches, and a crash can tear at most the last change.

mod contract;
mod read;

use crate::batch::Batch;
use crate::catalog::{Catalog, CatalogError};
use crate::error::Error;
use crate::names::{Offset, Partition};
use crate::queue::{Queue, Writer};
use crate::receipt::Placement;
use crate::record::Chunk;
use crate::tables::{self, Op, PartitionKey, Table, Tables};
use bytes::Bytes;
use std::collections::HashMap;
use std::ops::Bound;
use std::path::PathBuf;

/// A store over tables.
#[derive(Debug)]
pub(crate) struct Engine<T: Tables> {
    queue: Queue<Log<T>>,
}

/// The tables and their path.
#[derive(Debug)]
struct Log<T> {
    tables: T,
    path: PathBuf,
}

impl<T: Tables> Engine<T> {
    /// Loads the catalog from the tables. At most `max_staged` bytes wait for a sync.
    pub(crate) fn open(tables: T, path: PathBuf, max_staged: usize) -> Result<Self, Error> {
        let catalog = match Catalog::load(&tables)? {
            Ok(catalog) => catalog,
            Err(CatalogError(what)) => return Err(Error::Corrupt { path, what, source: None }),
        };
        Ok(Self { queue: Queue::new(Log { tables, path }, catalog, max_staged) })
    }

    /// The tables underneath.
    pub(crate) const fn tables(&self) -> &T {
        &self.queue.writer().tables
    }

    /// Stops the store as a crash does. Returns the accepted changes that were not written, in
    /// order.
    pub(crate) fn fail(&self, error: Error) -> Vec<Vec<Op>> {
        let (staged, ends) = self.queue.fail(error);
        let ops = |one: &Change| self.queue.writer().ops(std::slice::from_ref(one), &ends).ok();
        staged.iter().map_while(ops).collect()
    }
}

impl<T: Tables> Writer for Log<T> {
    type ReadState = Catalog;
    type Change = Change;
    /// The ends of the partitions that the group truncates.
    type Plan = HashMap<PartitionKey, Offset>;

    fn plan(&self, catalog: &Catalog, group: &[Change]) -> Self::Plan {
        let truncated = group.iter().filter_map(|change| change.truncated.as_ref());
        let end = |(partition, at, _): &(Partition, PartitionKey, Offset)| {
            catalog.partition(partition).ok().map(|(_, bounds)| (*at, bounds.end))
        };
        truncated.filter_map(end).collect()
    }

    fn write(&self, group: &[Change], ends: Self::Plan) -> Result<(), Error> {
        self.ops(group, &ends).and_then(|ops| self.tables.apply(ops))
    }

    fn publish(&self, catalog: &mut Catalog, group: Vec<Change>) -> u64 {
        let mut records = 0;
        for change in group {
            catalog.publish(change.placement.appended());
            if let Some((partition, _, start)) = &change.truncated {
                catalog.truncate(partition, *start);
            }
            records += change.placement.appended().iter().map(|a| a.end.0 - a.first.0).sum::<u64>();
        }
        records
    }

    fn abandoned(&self) -> Error {
        Error::Failed { path: self.path.clone() }
    }
}

impl<T: Tables> Log<T> {
    /// All changes of a group. Of several changes to a key, the last one counts.
    fn ops(
        &self,
        group: &[Change],
        ends: &HashMap<PartitionKey, Offset>,
    ) -> Result<Vec<Op>, Error> {
        let mut ops: Vec<Op> = Vec::with_capacity(group.iter().map(|s| s.ops.len()).sum());
        let mut seen: HashMap<(Table, Bytes), usize> = HashMap::with_capacity(ops.capacity());
        let mut add = |op: Op| match seen.get(&(op.table, op.key.clone())) {
            Some(&at) => {
                if let Some(earlier) = ops.get_mut(at) {
                    *earlier = op;
                }
            }
            None => {
                seen.insert((op.table, op.key.clone()), ops.len());
                ops.push(op);
            }
        };
        for change in group {
            change.ops.iter().cloned().for_each(&mut add);
            if let Some((_, at, before)) = change.truncated {
                let end = ends.get(&at).copied().unwrap_or(before);
                self.truncate_ops(at, before, end)?.into_iter().for_each(&mut add);
            }
        }
        Ok(ops)
    }

    /// Removes the chunks that are completely before `before`, and records the start.
    fn truncate_ops(
        &self,
        at: PartitionKey,
        before: Offset,
        end: Offset,
    ) -> Result<Vec<Op>, Error> {
        let value = tables::joined(&[&before.0.to_be_bytes(), &end.0.to_be_bytes()]);
        let mut ops = vec![Op { table: Table::State, key: at.truncated(), value: Some(value) }];
        let (low, high) = (at.chunk(Offset(0)), at.chunk(before));
        let range = (Bound::Included(&low[..]), Bound::Included(&high[..]));
        let mut previous: Option<Bytes> = None;
        self.tables.keys(Table::Log, range, &mut |key| {
            // A chunk ends where the next one starts, so the previous one is removed.
            let key = Bytes::copy_from_slice(key);
            ops.extend(previous.replace(key).map(removal));
            true
        })?;
        // The last one is removed too if the partition becomes empty.
        if before == end {
            ops.extend(previous.map(removal));
        }
        Ok(ops)
    }
}

/// A change that waits to be written.
#[derive(Debug, Default)]
struct Change {
    ops: Vec<Op>,
    placement: Placement,
    truncated: Option<(Partition, PartitionKey, Offset)>,
}

impl Change {
    /// A checked batch, with its offsets.
    fn of_batch(batch: Batch, catalog: &mut Catalog, placement: &Placement) -> Result<Self, Error> {
        let parts = batch.into_parts();
        catalog.check(&parts)?;
        let appended = catalog.assign(&parts);
        let mut ops = Vec::new();
        for ((partition, chunks), placement) in parts.appends.iter().zip(&appended) {
            let (at, _) = catalog.partition(partition)?;
            ops.extend(append_ops(at, placement.first, chunks));
        }
        for (space, key, value) in parts.states {
            let key = tables::state_key(catalog.space(&space)?, &key);
            ops.push(Op { table: Table::State, key, value });
        }
        for (group, partition, next) in parts.positions {
            let (at, _) = catalog.partition(&partition)?;
            let value = Some(Bytes::copy_from_slice(&next.0.to_be_bytes()));
            ops.push(Op { table: Table::State, key: at.position(&group), value });
        }
        placement.set(appended);
        Ok(Self { ops, placement: placement.clone(), truncated: None })
    }
}

fn append_ops(
    at: PartitionKey,
    first: Offset,
    chunks: &[Chunk],
) -> impl Iterator<Item = Op> + use<'_> {
    chunks.iter().scan(first, move |offset, chunk| {
        let key = Bytes::copy_from_slice(&at.chunk(*offset));
        *offset = Offset(offset.0 + chunk.count());
        Some(Op { table: Table::Log, key, value: Some(chunk.bytes().clone()) })
    })
}

fn removal(key: Bytes) -> Op {
    Op { table: Table::Log, key, value: None }
}

#[cfg(test)]
mod tests;
