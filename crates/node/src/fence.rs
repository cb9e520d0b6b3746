//! The fence file: how far each controller's ledger has come, kept apart from the
//! ledgers, so that an older copy of a ledger is detected at a restart.
//!
//! The file has two slots that are written in turn, each with its number and a
//! digest, so that one flush makes a fence durable: a crash can tear the slot
//! that is being written, never the one before. A slot is
//!
//! ```text
//! "ALPHFNC3"  number:u64  entries:u64  entry*  digest[32]
//! entry = controller[32]  sequence:u64  start:u64  clock:u64  restored:u64
//! ```
//! little-endian, and fills whole pages; `restored` is 2^64 − 1 for none.

use crate::failure::Failure;
use crate::files::{self, other_format};
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_time::Timestamp;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use thiserror::Error;

/// Locks of the fences that this process goes by, until it ends.
static HELD: Mutex<BTreeMap<PathBuf, File>> = Mutex::new(BTreeMap::new());

/// The owner of a ledger.
pub type Owner = [u8; 32];

/// How far a ledger has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    /// Commits so far.
    pub sequence: u64,
    /// The number drawn at the start since which they were made. Two histories that continue from one copy can
    /// be equally long.
    pub start: u64,
    /// The latest time that its owner has acted on.
    pub clock: Timestamp,
    /// When it was last restored without being known to be the latest, if ever.
    pub restored: Option<Timestamp>,
}

/// Why a fence cannot be used.
#[derive(Debug, Error)]
pub enum FenceError {
    /// The file could not be read or written.
    #[error("the fence file {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The ledger is behind the fence.
    #[error("{} records more of a ledger than the ledger holds: restart the deployment", path.display())]
    Behind {
        /// The file.
        path: PathBuf,
    },
    /// Another process goes by it.
    #[error(
        "another process uses the fence file {}, perhaps on another machine: it is a copy of this process, and the two must not run at the same time. Stop one of them", path.display()
    )]
    Held {
        /// The file.
        path: PathBuf,
    },
    /// Written by another version of the program.
    #[error(
        "the fence file {} has format {found}, but this version reads format 3: use the version that wrote it; without the file every window that has begun counts as released", path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: char,
    },
    /// The file holds something else.
    #[error("{} is not a fence file; without it every window that has begun counts as released: remove it only if that is what you want", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
    },
}

/// What the name of a fence ends with that lies beside its state folder, and its name in the folder.
const BESIDE: &str = ".fence";
const INSIDE: &str = "fence";

/// Where the fence of a state lies unless another place is named: beside the state folder, so that a copy
/// of the folder does not bring it back. In the folder, if only one of an earlier build is there.
#[must_use]
pub fn of_state(state: &Path) -> PathBuf {
    let (inside, beside) = places(state);
    if inside.exists() && !beside.exists() { inside } else { beside }
}

/// The same for the process whose state it is: the fence of an earlier build is moved out of the folder.
/// If that is not possible, it stays in use. Where nothing can be made beside the folder, the fence is in it.
#[must_use]
pub fn move_out_of(state: &Path) -> PathBuf {
    let (inside, beside) = places(state);
    if beside.exists() {
        return beside;
    }
    let moved = match inside.exists() {
        true => std::fs::rename(&inside, &beside).and_then(|()| files::sync_name(&beside)),
        false => is_writable(&beside),
    };
    moved.map_or_else(|error| in_the_folder(inside, &error), |()| beside)
}

/// Whether files can be made beside this one.
fn is_writable(file: &Path) -> std::io::Result<()> {
    let folder = file.parent().filter(|at| *at != "").unwrap_or(Path::new("."));
    match rustix::fs::access(folder, rustix::fs::Access::WRITE_OK) {
        // It will be made with the state folder.
        Err(rustix::io::Errno::NOENT) => Ok(()),
        can => Ok(can?),
    }
}

fn in_the_folder(inside: PathBuf, error: &std::io::Error) -> PathBuf {
    tracing::warn!(%error, fence = %inside.display(), "the fence is in the state folder, so a copy of the folder brings it back; choose a state folder inside a writable folder");
    inside
}

/// The same for a process of whose fence nobody may see when it changes: it lies in a folder of its own
/// beside the state folder, which is for the process's user alone. Call it once the state folder is there.
///
/// # Errors
/// The folder cannot be created.
pub fn move_to_private_folder(state: &Path) -> Result<PathBuf, Failure> {
    let (inside, folder) = sides(state);
    if !folder.exists() {
        if let Err(error) = is_writable(&folder) {
            return Ok(in_the_folder(inside, &error));
        }
        files::make_private_folder(&folder)?;
    }
    Ok(move_out_of(state))
}

