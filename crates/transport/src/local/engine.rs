//! The pair of tables on fjall.

use super::directory::Directory;
use super::{Options, repair};
use crate::error::{Error, Source};
use crate::tables::{Op, Range, Table, Tables};
use bytes::Bytes;
use fjall::config::CompressionPolicy;
use fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, LsmError,
    PersistMode, Readable,
};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Minimum size of values that are stored in separate files.
const MIN_SEPARATE_VALUE: u32 = 4 << 10;

/// Maximum total size of journals. Beyond it, memtables are flushed. This limits disk use and
/// the time to open after a crash.
const MAX_JOURNAL_BYTES: u64 = 192 << 20;

/// Two trees of one fjall database.
pub(super) struct Fjall {
    database: Database,
    log: Keyspace,
    state: Keyspace,
    sync_delay: Duration,
    /// Held while a batch is written and flushed.
    writing: Mutex<()>,
    /// Bytes on disk, when nothing was written last.
    known_bytes: AtomicU64,
    /// Dropped last: fjall must be closed before another handle opens the directory.
    directory: Directory,
}

impl Fjall {
    /// Opens the trees, or creates them.
    pub(super) fn open(directory: Directory, options: &Options) -> Result<Self, Error> {
        let data = directory.data();
        let exists = data.try_exists().map_err(|e| Error::io(&data, "look for the data", e))?;
        if exists {
            repair::cut_torn_tail(&data)?;
        } else {
            let unfinished = directory.unfinished()?;
            drop(open_guarded(&unfinished, options)?);
            directory.finish()?;
        }
        let (database, log, state) = open_guarded(&data, options)?;
        let known_bytes = AtomicU64::new(database.disk_space().unwrap_or_default());
        let (sync_delay, writing) = (options.sync_delay, Mutex::default());
        Ok(Self { database, log, state, sync_delay, writing, known_bytes, directory })
    }

    const fn tree(&self, table: Table) -> &Keyspace {
        match table {
            Table::Log => &self.log,
            Table::State => &self.state,
        }
    }

    fn failed(&self, action: &'static str) -> impl Fn(fjall::Error) -> Error {
        let path = self.directory.path().to_owned();
        move |error| translate(&path, action, error)
    }
}

/// Fjall asserts some properties of its files. A damaged directory is an error here, not a
/// panic.
fn open_guarded(data: &Path, options: &Options) -> Result<(Database, Keyspace, Keyspace), Error> {
    let opened = catch_unwind(AssertUnwindSafe(|| open_trees(data, options)));
    let what = "the engine could not read its own files";
    let panicked = Error::Corrupt { path: data.to_owned(), what, source: None };
    opened.unwrap_or(Err(fjall::Error::Unrecoverable)).map_err(|error| match error {
        fjall::Error::Unrecoverable => panicked,
        error => translate(data, "open the store", error),
    })
}

fn open_trees(data: &Path, options: &Options) -> fjall::Result<(Database, Keyspace, Keyspace)> {
    let database = Database::builder(data)
        .cache_size(options.cache)
        .journal_compression(CompressionType::None)
        .manual_journal_persist(true)
        .worker_threads(1)
        .max_journaling_size(MAX_JOURNAL_BYTES)
        .open()?;
    let plain = || {
        KeyspaceCreateOptions::default()
            .max_memtable_size(options.memtable)
            .data_block_compression_policy(CompressionPolicy::all(CompressionType::None))
            .manual_journal_persist(true)
    };
    let separate = KvSeparationOptions::default()
        .compression(CompressionType::None)
        .separation_threshold(MIN_SEPARATE_VALUE);
    let log = database.keyspace("log", || plain().with_kv_separation(Some(separate)))?;
    let state = database.keyspace("state", plain)?;
    Ok((database, log, state))
}

impl Tables for Fjall {
    fn apply(&self, ops: Vec<Op>) -> Result<(), Error> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for Op { table, key, value } in ops {
            match value {
                Some(value) => batch.insert(self.tree(table), key, value),
                None => batch.remove(self.tree(table), key),
            }
        }
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        batch.commit().map_err(self.failed("write"))?;
        if !self.sync_delay.is_zero() {
            std::thread::sleep(self.sync_delay);
        }
        Ok(())
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, Error> {
        // A snapshot contains only whole batches.
        let found = self.database.snapshot().get(self.tree(table), key);
        Ok(found.map_err(self.failed("read"))?.map(Bytes::from))
    }

    fn floor(&self, table: Table, floor: &[u8], key: &[u8]) -> Result<Option<Bytes>, Error> {
        let mut range = self.tree(table).range(floor..=key);
        let last = range.next_back().map(fjall::Guard::key).transpose();
        Ok(last.map_err(self.failed("read"))?.map(Bytes::from))
    }

    fn range(
        &self,
        table: Table,
        range: Range<'_>,
        each: &mut dyn FnMut(Bytes, Bytes) -> bool,
    ) -> Result<(), Error> {
        for entry in self.tree(table).range::<&[u8], _>(range) {
            let (key, value) = entry.into_inner().map_err(self.failed("read"))?;
            if !each(key.into(), value.into()) {
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
        for entry in self.tree(table).range::<&[u8], _>(range) {
            if !each(&entry.key().map_err(self.failed("read"))?) {
                break;
            }
        }
        Ok(())
    }

    fn all(&self, each: &mut dyn FnMut(Table, Bytes, Bytes) -> bool) -> Result<(), Error> {
        // One snapshot of both trees contains only whole batches.
        let snapshot = self.database.snapshot();
        for table in [Table::Log, Table::State] {
            for entry in snapshot.iter(self.tree(table)) {
                let (key, value) = entry.into_inner().map_err(self.failed("read"))?;
                if !each(table, key.into(), value.into()) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn disk_bytes(&self) -> u64 {
        // Fjall waits for a flush that is under way, and with a disk that hangs so would all who ask.
        if let Ok(_nobody_writes) = self.writing.try_lock()
            && let Ok(bytes) = self.database.disk_space()
        {
            self.known_bytes.store(bytes, Ordering::Relaxed);
        }
        self.known_bytes.load(Ordering::Relaxed)
    }
}

/// Converts fjall's errors.
fn translate(path: &Path, action: &'static str, error: fjall::Error) -> Error {
    let path: PathBuf = path.to_owned();
    let damaged = |what, error: fjall::Error| Error::Corrupt {
        path: path.clone(),
        what,
        source: Some(Source::new(error)),
    };
    match error {
        fjall::Error::Io(error) => from_io(&path, action, error),
        fjall::Error::Storage(LsmError::Io(error)) => from_io(&path, action, error),
        fjall::Error::Poisoned => Error::Failed { path },
        fjall::Error::Locked => Error::Locked { path },
        error @ fjall::Error::JournalRecovery(_) => damaged("the journal", error),
        error @ fjall::Error::InvalidVersion(_) => damaged("the engine's version marker", error),
        error => damaged("a checksum or a header", error),
    }
}

/// Converts an I/O error. A file that is missing or too short is damage.
fn from_io(path: &Path, action: &'static str, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::NotFound => {
            let source = Some(Source::new(error));
            Error::Corrupt { path: path.to_owned(), what: "a file is missing or short", source }
        }
        _ => Error::io(path, action, error),
    }
}
