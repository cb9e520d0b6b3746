//! Where a server keeps tables: a folder for each, a file for each block, written
//! whole before it has its name.

use alpheus_verifiable_table::label::{Address, DataSet};
use alpheus_verifiable_table::messages::{Block, Manifest};
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// What is kept of a table beside its blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// Whose it is, by certificate.
    pub owner: String,
    /// What it is like.
    pub manifest: Manifest,
}

/// Why something cannot be stored or had.
#[derive(Debug, thiserror::Error)]
pub enum BlockError {
    /// The disk.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no such table.
    #[error("there is no such table here; create it first")]
    NoTable,
    /// Somebody else's, or another manifest.
    #[error("a table of this name is here already, and is not the same")]
    OtherTable,
    /// There is no such block.
    #[error("there is no block {} of this segment and epoch here; it was never sent, or has been dropped", .0.index)]
    NoBlock(Address),
    /// Other bytes stand under the address.
    #[error("other bytes are stored for block {} of this segment and epoch", .0.index)]
    OtherBlock(Address),
    /// A file does not hold what it should.
    #[error("{} is damaged; restore it from a backup of this folder: its owner has no copy", .0.display())]
    Damaged(PathBuf),
}

/// All tables of a server.
#[derive(Clone, Debug)]
pub struct Tables {
    root: PathBuf,
}

const ABOUT: &str = "table";

impl Tables {
    /// In a folder, which is made if it is not there.
    ///
    /// # Errors
    /// [`BlockError::Io`].
    pub fn open(root: &Path) -> Result<Self, BlockError> {
        fs::create_dir_all(root).map_err(at(root))?;
        Ok(Self { root: root.to_owned() })
    }

    fn folder(&self, table: &DataSet) -> PathBuf {
        self.root.join(HEXLOWER.encode(&table.0))
    }

    fn file(&self, table: &DataSet, address: &Address) -> PathBuf {
        let Address { segment, epoch, index } = address;
        let name = format!("{}-{epoch:08x}-{index:016x}", HEXLOWER.encode(&segment.0));
        self.folder(table).join(name)
    }

    /// Begins a table, durably. The same again changes nothing.
    ///
    /// # Errors
    /// [`BlockError`].
    pub fn create(&self, stored: &Stored) -> Result<(), BlockError> {
        let folder = self.folder(&stored.manifest.data_set);
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        sync(&self.root)?;
        let path = folder.join(ABOUT);
        let bytes = postcard::to_allocvec(stored).unwrap_or_default();
        put(&folder, &path, &bytes)?.then_some(()).ok_or(BlockError::OtherTable)
    }

    /// What is known of a table.
    ///
    /// # Errors
    /// [`BlockError`].
    pub fn about(&self, table: &DataSet) -> Result<Stored, BlockError> {
        let path = self.folder(table).join(ABOUT);
        match fs::read(&path) {
            Ok(bytes) => postcard::from_bytes(&bytes).map_err(|_| BlockError::Damaged(path)),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(BlockError::NoTable),
            Err(source) => Err(BlockError::Io { path, source }),
        }
    }

    /// Keeps a block for good. The same again changes nothing.
    ///
    /// # Errors
    /// [`BlockError`].
    pub fn put<B: AsRef<[u8]>>(&self, table: &DataSet, block: &Block<B>) -> Result<(), BlockError> {
        let address = block.address();
        let path = self.file(table, &address);
        let same = put(&self.folder(table), &path, block.as_bytes())?;
        same.then_some(()).ok_or(BlockError::OtherBlock(address))
    }

    /// A block as it was stored.
    ///
    /// # Errors
    /// [`BlockError`].
    pub fn get(&self, manifest: &Manifest, address: &Address) -> Result<Block, BlockError> {
        let path = self.file(&manifest.data_set, address);
        match fs::read(&path) {
            Ok(bytes) => {
                let block = Block::from_bytes(manifest, bytes).ok();
                let block = block.filter(|block| block.address() == *address);
                block.ok_or(BlockError::Damaged(path))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Err(BlockError::NoBlock(*address)),
            Err(source) => Err(BlockError::Io { path, source }),
        }
    }

    /// Forgets a block, if it is there.
    ///
    /// # Errors
    /// [`BlockError::Io`].
    pub fn remove(&self, table: &DataSet, address: &Address) -> Result<(), BlockError> {
        let path = self.file(table, address);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(at(&path)),
        }
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> BlockError {
    move |source| BlockError::Io { path: path.to_owned(), source }
}

fn sync(folder: &Path) -> Result<(), BlockError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(at(folder))
}

/// Writes a file that has its name only once all of it is on the disk. False if there
/// is one of that name with other bytes.
fn put(folder: &Path, path: &Path, bytes: &[u8]) -> Result<bool, BlockError> {
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(at(folder))?;
    file.write_all(bytes).map_err(at(path))?;
    file.as_file().sync_all().map_err(at(path))?;
    match file.persist_noclobber(path) {
        Ok(_) => sync(folder).map(|()| true),
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => {
            // It may have been written a moment before a crash: its name too is to last.
            let same = fs::read(path).map_err(at(path))? == bytes;
            sync(folder).map(|()| same)
        }
        Err(error) => Err(at(path)(error.error)),
    }
}
