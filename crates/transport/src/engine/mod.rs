//! A store over a pair of tables: offsets, group commit, bounds, reads.
//!
//! Accepted batches wait in memory until somebody needs one of them durable.
//! Whoever comes first writes all that wait as one change of the tables, with
//! one flush of the disk; who comes meanwhile waits for the next one. So only
//! durable batches can be read, and a crash can tear at most the last change.

mod contract;
mod read;

use crate::batch::Batch;
use crate::catalog::{Catalog, Damaged};
use crate::error::Error;
use crate::names::{Offset, Partition};
use crate::receipt::{Appended, Pending, Sequence};
use crate::record::Chunk;
use crate::store::Stats;
use crate::tables::{self, At, Op, Table, Tables};
use bytes::Bytes;
use std::collections::HashMap;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A store over `tables`.
#[derive(Debug)]
pub(crate) struct Engine<T> {
    tables: T,
    path: PathBuf,
    max_staged: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    catalog: Catalog,
    staged: Vec<Staged>,
    staged_bytes: usize,
    accepted: Sequence,
    durable: Sequence,
    writing: bool,
    failed: Option<Error>,
    stats: Stats,
}

/// What waits to be written.
#[derive(Debug)]
pub(crate) struct Staged {
    sequence: Sequence,
    ops: Vec<Op>,
    appended: Vec<Appended>,
    truncated: Option<(Partition, At, Offset)>,
    bytes: usize,
}

impl<T: Tables> Engine<T> {
    /// Reads what the tables hold. At most `max_staged` bytes wait for a sync.
    pub(crate) fn open(tables: T, path: PathBuf, max_staged: usize) -> Result<Self, Error> {
        let catalog = match Catalog::load(&tables)? {
            Ok(catalog) => catalog,
            Err(Damaged(what)) => return Err(Error::Corrupt { path, what, source: None }),
        };
        let state = Mutex::new(State { catalog, ..State::default() });
        Ok(Self { tables, path, max_staged, state, changed: Condvar::new() })
    }

    /// The tables underneath.
    pub(crate) const fn tables(&self) -> &T {
        &self.tables
    }

    /// Stops the store as a crash does; the changes that were accepted and not
    /// written, in order.
    pub(crate) fn fail(&self, error: Error) -> Vec<Vec<Op>> {
        let mut state = self.lock();
        state.failed = Some(error);
        let staged = std::mem::take(&mut state.staged);
        let ends = state.ends(&staged);
        drop(state);
        self.changed.notify_all();
        let ops = |one: &Staged| self.ops(std::slice::from_ref(one), &ends).ok();
        staged.iter().map_while(ops).collect()
    }

