//! A store in memory on a machine that can crash, from a seed.
//!
//! For whole-system simulation. Unsynced data is dropped or, up to some batch, kept: real
//! disks do both. The batch that was being written is torn, so by the contract it disappears
//! completely. Full disks and failed flushes can be injected.

mod memory;

use crate::engine::Engine;
use crate::error::Error;
use crate::store::Store;
use memory::{Disk, Memory};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A machine with a disk. It outlives the stores that are opened on it.
#[derive(Debug)]
pub struct Machine {
    disk: Arc<Mutex<Disk>>,
    running: Mutex<Weak<Engine<Memory>>>,
    max_staged: usize,
}

impl Default for Machine {
    fn default() -> Self {
        let max_staged = crate::local::DEFAULT_MAX_STAGED;
        Self { disk: Arc::default(), running: Mutex::default(), max_staged }
    }
}

/// A fault at a future write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The disk is full. The write has no effect, and the store stops.
    DiskFull,
    /// The flush fails. Whether the write took effect is drawn from this seed, and unknown
    /// until the store is opened again.
    SyncFails(u64),
}

impl Machine {
    /// A machine with an empty disk.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the limit on unsynced bytes.
    #[must_use]
    pub fn with_max_staged(self, max_staged: usize) -> Self {
        Self { max_staged, ..self }
    }

    /// Starts a store on the disk.
    ///
    /// # Errors
    /// [`Error::Locked`] while an earlier store is in use.
    pub fn open(&self) -> Result<Arc<dyn Store>, Error> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.upgrade().is_some_and(|engine| engine.tables().is_current()) {
            return Err(Error::Locked { path: memory_path() });
        }
        let tables = Memory::start(&self.disk);
        let engine = Arc::new(Engine::open(tables, memory_path(), self.max_staged)?);
        *running = Arc::downgrade(&engine);
        Ok(engine)
    }

    /// Another machine with a copy of the disk, such as a backup.
    #[must_use]
    pub fn copy(&self) -> Machine {
        let disk = self.disk.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Machine { disk: Arc::new(Mutex::new(disk)), max_staged: self.max_staged, ..Self::default() }
    }

    /// Simulates a loss of power. Open stores fail from now on. A prefix of the unsynced data,
    /// drawn from `seed`, survives. An injected fault that did not occur yet is cancelled.
    pub fn crash(&self, seed: u64) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let engine = running.upgrade();
        let unsynced =
            engine.as_ref().map(|engine| engine.fail(Error::Crashed)).unwrap_or_default();
        let kept = mix(seed) % (unsynced.len() as u64 + 1);
        let mut disk = self.disk.lock().unwrap_or_else(PoisonError::into_inner);
        disk.generation += 1;
        disk.fault = None;
        for ops in unsynced.into_iter().take(usize::try_from(kept).unwrap_or(0)) {
            disk.write(ops);
        }
    }

    /// Injects a fault at the write after the next `writes` ones.
    pub fn inject(&self, fault: Fault, writes: u64) {
        let mut disk = self.disk.lock().unwrap_or_else(PoisonError::into_inner);
        disk.fault = Some((disk.writes + writes, fault));
    }
}

fn memory_path() -> PathBuf {
    PathBuf::from("simulated disk")
}

/// One output of SplitMix64, to draw faults from a seed.
fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
