//! Objects as files. A file gets its name once it is complete.

use super::{Storage, StorageError, StoreOutcome};
use bytes::Bytes;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A folder of files.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
}

/// The prefix of incomplete files. It is part of the format.
const INCOMPLETE: &str = ".coming-";
/// An older incomplete file is not being written any more.
const ABANDONED: Duration = Duration::from_secs(3600);

impl Folder {
    /// Opens a folder, which is created if needed. Incomplete files of crashes are deleted.
    ///
    /// # Errors
    /// [`StorageError::Failed`].
    pub fn open(root: &Path) -> Result<Self, StorageError> {
        fs::create_dir_all(root).map_err(at(root))?;
        for entry in fs::read_dir(root).map_err(at(root))? {
            let entry = entry.map_err(at(root))?;
            let incomplete = entry.file_name().to_string_lossy().starts_with(INCOMPLETE);
            if incomplete && abandoned(&entry).unwrap_or(false) {
                fs::remove_file(entry.path()).map_err(at(&entry.path()))?;
            }
        }
        Ok(Self { root: root.to_owned() })
    }

    /// Something of each entry of a folder. A missing folder is empty.
    fn entries<T>(
        &self,
        folder: &str,
        of: impl Fn(&fs::DirEntry) -> io::Result<T>,
    ) -> Result<Vec<T>, StorageError> {
        let path = self.root.join(folder);
        let entries = match fs::read_dir(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(at(&path))?,
        };
        entries.map(|entry| of(&entry?)).collect::<io::Result<_>>().map_err(at(&path))
    }

    fn ranges(
        &self,
        name: &str,
        ranges: &[Range<usize>],
    ) -> Result<Option<Vec<Bytes>>, StorageError> {
        let path = self.root.join(name);
        let mut file = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file.map_err(at(&path))?,
        };
        let mut part = |range: &Range<usize>| {
            let mut bytes = vec![0; range.len()];
            file.seek(SeekFrom::Start(range.start as u64))?;
            file.read_exact(&mut bytes).map(|()| Bytes::from(bytes))
        };
        let parts: io::Result<Vec<Bytes>> = ranges.iter().map(&mut part).collect();
        match parts {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                Err(StorageError::Short(name.to_owned()))
            }
            parts => parts.map(Some).map_err(at(&path)),
        }
    }
}

fn abandoned(entry: &fs::DirEntry) -> io::Result<bool> {
    let age = SystemTime::now().duration_since(entry.metadata()?.modified()?);
    Ok(age.is_ok_and(|age| age > ABANDONED))
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> StorageError {
    move |error| {
        let place = path.display().to_string();
        StorageError::Failed { place, source: Box::new(error) }
    }
}

fn sync(folder: &Path) -> Result<(), StorageError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(at(folder))
}

impl Storage for Folder {
    fn put(&self, name: &str, bytes: &[u8]) -> Result<StoreOutcome, StorageError> {
        let path = self.root.join(name);
        let folder = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder).map_err(at(folder))?;
        // In the root folder, so that incomplete files are found after a crash.
        let file = tempfile::Builder::new().prefix(INCOMPLETE).tempfile_in(&self.root);
        let mut file = file.map_err(at(&self.root))?;
        file.write_all(bytes).map_err(at(&path))?;
        file.as_file().sync_all().map_err(at(&path))?;
        let stored = match file.persist_noclobber(&path) {
            Ok(_) => StoreOutcome::New,
            Err(error) if error.error.kind() == ErrorKind::AlreadyExists => {
                StoreOutcome::existing(fs::read(&path).map_err(at(&path))? == bytes)
            }
            Err(error) => return Err(at(&path)(error.error)),
        };
        // Even if the file existed: it may have been written just before a crash, and its name
        // must be durable.
        sync(folder)?;
        sync(&self.root)?;
        Ok(stored)
    }

    fn get(&self, name: &str) -> Result<Option<Bytes>, StorageError> {
        let path = self.root.join(name);
        match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            read => read.map(|bytes| Some(Bytes::from(bytes))).map_err(at(&path)),
        }
    }

    fn read(
        &self,
        names: &[String],
        ranges: &[Range<usize>],
    ) -> Result<Vec<Option<Vec<Bytes>>>, StorageError> {
        names.iter().map(|name| self.ranges(name, ranges)).collect()
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, StorageError> {
        let names = self.entries(folder, |entry| Ok(entry.file_name().into_string().ok()))?;
        Ok(names.into_iter().flatten().collect())
    }

    fn folders(&self) -> Result<Vec<String>, StorageError> {
        let folder = |entry: &fs::DirEntry| {
            let name = entry.file_name().into_string().ok();
            Ok(name.filter(|_| entry.file_type().is_ok_and(|kind| kind.is_dir())))
        };
        Ok(self.entries("", folder)?.into_iter().flatten().collect())
    }

    fn sizes(&self, folder: &str) -> Result<Vec<u64>, StorageError> {
        let size = |entry: &fs::DirEntry| match entry.metadata() {
            // It was deleted meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            about => Ok(about?.len()),
        };
        self.entries(folder, size)
    }

    fn remove(&self, name: &str) -> Result<(), StorageError> {
        let path = self.root.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(at(&path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A start deletes old incomplete files, but not those that may still be written.
    #[test]
    fn incomplete_files_of_crashes_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let (old, young) = (folder.path().join(".coming-1"), folder.path().join(".coming-2"));
        for path in [&old, &young] {
            fs::write(path, "half a block").unwrap();
        }
        let long_ago = SystemTime::now() - 2 * ABANDONED;
        File::options().write(true).open(&old).unwrap().set_modified(long_ago).unwrap();
        let storage = Folder::open(folder.path()).unwrap();
        assert_eq!((old.exists(), young.exists()), (false, true));
        assert_eq!(storage.put("a/b", b"x").unwrap(), StoreOutcome::New);
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 2, "the young one and the folder");
    }
}