    /// A thread that died while it held the lock left nothing half done that
    /// matters: see [`Lead`].
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn usable(&self) -> Result<MutexGuard<'_, State>, Error> {
        let state = self.lock();
        match &state.failed {
            Some(failed) => Err(failed.clone()),
            None => Ok(state),
        }
    }

    fn sleep<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `sequence` is durable, writing it if nobody else does.
    fn reach<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        sequence: Sequence,
    ) -> Result<MutexGuard<'a, State>, Error> {
        while state.durable < sequence {
            if let Some(failed) = &state.failed {
                return Err(failed.clone());
            }
            state = if state.writing { self.sleep(state) } else { self.lead(state) };
        }
        Ok(state)
    }

    /// Writes all that waits, with the lock released meanwhile.
    fn lead<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let group = std::mem::take(&mut state.staged);
        let ends = state.ends(&group);
        state.writing = true;
        drop(state);
        let guard = Lead { engine: self };
        let start = Instant::now();
        let written = self.ops(&group, &ends).and_then(|ops| self.tables.apply(ops));
        std::mem::forget(guard);
        let mut state = self.lock();
        state.writing = false;
        match written {
            Ok(()) => state.publish(&group, start.elapsed()),
            Err(error) => state.failed = Some(error),
        }
        self.changed.notify_all();
        state
    }

    /// All changes of a group; of several to one key the last one counts.
    fn ops(&self, group: &[Staged], ends: &HashMap<At, Offset>) -> Result<Vec<Op>, Error> {
        let mut ops: Vec<Op> = Vec::with_capacity(group.iter().map(|s| s.ops.len()).sum());
        let mut seen: HashMap<(Table, Bytes), usize> = HashMap::with_capacity(ops.capacity());
        let mut add = |op: Op| match seen.get(&(op.table, op.key.clone())) {
            Some(&at) => {
                if let Some(place) = ops.get_mut(at) {
                    *place = op;
                }
            }
            None => {
                seen.insert((op.table, op.key.clone()), ops.len());
                ops.push(op);
            }
        };
        for staged in group {
            staged.ops.iter().cloned().for_each(&mut add);
            if let Some((_, at, before)) = staged.truncated {
                let end = ends.get(&at).copied().unwrap_or(before);
                self.truncate_ops(at, before, end)?.into_iter().for_each(&mut add);
            }
        }
        Ok(ops)
    }

    /// Removes the chunks that lie before `before` whole, and notes the start.
    fn truncate_ops(&self, at: At, before: Offset, end: Offset) -> Result<Vec<Op>, Error> {
        let value = tables::joined(&[&before.0.to_be_bytes(), &end.0.to_be_bytes()]);
        let mut ops = vec![Op { table: Table::State, key: at.truncated(), value: Some(value) }];
        let (low, high) = (at.chunk(Offset(0)), at.chunk(before));
        let range = (Bound::Included(&low[..]), Bound::Included(&high[..]));
        let mut previous: Option<Bytes> = None;
        self.tables.keys(Table::Log, range, &mut |key| {
            // A chunk ends where the next one starts, so the one before goes.
            let key = Bytes::copy_from_slice(key);
            ops.extend(previous.replace(key).map(removal));
            true
        })?;
        // The last one goes too if nothing of the partition is left.
        if before == end {
            ops.extend(previous.map(removal));
        }
        Ok(ops)
    }

    /// Counts a change in and queues it; waits first while too much is queued.
    fn stage(
        &self,
        bytes: usize,
        prepare: impl FnOnce(&mut Catalog) -> Result<Option<Change>, Error>,
    ) -> Result<Option<Pending>, Error> {
        let mut state = self.usable()?;
        if bytes > self.max_staged {
            return Err(Error::BatchTooLarge { bytes, limit: self.max_staged });
        }
        while state.staged_bytes + bytes > self.max_staged {
            let oldest = Sequence(state.durable.0 + 1);
            state = self.reach(state, oldest)?;
        }
        let Some(change) = prepare(&mut state.catalog)? else { return Ok(None) };
        let sequence = Sequence(state.accepted.0 + 1);
        state.accepted = sequence;
        state.staged_bytes += bytes;
        let Change { ops, appended, truncated } = change;
        let pending = Pending { sequence, appended: appended.clone() };
        state.staged.push(Staged { sequence, ops, appended, truncated, bytes });
        Ok(Some(pending))
    }

    /// Makes all that was accepted durable; up to which batch that is.
    fn flush(&self) -> Result<Sequence, Error> {
        let state = self.usable()?;
        let accepted = state.accepted;
        drop(self.reach(state, accepted)?);
        Ok(accepted)
    }
}

/// A change before it is counted in.
#[derive(Default)]
struct Change {
    ops: Vec<Op>,
    appended: Vec<Appended>,
    truncated: Option<(Partition, At, Offset)>,
}

impl Change {
    /// A checked batch, with its offsets.
    fn of_batch(batch: Batch, catalog: &mut Catalog) -> Result<Self, Error> {
        let parts = batch.into_parts();
        catalog.check(&parts)?;
        let appended = catalog.assign(&parts);
        let mut ops = Vec::new();
        for ((partition, chunks), placed) in parts.appends.iter().zip(&appended) {
            let (at, _) = catalog.partition(partition)?;
            ops.extend(append_ops(at, placed.first, chunks));
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
        Ok(Self { ops, appended, truncated: None })
    }
}

fn append_ops(at: At, first: Offset, chunks: &[Chunk]) -> impl Iterator<Item = Op> + use<'_> {
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

/// If the thread that writes dies, nobody knows what is on disk: the store
/// fails, rather than leave the others waiting for ever.
struct Lead<'a, T: Tables> {
    engine: &'a Engine<T>,
}

impl<T: Tables> Drop for Lead<'_, T> {
    fn drop(&mut self) {
        let mut state = self.engine.lock();
        state.writing = false;
        state.failed = Some(Error::Failed { path: self.engine.path.clone() });
        self.engine.changed.notify_all();
    }
}

impl State {
    /// Where the partitions end that the group truncates.
    fn ends(&self, group: &[Staged]) -> HashMap<At, Offset> {
        let truncated = group.iter().filter_map(|staged| staged.truncated.as_ref());
        let end = |(partition, at, _): &(Partition, At, Offset)| {
            self.catalog.partition(partition).ok().map(|(_, bounds)| (*at, bounds.end))
        };
        truncated.filter_map(end).collect()
    }

    /// The group is on disk: readers may see it.
    fn publish(&mut self, group: &[Staged], took: Duration) {
        for staged in group {
            self.catalog.publish(&staged.appended);
            if let Some((partition, _, start)) = &staged.truncated {
                self.catalog.truncate(partition, *start);
            }
            self.durable = self.durable.max(staged.sequence);
            self.staged_bytes = self.staged_bytes.saturating_sub(staged.bytes);
            self.stats.batches += 1;
            self.stats.records += staged.appended.iter().map(|a| a.end.0 - a.first.0).sum::<u64>();
            self.stats.bytes += staged.bytes as u64;
        }
        self.stats.syncs += 1;
        self.stats.sync_time += took;
    }
}
