//! A store in a directory of this machine, in this process, on `fjall`.
//!
//! ```text
//! DIR/FORMAT    version of what is here; checked before anything is read
//! DIR/LOCK      held while a process has the store open
//! DIR/data/     fjall's journal and trees
//! DIR/data.new/ the same while it is being made: dropped if a crash interrupts that
//! ```
//! Nothing is compressed: what is stored is mostly ciphertext. Values of the
//! log go to files of their own, so that merging trees does not copy them.

mod directory;
mod engine;
mod repair;

use crate::engine::Engine;
use crate::error::Error;
use crate::store::Store;
use directory::Directory;
use engine::Fjall;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const DEFAULT_MAX_STAGED: usize = 64 << 20;

/// How a local store uses the machine.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The most bytes of accepted batches that wait for a sync, so also of one
    /// batch; default 64 MiB. While one group is written the next may gather:
    /// twice that is held.
    pub max_staged: usize,
    /// Bytes of recent writes in memory, per tree; default 32 MiB.
    pub memtable: u64,
    /// Bytes of read cache; default 32 MiB.
    pub cache: u64,
    /// Waits so long after each flush of the disk, as a slower disk would;
    /// for tests and benchmarks.
    pub sync_delay: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_staged: DEFAULT_MAX_STAGED,
            memtable: 32 << 20,
            cache: 32 << 20,
            sync_delay: Duration::ZERO,
        }
    }
}

/// Opens the store in `path`, making it if the directory is empty or absent.
/// What a crash had torn is cut off; everything that was ever acknowledged is there.
///
/// # Errors
/// [`Error::Locked`], [`Error::Version`], [`Error::NotAStore`],
/// [`Error::Corrupt`], [`Error::DiskFull`] or [`Error::Io`], each naming `path`.
pub fn open(path: &Path, options: &Options) -> Result<Arc<dyn Store>, Error> {
    let directory = Directory::claim(path)?;
    let tables = Fjall::open(directory, options)?;
    Ok(Arc::new(Engine::open(tables, path.to_owned(), options.max_staged)?))
}
