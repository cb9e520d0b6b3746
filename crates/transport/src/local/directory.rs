//! The directory of a store: its version marker and its lock.

use crate::error::Error;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The format that this version writes and reads.
const FORMAT: u32 = 1;
const MARKER_PREFIX: &str = "alpheus store, format ";
const MARKER: &str = "FORMAT";
const LOCK: &str = "LOCK";
/// How long to wait for a lock. It outlives its holder for a moment: while the system ends a
/// killed process, or while a forked process has not yet started its own program.
const PATIENCE: Duration = Duration::from_secs(1);

/// The directory of a store, locked by this handle until it is dropped.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// Unlocked when closed.
    _lock: File,
}

impl Directory {
    /// Creates the directory if necessary, locks it, and checks or writes its marker.
    pub(super) fn claim(path: &Path) -> Result<Self, Error> {
        create_private(path).map_err(|e| Error::io(path, "create the directory", e))?;
        let marked = read_marker(path)?;
        if marked.is_none() && !is_empty(path)? {
            return Err(Error::NotAStore { path: path.to_owned() });
        }
        let lock = lock(path)?;
        match marked {
            Some(FORMAT) => {}
            Some(found) => {
                let path = path.to_owned();
                return Err(Error::Version { path, found, supported: FORMAT });
            }
            None => write_marker(path)?,
        }
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the data.
    pub(super) fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    /// The path for new data, which [`Directory::finish`] then moves into place.
    pub(super) fn unfinished(&self) -> Result<PathBuf, Error> {
        let path = self.path.join("data.new");
        match fs::remove_dir_all(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(Error::io(&path, "remove the remains of an interrupted start", e))
            }
            _ => Ok(path),
        }
    }

    /// Moves the data at [`Directory::unfinished`] into place.
    pub(super) fn finish(&self) -> Result<(), Error> {
        let failed = |e| Error::io(&self.path, "move the new data into place", e);
        fs::rename(self.path.join("data.new"), self.data()).map_err(failed)?;
        sync_directory(&self.path)
    }
}

/// Creates the directory and its missing parents, for this user only: stores hold keys and
/// ledgers.
fn create_private(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

/// The version in the marker, if there is a marker.
fn read_marker(path: &Path) -> Result<Option<u32>, Error> {
    let file = path.join(MARKER);
    let text = match fs::read_to_string(&file) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io(&file, "read the version marker", e)),
        Ok(text) => text,
    };
    let version = text.strip_prefix(MARKER_PREFIX).and_then(|v| v.trim_end().parse().ok());
    let damaged = || Error::Corrupt { path: file, what: "the version marker", source: None };
    version.map(Some).ok_or_else(damaged)
}

/// Writes the marker atomically.
fn write_marker(path: &Path) -> Result<(), Error> {
    let failed = |e| Error::io(path, "write the version marker", e);
    let temporary = path.join("FORMAT.new");
    let mut file = File::create(&temporary).map_err(failed)?;
    writeln!(file, "{MARKER_PREFIX}{FORMAT}").map_err(failed)?;
    file.sync_all().map_err(failed)?;
    fs::rename(&temporary, path.join(MARKER)).map_err(failed)?;
    sync_directory(path)
}

/// Whether the directory has nothing but the remains of an interrupted claim.
fn is_empty(path: &Path) -> Result<bool, Error> {
    let failed = |e| Error::io(path, "list the directory", e);
    for entry in fs::read_dir(path).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if name != LOCK && name != "FORMAT.new" {
            return Ok(false);
        }
    }
    Ok(true)
}

fn lock(path: &Path) -> Result<File, Error> {
    let failed = |e| Error::io(path, "lock the directory", e);
    let file = File::options().create(true).truncate(false).write(true).open(path.join(LOCK));
    let file = file.map_err(failed)?;
    let until = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(PATIENCE / 50),
            Err(TryLockError::WouldBlock) => return Err(Error::Locked { path: path.to_owned() }),
            Err(TryLockError::Error(e)) => return Err(failed(e)),
        }
    }
}

/// Flushes a directory. New names survive a crash only after this.
fn sync_directory(path: &Path) -> Result<(), Error> {
    let synced = File::open(path).and_then(|directory| directory.sync_all());
    synced.map_err(|e| Error::io(path, "flush the directory", e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_belongs_to_one_handle_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let first = Directory::claim(dir.path()).unwrap();
        assert!(matches!(Directory::claim(dir.path()), Err(Error::Locked { .. })));
        drop(first);
        Directory::claim(dir.path()).unwrap();
    }

    #[test]
    fn other_directories_and_other_versions_are_refused_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("diary.txt"), "dear").unwrap();
        assert!(matches!(Directory::claim(dir.path()), Err(Error::NotAStore { .. })));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "something was written");

        let dir = tempfile::tempdir().unwrap();
        drop(Directory::claim(dir.path()).unwrap());
        fs::write(dir.path().join(MARKER), "alpheus store, format 2\n").unwrap();
        let refused = Directory::claim(dir.path());
        assert!(matches!(refused, Err(Error::Version { found: 2, supported: 1, .. })));
        fs::write(dir.path().join(MARKER), "alph").unwrap();
        assert!(matches!(Directory::claim(dir.path()), Err(Error::Corrupt { .. })));
    }

    #[test]
    fn an_interrupted_first_start_is_harmless() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("FORMAT.new"), "alph").unwrap();
        fs::write(dir.path().join(LOCK), "").unwrap();
        Directory::claim(dir.path()).unwrap();
    }
}
