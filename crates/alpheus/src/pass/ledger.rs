//! The ledgers of issuer and verifier: a space of a durable store, and a fence
//! beside it that shows an older copy.

use crate::failure::{Blame, Category, Failure};
use crate::runtime::fence::{FenceError, FenceFile};
use crate::runtime::storage::scan_all;
use alpheus_anonymous_credential::ledger::{Change, Ledger, LedgerError, Log};
use alpheus_encrypted_stream::ledger::Fence;
use alpheus_policy::ids::ControllerId;
use alpheus_policy::time::Timestamp;
use alpheus_transport::{Batch, Error, Space, Store};
use std::path::Path;
use std::sync::Arc;

/// How far the ledger has come, beside the records.
const SEQUENCE: &[u8] = b"sequence";
/// Which shard's ledger it is.
const PLACE: &[u8] = b"place";
/// The fence file has one entry.
const ENTRY: ControllerId = ControllerId([0; 32]);

/// A durable ledger with one writer, fenced.
pub struct FencedLedger {
    store: Arc<dyn Store>,
    records: Space,
    fenced: Space,
    fence: FenceFile,
    sequence: u64,
    failed: bool,
}

/// What a ledger holds, and what is known of it.
pub struct Found {
    /// The ledger.
    pub ledger: FencedLedger,
    /// Its records.
    pub records: Vec<(Vec<u8>, Vec<u8>)>,
    /// Whether there was never anything, neither ledger nor fence.
    pub untouched: bool,
    /// Whole if the fence has seen no more than the ledger holds.
    pub log: Log,
}

impl FencedLedger {
    /// Opens the ledger in a store, with the fence at `fence`.
    ///
    /// # Errors
    /// The store or the fence cannot be read.
    pub fn open(store: Arc<dyn Store>, fence: &Path) -> Result<Found, Failure> {
        let fence = FenceFile::load(fence).blame(Category::Input)?;
        Self::read(store, fence).blame(Category::Io)
    }

    fn read(store: Arc<dyn Store>, fence: FenceFile) -> Result<Found, Error> {
        let (records, fenced) = (Space::new("pass")?, Space::new("pass-fence")?);
        store.ensure_space(&records)?;
        store.ensure_space(&fenced)?;
        let held = store.get(&fenced, SEQUENCE)?;
        let held = held.and_then(|bytes| bytes.as_ref().try_into().ok().map(u64::from_be_bytes));
        let seen = fence.get(&ENTRY).map(|fence| fence.sequence);
        let log = match (held, seen) {
            (Some(held), Some(seen)) if held >= seen => Log::Whole,
            _ => Log::Doubtful,
        };
        let found = scan_all(store.as_ref(), &records, b"")?;
        let found: Vec<_> = found.into_iter().map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
        let untouched = held.is_none() && seen.is_none() && found.is_empty();
        let sequence = held.unwrap_or(0).max(seen.unwrap_or(0));
        let ledger = Self { store, records, fenced, fence, sequence, failed: false };
        Ok(Found { ledger, records: found, untouched, log })
    }

    /// Whether the ledger is that shard's of so many.
    ///
    /// # Errors
    /// The store fails.
    pub fn is_of(&self, shard: u64, of: u64) -> Result<bool, Error> {
        let known = self.store.get(&self.fenced, PLACE)?;
        Ok(known.as_deref() == Some(place(shard, of).as_slice()))
    }

    /// From now on it is. Said once nothing of another shard is believed any more.
    ///
    /// # Errors
    /// The store fails.
    pub fn note_place(&mut self, shard: u64, of: u64) -> Result<(), Error> {
        let mut batch = Batch::new();
        batch.put(&self.fenced, PLACE, place(shard, of))?;
        self.store.commit(batch).map(|_| ())
    }

    fn write(&mut self, changes: &[Change]) -> Result<(), NotWritten> {
        let mut batch = Batch::new();
        for Change { key, value } in changes {
            match value {
                Some(value) => batch.put(&self.records, key.clone(), value.to_vec())?,
                None => batch.delete(&self.records, key.clone())?,
            }
        }
        self.sequence += 1;
        batch.put(&self.fenced, SEQUENCE, self.sequence.to_be_bytes().to_vec())?;
        self.store.commit(batch)?;
        let fence = Fence { sequence: self.sequence, clock: Timestamp(0), restored: None };
        Ok(self.fence.advance([(ENTRY, fence)])?)
    }
}

fn place(shard: u64, of: u64) -> Vec<u8> {
    [shard.to_be_bytes(), of.to_be_bytes()].concat()
}

#[derive(Debug, thiserror::Error)]
enum NotWritten {
    #[error(transparent)]
    Store(#[from] Error),
    #[error(transparent)]
    Fence(#[from] FenceError),
}

impl Ledger for FencedLedger {
    fn commit(&mut self, changes: &[Change]) -> Result<(), LedgerError> {
        if self.failed {
            return Err(LedgerError);
        }
        self.write(changes).map_err(|error| {
            tracing::error!(%error, "the ledger could not be written");
            self.failed = true;
            LedgerError
        })
    }
}
