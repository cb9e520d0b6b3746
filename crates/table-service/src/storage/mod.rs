//! A server's storage of objects. Each has a name, is written once as a whole, and never
//! changes.

#[cfg(feature = "object-store")]
mod bucket;
mod folder;

#[cfg(feature = "object-store")]
pub use bucket::Bucket;
pub use folder::Folder;

use bytes::Bytes;
use std::fmt::Debug;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Storage of objects with names `folder/name`, of letters, digits and dashes.
pub trait Storage: Debug + Send + Sync {
    /// Stores an object. Once this returns, no crash undoes it. An existing object of the same
    /// name stays.
    ///
    /// # Errors
    /// [`StorageError`].
    fn put(&self, name: &str, bytes: &[u8]) -> Result<StoreOutcome, StorageError>;

    /// An object; `None` if it does not exist.
    ///
    /// # Errors
    /// [`StorageError`].
    fn get(&self, name: &str) -> Result<Option<Bytes>, StorageError>;

    /// The same parts of some objects, in order; `None` for each that does not exist.
    ///
    /// # Errors
    /// [`StorageError`].
    fn read(
        &self,
        names: &[String],
        ranges: &[Range<usize>],
    ) -> Result<Vec<Option<Vec<Bytes>>>, StorageError>;

    /// Names of the objects in a folder, without the folder, in any order. A missing folder is
    /// empty.
    ///
    /// # Errors
    /// [`StorageError`].
    fn list(&self, folder: &str) -> Result<Vec<String>, StorageError>;

    /// The names of all folders, in any order.
    ///
    /// # Errors
    /// [`StorageError`].
    fn folders(&self) -> Result<Vec<String>, StorageError>;

    /// The sizes of the objects in a folder, in any order.
    ///
    /// # Errors
    /// [`StorageError`].
    fn sizes(&self, folder: &str) -> Result<Vec<u64>, StorageError>;

    /// Deletes an object, if it exists.
    ///
    /// # Errors
    /// [`StorageError`].
    fn remove(&self, name: &str) -> Result<(), StorageError>;
}

/// What became of an object that was to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreOutcome {
    /// It is stored now.
    New,
    /// It was there.
    Same,
    /// There is another of its name, which stays.
    Other,
}

impl StoreOutcome {
    /// For an object that was there.
    fn existing(same: bool) -> Self {
        if same { Self::Same } else { Self::Other }
    }
}

/// Why objects cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The disk or the object store failed.
    #[error("{place}: {source}")]
    Failed {
        /// The file or object.
        place: String,
        /// The error of the system or the object store.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An object is truncated.
    #[error("{0} is truncated; restore it from a backup")]
    Short(String),
    /// An unknown kind of storage.
    #[error(
        "this build does not support the storage `{0}`: give a folder{more}",
        more = if cfg!(feature = "object-store") { ", s3://BUCKET/PREFIX or file:///FOLDER" } else { "; object stores need a build with `--features object-store`" }
    )]
    Unknown(String),
}

/// Opens the storage of a setting: a folder, or an object store's address.
///
/// # Errors
/// [`StorageError`].
pub fn open(place: &Path) -> Result<Arc<dyn Storage>, StorageError> {
    match place.to_str().filter(|place| place.contains("://")) {
        None => Ok(Arc::new(Folder::open(place)?)),
        Some(url) => open_url(url),
    }
}

#[cfg(feature = "object-store")]
fn open_url(url: &str) -> Result<Arc<dyn Storage>, StorageError> {
    Ok(Arc::new(Bucket::open(url)?))
}

#[cfg(not(feature = "object-store"))]
fn open_url(url: &str) -> Result<Arc<dyn Storage>, StorageError> {
    Err(StorageError::Unknown(url.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_an_unknown_storage_lists_the_known_ones() {
        for url in ["ftp://host/tables", "s4://x", "://"] {
            let message = open(Path::new(url)).unwrap_err().to_string();
            assert!(message.contains(url) && message.contains("give a folder"), "{message}");
        }
    }
}
