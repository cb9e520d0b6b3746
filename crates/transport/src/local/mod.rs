//! A store in a directory on this machine, in this process, on `fjall`.
//!
//! ```text
//! DIR/FORMAT    version of the format; checked before anything is read
//! DIR/LOCK      held while a process has the store open
//! DIR/data/     fjall's journal and trees
//! DIR/data.new/ the same while it is created: deleted if a crash interrupts that
//! ```
//! Nothing is compressed, since data is mostly ciphertext. Values of the log are in separate
//! files, so that merging trees does not copy them.

mod directory;
mod engine;
mod repair;

use crate::engine::Engine;
use crate::error::Error;
use crate::store::{ExportEntry, Store};
use crate::tables::{Op, Table, Tables};
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
    /// Maximum size of accepted batches that wait for a sync, and of a single batch. The
    /// default is 64 MiB. While a group is written, the next one collects, so memory use is
    /// up to twice that.
    pub max_staged: usize,
    /// Bytes of recent writes in memory, per tree. The default is 32 MiB.
    pub memtable: u64,
    /// Bytes of read cache. The default is 32 MiB.
    pub cache: u64,
    /// Extra wait after each flush of the disk, to simulate a slower disk in tests and
    /// benchmarks.
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

/// Opens the store in `path`, and creates it if the directory is empty or missing. A batch
/// torn by a crash is cut off. Everything that was acknowledged is there.
///
/// # Errors
/// [`Error::Locked`], [`Error::Version`], [`Error::NotAStore`],
/// [`Error::Corrupt`], [`Error::DiskFull`] or [`Error::Io`], each with `path`.
pub fn open(path: &Path, options: &Options) -> Result<Arc<dyn Store>, Error> {
    let directory = Directory::claim(path)?;
    let tables = Fjall::open(directory, options)?;
    Ok(Arc::new(Engine::open(tables, path.to_owned(), options.max_staged)?))
}

/// Bytes of an import that are written at once.
const IMPORTED_AT_ONCE: usize = 8 << 20;

/// Makes a store in `path`, which must not exist or be empty, of what [`Store::export`] gave, and checks
/// that it can be opened. `next` gives an entry at a time, then none. If it fails, or the machine stops, the
/// folder holds a part of a store: remove it.
///
/// # Errors
/// Those of `next`; those of [`open`]; [`Error::NotAStore`] if there is a store already.
pub fn import<E: From<Error>>(
    path: &Path,
    mut next: impl FnMut() -> Result<Option<ExportEntry>, E>,
) -> Result<(), E> {
    if path.join("data").exists() {
        return Err(Error::NotAStore { path: path.to_owned() }.into());
    }
    let options = Options::default();
    let tables = Fjall::open(Directory::claim(path)?, &options)?;
    let (mut ops, mut bytes) = (Vec::new(), 0);
    while let Some(ExportEntry { is_log, key, value }) = next()? {
        bytes += key.len() + value.len();
        let table = if is_log { Table::Log } else { Table::State };
        ops.push(Op { table, key, value: Some(value) });
        if bytes >= IMPORTED_AT_ONCE {
            tables.apply(std::mem::take(&mut ops))?;
            bytes = 0;
        }
    }
    tables.apply(ops)?;
    // Reads the catalog, so that a store that lacks a part is noticed here.
    Engine::open(tables, path.to_owned(), options.max_staged)?;
    Ok(())
}
