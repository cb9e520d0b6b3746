//! Objects in an object store, S3 or compatible, by the crate `object_store`.

use super::{Storage, StorageError, StoreOutcome};
use alpheus_node::key_exchange;
use bytes::Bytes;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    Error, ListResult, ObjectStore, ObjectStoreExt, PutMode, PutPayload, RetryConfig,
};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};

/// Objects under a prefix of an object store.
pub struct Bucket {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    handle: Handle,
    _runtime: RuntimeGuard,
}

/// Shuts a runtime down without waiting: a thread that serves requests must not wait.
struct RuntimeGuard(Option<Runtime>);

impl Drop for RuntimeGuard {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Omits the store's own `Debug` output, which may contain credentials.
impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bucket({} at `{}`)", self.store, self.prefix)
    }
}

/// Owners give up after half a minute, so the server must give up earlier.
const RETRY_TIMEOUT: Duration = Duration::from_secs(20);

impl Bucket {
    /// Opens the object store at an address: `s3://BUCKET/PREFIX`, configured by the
    /// environment (`AWS_ACCESS_KEY_ID` and similar), or `file:///FOLDER`.
    ///
    /// # Errors
    /// [`StorageError`].
    pub fn open(url: &str) -> Result<Self, StorageError> {
        if let Some(folder) = url.strip_prefix("file://") {
            let store = LocalFileSystem::new().with_fsync(true);
            return Self::over(Arc::new(store), folder);
        }
        let unknown = || StorageError::Unknown(url.to_owned());
        let place = url.strip_prefix("s3://").ok_or_else(unknown)?;
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        // The library uses the process's provider, which may be installed already.
        let _ = key_exchange::provider().install_default();
        let retry = RetryConfig { retry_timeout: RETRY_TIMEOUT, ..RetryConfig::default() };
        let store = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry);
        Self::over(Arc::new(store.build().map_err(failed(url))?), prefix)
    }

    /// Uses any object store.
    ///
    /// # Errors
    /// [`StorageError`] if the prefix is not a path, or threads cannot be started.
    pub fn over(store: Arc<dyn ObjectStore>, prefix: &str) -> Result<Self, StorageError> {
        let prefix = Path::parse(prefix.trim_matches('/')).map_err(failed(prefix))?;
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.map_err(failed(prefix.as_ref()))?;
        let handle = runtime.handle().clone();
        Ok(Self { store, prefix, handle, _runtime: RuntimeGuard(Some(runtime)) })
    }

    /// What lies in a folder.
    fn listed(&self, folder: &Path) -> Result<ListResult, StorageError> {
        let listed = self.store.list_with_delimiter(Some(folder));
        self.handle.block_on(listed).map_err(failed(folder.as_ref()))
    }

    fn path(&self, name: &str) -> Path {
        name.split('/').fold(self.prefix.clone(), |path, part| path.join(part))
    }
}

fn failed<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    place: &str,
) -> impl FnOnce(E) -> StorageError {
    move |error| StorageError::Failed { place: place.to_owned(), source: error.into() }
}

impl Storage for Bucket {
    fn put(&self, name: &str, bytes: &[u8]) -> Result<StoreOutcome, StorageError> {
        let (path, payload) = (self.path(name), PutPayload::from(bytes.to_vec()));
        let put = self.store.put_opts(&path, payload, PutMode::Create.into());
        match self.handle.block_on(put) {
            Ok(_) => Ok(StoreOutcome::New),
            Err(Error::AlreadyExists { .. }) => {
                Ok(StoreOutcome::existing(self.get(name)?.is_some_and(|there| there == bytes)))
            }
            Err(error) => Err(failed(name)(error)),
        }
    }

    fn get(&self, name: &str) -> Result<Option<Bytes>, StorageError> {
        let path = self.path(name);
        let got = async { self.store.get(&path).await?.bytes().await };
        match self.handle.block_on(got) {
            Err(Error::NotFound { .. }) => Ok(None),
            got => got.map(Some).map_err(failed(name)),
        }
    }