/// The fence in a state folder, and beside it: a file there, or in a folder there.
fn places(state: &Path) -> (PathBuf, PathBuf) {
    let (inside, beside) = sides(state);
    (inside, if beside.is_dir() { beside.join(INSIDE) } else { beside })
}

fn sides(state: &Path) -> (PathBuf, PathBuf) {
    let named = state.components().collect::<PathBuf>();
    let named = match named.file_name() {
        Some(_) => named,
        // Such as the folder itself: its path has no name that could get an ending.
        None => state.canonicalize().unwrap_or(named),
    };
    (state.join(INSIDE), files::beside(&named, BESIDE))
}

/// The file and its content.
pub struct FenceFile {
    path: PathBuf,
    fences: BTreeMap<Owner, Fence>,
    /// Number of the slot that was written last; its parity selects one of the two.
    number: u64,
    /// The open file and its slot size, once this process has created it.
    open: Option<(File, usize)>,
    flushes: u64,
}

impl FenceFile {
    /// Reads the file, or starts an empty one.
    ///
    /// # Errors
    /// [`FenceError`] if there is a file that cannot be read.
    pub fn load(path: &Path) -> Result<FenceFile, FenceError> {
        let (number, fences) = match std::fs::read(path) {
            Ok(bytes) => decode(&bytes).ok_or_else(|| unreadable(path, &bytes))?,
            Err(error) if error.kind() == ErrorKind::NotFound => (0, BTreeMap::new()),
            Err(source) => return Err(FenceError::Io { path: path.into(), source }),
        };
        Ok(FenceFile { path: path.into(), fences, number, open: None, flushes: 0 })
    }

    /// The same for the process that goes by it from now on: no other one may until this one ends. Two
    /// copies of one state would each take itself for the latest.
    ///
    /// # Errors
    /// [`FenceError`], also if another process goes by it.
    pub fn hold(path: &Path) -> Result<FenceFile, FenceError> {
        let lock = files::beside(path, LOCK);
        let io = |source| FenceError::Io { path: path.into(), source };
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Vacant(place) = held.entry(lock) {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false).mode(0o600);
            let file = options.open(place.key()).map_err(io)?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => {
                    return Err(FenceError::Held { path: path.into() });
                }
                // There is nothing to go by where a file system has no locks.
                Err(TryLockError::Error(error)) => {
                    tracing::warn!(%error, "the fence cannot be locked: a copy of this process would not be noticed");
                }
                Ok(()) => {}
            }
            place.insert(file);
        }
        FenceFile::load(path)
    }

    /// Disk flushes so far.
    #[must_use]
    pub fn flushes(&self) -> u64 {
        self.flushes
    }

    /// The entry of a controller.
    #[must_use]
    pub fn get(&self, controller: &Owner) -> Option<Fence> {
        self.fences.get(controller).copied()
    }

    /// Records durably how far ledgers have come. It never goes back.
    ///
    /// # Errors
    /// [`FenceError`]. No message may be sent then, and the known entries stay those that
    /// were last durable.
    pub fn advance(
        &mut self,
        fences: impl IntoIterator<Item = (Owner, Fence)>,
    ) -> Result<(), FenceError> {
        let mut news = Vec::new();
        for (controller, fence) in fences {
            let known = self.get(&controller);
            if known.is_some_and(|known| is_behind(&fence, &known)) {
                return Err(FenceError::Behind { path: self.path.clone() });
            }
            if known != Some(fence) {
                news.push((controller, fence));
            }
        }
        if news.is_empty() {
            return Ok(());
        }
        self.number += 1;
        let mut next = self.fences.clone();
        next.extend(news);
        let written = self.write(&encode(self.number, &next));
        // The file is unknown after a failed write, so the next write creates a new file.
        self.open = self.open.take().filter(|_| written.is_ok());
        written.map_err(|source| FenceError::Io { path: self.path.clone(), source })?;
        self.fences = next;
        Ok(())
    }

    /// Overwrites the older of the two slots, or recreates the file if a slot has become
    /// too small.
    fn write(&mut self, slot: &[u8]) -> std::io::Result<()> {
        let Some((file, _)) = self.open.as_ref().filter(|(_, size)| *size == slot.len()) else {
            return self.recreate(slot);
        };
        self.flushes += 1;
        file.write_all_at(slot, (self.number % 2) * slot.len() as u64)?;
        file.sync_data()
    }

    /// Writes beside, then renames: a crash leaves the old file or the new one.
    fn recreate(&mut self, slot: &[u8]) -> std::io::Result<()> {
        self.flushes += 2;
        let beside = self.path.with_extension("new");
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        // What a crash left; or a link, which is not followed.
        files::remove_if_there(&beside)?;
        let mut file = options.open(&beside)?;
        file.write_all(slot)?;
        file.write_all(slot)?;
        file.sync_all()?;
        std::fs::rename(&beside, &self.path)?;
        files::sync_name(&self.path)?;
        self.open = Some((file, slot.len()));
        Ok(())
    }
}

