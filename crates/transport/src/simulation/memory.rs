//! A disk in memory: ordered maps, and faults to inject.

use super::{Fault, mix};
use crate::error::Error;
use crate::tables::{Op, Range, Table, Tables};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Key = (Table, Bytes);

/// The data that survives a crash.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    entries: BTreeMap<Key, Bytes>,
    /// Counts crashes and starts. A store with an older generation is dead.
    pub(super) generation: u64,
    pub(super) writes: u64,
    pub(super) fault: Option<(u64, Fault)>,
}

impl Disk {
    pub(super) fn write(&mut self, ops: Vec<Op>) {
        for Op { table, key, value } in ops {
            match value {
                Some(value) => self.entries.insert((table, key), value),
                None => self.entries.remove(&(table, key)),
            };
        }
    }

    /// The fault to inject at this write.
    fn due(&mut self) -> Option<Fault> {
        let now = self.writes;
        self.writes += 1;
        self.fault.take_if(|(at, _)| *at <= now).map(|(_, fault)| fault)
    }
}

/// A running machine's view of its disk.
#[derive(Debug)]
pub(crate) struct Memory {
    disk: Arc<Mutex<Disk>>,
    generation: u64,
}

impl Memory {
    pub(super) fn start(disk: &Arc<Mutex<Disk>>) -> Self {
        let mut locked = disk.lock().unwrap_or_else(PoisonError::into_inner);
        locked.generation += 1;
        Self { disk: Arc::clone(disk), generation: locked.generation }
    }

    pub(super) fn is_current(&self) -> bool {
        self.disk().is_ok()
    }

    fn disk(&self) -> Result<MutexGuard<'_, Disk>, Error> {
        let disk = self.disk.lock().unwrap_or_else(PoisonError::into_inner);
        if disk.generation == self.generation { Ok(disk) } else { Err(Error::Crashed) }
    }
}

impl Tables for Memory {
    fn apply(&self, ops: Vec<Op>) -> Result<(), Error> {
        let mut disk = self.disk()?;
        let fault = disk.due();
        let takes_effect = match fault {
            None => true,
            Some(Fault::DiskFull) => false,
            Some(Fault::SyncFails(seed)) => mix(seed) & 1 == 1,
        };
        if takes_effect {
            disk.write(ops);
        }
        match fault {
            None => Ok(()),
            Some(fault) => {
                // A failed store is dead. The next one may be opened immediately.
                disk.generation += 1;
                let path = super::memory_path();
                match fault {
                    Fault::DiskFull => Err(Error::DiskFull { path }),
                    Fault::SyncFails(_) => Err(Error::Failed { path }),
                }
            }
        }
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, Error> {
        let key = (table, Bytes::copy_from_slice(key));
        Ok(self.disk()?.entries.get(&key).cloned())
    }

    fn floor(&self, table: Table, floor: &[u8], key: &[u8]) -> Result<Option<Bytes>, Error> {
        let disk = self.disk()?;
        let mut range =
            disk.entries.range(within(table, (Bound::Included(floor), Bound::Included(key))));
        Ok(range.next_back().map(|((_, key), _)| key.clone()))
    }

    fn range(
        &self,
        table: Table,
        range: Range<'_>,
        each: &mut dyn FnMut(Bytes, Bytes) -> bool,
    ) -> Result<(), Error> {
        let disk = self.disk()?;
        for ((_, key), value) in disk.entries.range(within(table, range)) {
            if !each(key.clone(), value.clone()) {
                break;
            }
        }
        Ok(())
    }

    fn keys(
        &self,
        table: Table,
        range: Range<'_>,
        each: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(), Error> {
        self.range(table, range, &mut |key, _| each(&key))
    }

    fn all(&self, each: &mut dyn FnMut(Table, Bytes, Bytes) -> bool) -> Result<(), Error> {
        let disk = self.disk()?;
        for ((table, key), value) in &disk.entries {
            if !each(*table, key.clone(), value.clone()) {
                break;
            }
        }
        Ok(())
    }

    fn disk_bytes(&self) -> u64 {
        let sum = |disk: MutexGuard<'_, Disk>| {
            disk.entries.iter().map(|((_, key), value)| (key.len() + value.len()) as u64).sum()
        };
        self.disk().map(sum).unwrap_or_default()
    }
}

/// The bounds of this range in the map of both tables.
fn within(table: Table, (low, high): Range<'_>) -> (Bound<Key>, Bound<Key>) {
    let own = |key: &[u8]| (table, Bytes::copy_from_slice(key));
    let low = match low {
        Bound::Unbounded => Bound::Included((table, Bytes::new())),
        low => low.map(own),
    };
    let high = match (high, table) {
        (Bound::Unbounded, Table::Log) => Bound::Excluded((Table::State, Bytes::new())),
        (high, _) => high.map(own),
    };
    (low, high)
}