    /// Reads all objects concurrently, since an object store has a high latency.
    fn read(
        &self,
        names: &[String],
        ranges: &[Range<usize>],
    ) -> Result<Vec<Option<Vec<Bytes>>>, StorageError> {
        let wide: Vec<_> = ranges.iter().map(|at| at.start as u64..at.end as u64).collect();
        let begin = |name: &String| {
            let (store, path, wide) = (Arc::clone(&self.store), self.path(name), wide.clone());
            self.handle.spawn(async move { store.get_ranges(&path, &wide).await })
        };
        let tasks: Vec<_> = names.iter().map(begin).collect();
        let mut found = Vec::with_capacity(names.len());
        for (name, task) in names.iter().zip(tasks) {
            found.push(match self.handle.block_on(task).map_err(failed(name))? {
                Err(Error::NotFound { .. }) => None,
                parts => Some(parts.map_err(failed(name))?),
            });
            let whole = |parts: &Vec<Bytes>| {
                parts.iter().map(Bytes::len).eq(ranges.iter().map(ExactSizeIterator::len))
            };
            if !found.last().and_then(Option::as_ref).is_none_or(whole) {
                return Err(StorageError::Short(name.clone()));
            }
        }
        Ok(found)
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, StorageError> {
        let objects = self.listed(&self.path(folder))?.objects.into_iter();
        Ok(objects.filter_map(|object| object.location.filename().map(str::to_owned)).collect())
    }

    fn folders(&self) -> Result<Vec<String>, StorageError> {
        let folders = self.listed(&self.prefix)?.common_prefixes.into_iter();
        Ok(folders.filter_map(|folder| folder.filename().map(str::to_owned)).collect())
    }

    fn sizes(&self, folder: &str) -> Result<Vec<u64>, StorageError> {
        let objects = self.listed(&self.path(folder))?.objects;
        Ok(objects.into_iter().map(|object| object.size).collect())
    }

    fn remove(&self, name: &str) -> Result<(), StorageError> {
        let path = self.path(name);
        match self.handle.block_on(self.store.delete(&path)) {
            Err(Error::NotFound { .. }) => Ok(()),
            removed => removed.map_err(failed(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::Tables;
    use crate::blocks::tests::check_tables;
    use object_store::memory::InMemory;

    #[test]
    fn object_stores_store_tables() {
        let memory: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        for prefix in ["", "some/where/"] {
            let bucket = Bucket::over(Arc::clone(&memory), prefix).unwrap();
            check_tables(&Tables::over(Arc::new(bucket)));
        }
        let folder = tempfile::tempdir().unwrap();
        let url = format!("file://{}/tables", folder.path().display());
        check_tables(&Tables::over(Arc::new(Bucket::open(&url).unwrap())));
        // The names are the same, so objects can be copied between storages.
        let path = folder.path().join("tables");
        let moved = Tables::open(&path).unwrap();
        let table = alpheus_verifiable_table::label::DataSet([1; 16]);
        assert_eq!(moved.about(&table).unwrap().owner, "ada");
    }

    #[test]
    fn a_truncated_object_is_an_error_and_a_missing_one_is_none() {
        let bucket = Bucket::over(Arc::new(InMemory::new()), "t").unwrap();
        bucket.put("a/b", b"0123456789").unwrap();
        let names = ["a/b".to_owned(), "a/c".to_owned()];
        let found = bucket.read(&names, &[0..2, 7..10]).unwrap();
        let parts = vec![Bytes::from_static(b"01"), Bytes::from_static(b"789")];
        assert_eq!(found, [Some(parts), None]);
        let short = bucket.read(&names, &[0..2, 7..11]);
        assert!(matches!(short, Err(StorageError::Short(_))), "{short:?}");
    }

    /// Dropping a runtime inside another one would panic.
    #[test]
    fn a_bucket_can_be_dropped_within_a_runtime() {
        let bucket = Bucket::over(Arc::new(InMemory::new()), "t").unwrap();
        Builder::new_current_thread().build().unwrap().block_on(async { drop(bucket) });
    }
}
