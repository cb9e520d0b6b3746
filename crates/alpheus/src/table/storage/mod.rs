//! Where a server keeps objects: by name, written once and whole, never changed.

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

/// Objects by name: `folder/name`, of letters, digits and dashes.
pub trait Storage: Debug + Send + Sync {
    /// Keeps an object for good: once this returns, no crash undoes it. Of two of one name
    /// the first stays; false if its bytes are others.
    ///
    /// # Errors
    /// [`StorageError`].
    fn put(&self, name: &str, bytes: &[u8]) -> Result<bool, StorageError>;

    /// An object; none if there is none of that name.
    ///
    /// # Errors
    /// [`StorageError`].
    fn get(&self, name: &str) -> Result<Option<Bytes>, StorageError>;

    /// The same parts of some objects, in order; none where there is no such object.
    ///
    /// # Errors
    /// [`StorageError`].
    fn read(
        &self,
        names: &[String],
        ranges: &[Range<usize>],
    ) -> Result<Vec<Option<Vec<Bytes>>>, StorageError>;

    /// Names of a folder's objects, without the folder's, in any order; none if there is no
    /// such folder.
    ///
    /// # Errors
    /// [`StorageError`].
    fn list(&self, folder: &str) -> Result<Vec<String>, StorageError>;

    /// Removes an object, if it is there.
    ///
    /// # Errors
    /// [`StorageError`].
    fn remove(&self, name: &str) -> Result<(), StorageError>;
}

/// Why objects cannot be stored or had.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// What lies below failed.
    #[error("{place}: {source}")]
    Failed {
        /// The file or object.
        place: String,
        /// What the system or the object store said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An object ends before what is wanted of it.
    #[error("{0} is shorter than it was; restore it from a backup")]
    Short(String),
    /// What kind of storage it names.
    #[error(
        "`{0}` is no storage that this build knows: give a folder{more}",
        more = if cfg!(feature = "object-store") { ", s3://BUCKET/PREFIX or file:///FOLDER" } else { "; object stores need a build with `--features object-store`" }
    )]
    Unknown(String),
}

/// The storage that a setting names: a folder, or an object store's address.
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
    fn a_storage_that_is_not_known_is_named_with_what_is() {
        for url in ["ftp://host/tables", "s4://x", "://"] {
            let said = open(Path::new(url)).unwrap_err().to_string();
            assert!(said.contains(url) && said.contains("give a folder"), "{said}");
        }
    }
}