/// Whether a ledger is behind what is known.
fn is_behind(fence: &Fence, known: &Fence) -> bool {
    fence.sequence < known.sequence || fence.restored < known.restored
}

/// What the name of a fence's lock ends with.
pub(crate) const LOCK: &str = ".lock";
const MAGIC: &[u8; 8] = b"ALPHFNC3";
const HEAD: usize = 24;
const ENTRY: usize = 64;
/// A slot begins on one, so that no page holds parts of both.
const PAGE: usize = 4096;
/// Stands for a ledger that was never restored without being the latest.
const NEVER: u64 = u64::MAX;

fn encode(number: u64, fences: &BTreeMap<Owner, Fence>) -> Vec<u8> {
    let mut slot = Vec::with_capacity((HEAD + fences.len() * ENTRY + 32).next_multiple_of(PAGE));
    slot.extend_from_slice(MAGIC);
    slot.extend_from_slice(&number.to_le_bytes());
    slot.extend_from_slice(&(fences.len() as u64).to_le_bytes());
    for (controller, fence) in fences {
        slot.extend_from_slice(controller);
        slot.extend_from_slice(&fence.sequence.to_le_bytes());
        slot.extend_from_slice(&fence.start.to_le_bytes());
        slot.extend_from_slice(&fence.clock.0.to_le_bytes());
        let restored = fence.restored.map_or(NEVER, |at| at.0);
        slot.extend_from_slice(&restored.to_le_bytes());
    }
    let digest = digest_of(&slot);
    slot.extend_from_slice(digest.as_bytes());
    slot.resize(slot.len().next_multiple_of(PAGE), 0);
    slot
}

fn digest_of(slot: &[u8]) -> Digest {
    labelled_hash("alpheus/fence/v1", &[slot])
}

/// What is wrong with a file that holds no fence.
fn unreadable(path: &Path, bytes: &[u8]) -> FenceError {
    let path = path.to_owned();
    match other_format(bytes, MAGIC) {
        Some(found) => FenceError::Format { path, found },
        None => FenceError::Unreadable { path },
    }
}

/// Number and content of the later of the two slots that is whole.
fn decode(bytes: &[u8]) -> Option<(u64, BTreeMap<Owner, Fence>)> {
    let (first, second) = bytes.split_at(bytes.len() / 2);
    [first, second].into_iter().filter_map(slot).max_by_key(|(number, _)| *number)
}

fn slot(bytes: &[u8]) -> Option<(u64, BTreeMap<Owner, Fence>)> {
    let (magic, rest) = bytes.split_first_chunk()?;
    let (number, rest) = rest.split_first_chunk()?;
    let (count, rest) = rest.split_first_chunk()?;
    let length = usize::try_from(u64::from_le_bytes(*count)).ok()?.checked_mul(ENTRY)?;
    let (entries, rest) = rest.split_at_checked(length)?;
    let (digest, _) = rest.split_first_chunk::<32>()?;
    if magic != MAGIC || digest_of(bytes.get(..HEAD + length)?).as_bytes() != digest {
        return None;
    }
    let fences = entries.as_chunks::<ENTRY>().0.iter().map(entry).collect::<Option<_>>()?;
    Some((u64::from_le_bytes(*number), fences))
}

fn entry(bytes: &[u8; ENTRY]) -> Option<(Owner, Fence)> {
    let (id, rest) = bytes.split_first_chunk()?;
    let (sequence, rest) = rest.split_first_chunk()?;
    let (start, rest) = rest.split_first_chunk()?;
    let (clock, rest) = rest.split_first_chunk()?;
    let (restored, _) = rest.split_first_chunk()?;
    let restored = u64::from_le_bytes(*restored);
    let fence = Fence {
        sequence: u64::from_le_bytes(*sequence),
        start: u64::from_le_bytes(*start),
        clock: Timestamp(u64::from_le_bytes(*clock)),
        restored: (restored != NEVER).then_some(Timestamp(restored)),
    };
    Some((*id, fence))
}

#[cfg(test)]
mod tests;
