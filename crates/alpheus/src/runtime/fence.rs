//! The fence file: how far each controller's ledger had come, kept apart from
//! the ledgers, so that an older copy of a ledger is recognised at a restart.

use alpheus_encrypted_stream::ledger::Fence;
use alpheus_policy::ids::ControllerId;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a fence cannot be used.
#[derive(Debug, Error)]
pub enum FenceError {
    /// The file could not be read or written.
    #[error("the fence file {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file holds something else.
    #[error("{} is no fence file; without it every window that has closed counts as released: remove it only if that is what you want", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
    },
}

/// The file, and what it says.
pub struct FenceFile {
    path: PathBuf,
    fences: BTreeMap<ControllerId, Fence>,
    flushes: u64,
}

impl FenceFile {
    /// Reads the file, or starts an empty one.
    ///
    /// # Errors
    /// [`FenceError`] if there is a file that cannot be read.
    pub fn load(path: &Path) -> Result<FenceFile, FenceError> {
        let fences = match std::fs::read(path) {
            Ok(bytes) => {
                decode(&bytes).ok_or_else(|| FenceError::Unreadable { path: path.into() })?
            }
            Err(error) if error.kind() == ErrorKind::NotFound => BTreeMap::new(),
            Err(source) => return Err(FenceError::Io { path: path.into(), source }),
        };
        Ok(FenceFile { path: path.into(), fences, flushes: 0 })
    }

    /// Disk flushes so far.
    #[must_use]
    pub fn flushes(&self) -> u64 {
        self.flushes
    }

    /// What it says of a controller.
    #[must_use]
    pub fn get(&self, controller: &ControllerId) -> Option<Fence> {
        self.fences.get(controller).copied()
    }

    /// Notes how far ledgers have come, durably.
    ///
    /// # Errors
    /// [`FenceError::Io`]. Nothing may then leave.
    pub fn advance(
        &mut self,
        fences: impl IntoIterator<Item = (ControllerId, Fence)>,
    ) -> Result<(), FenceError> {
        let mut changed = false;
        for (controller, fence) in fences {
            changed |= self.fences.insert(controller, fence) != Some(fence);
        }
        if !changed {
            return Ok(());
        }
        self.flushes += 2;
        self.write().map_err(|source| FenceError::Io { path: self.path.clone(), source })
    }

    /// Writes beside, then renames: a crash leaves the old file or the new one.
    fn write(&self) -> std::io::Result<()> {
        let beside = self.path.with_extension("new");
        let mut file = File::create(&beside)?;
        let entries = self.fences.iter().map(|(controller, fence)| encode(*controller, *fence));
        file.write_all(entries.collect::<Vec<_>>().as_flattened())?;
        file.sync_data()?;
        std::fs::rename(&beside, &self.path)?;
        self.path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_data())
    }
}

const ENTRY: usize = 48;

fn encode(controller: ControllerId, fence: Fence) -> [u8; ENTRY] {
    let mut entry = [0; ENTRY];
    entry[..32].copy_from_slice(&controller.0);
    entry[32..40].copy_from_slice(&fence.sequence.to_le_bytes());
    entry[40..].copy_from_slice(&fence.clock.0.to_le_bytes());
    entry
}

fn decode(bytes: &[u8]) -> Option<BTreeMap<ControllerId, Fence>> {
    let number = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_le_bytes);
    let entry = |entry: &[u8; ENTRY]| {
        let (id, rest) = entry.split_first_chunk::<32>()?;
        let clock = alpheus_policy::time::Timestamp(number(&rest[8..])?);
        Some((ControllerId(*id), Fence { sequence: number(&rest[..8])?, clock }))
    };
    let (entries, rest) = bytes.as_chunks::<ENTRY>();
    if rest.is_empty() { entries.iter().map(entry).collect() } else { None }
}
