//! A client's ledger: durable records, and a copy of them in memory.

use alpheus_accountable_statistics::client::Records;
use alpheus_accountable_statistics::endorsement::Endorsed;
use alpheus_accountable_statistics::messages::Entry;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, Ledger, LedgerError, StateOrigin, put};
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::ledger::{FencedLedger, OpenedLedger};
use alpheus_transport::Store;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// The spaces of the store.
const SPACES: [&str; 2] = ["stats-client", "stats-client-fence"];
/// The format version of its records. An incompatible change gets the next number.
const FORMAT: u32 = 2;
/// A quorum's receipts for an upload; the protocol client's records begin with other letters.
const RECEIPTS: u8 = b'r';
/// A deposit without a quorum's receipts, which may have been certified anyway.
const UNCONFIRMED: u8 = b'm';
/// The number of contributed lines of a file, and the file that had a name.
const LINES: u8 = b'l';
const NAME: u8 = b'n';

/// The ledger.
pub struct ClientLedger {
    durable: FencedLedger,
    records: Records,
}

/// The state is an old copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the state is older than its fence, so this client could present a credential twice; use a new folder when the next period of credentials begins"
)]
pub(crate) struct OldCopyError;

impl Ledger for ClientLedger {
    fn commit(&mut self, changes: &[Change]) -> Result<(), LedgerError> {
        self.durable.commit(changes)?;
        self.records.commit(changes)
    }
}

fn about(kind: u8, name: &Digest) -> Vec<u8> {
    [[kind].as_slice(), name.as_bytes()].concat()
}

fn of_slot(kind: u8, entry: &Entry) -> Vec<u8> {
    [about(kind, &entry.aggregate).as_slice(), &entry.slot.to_be_bytes()].concat()
}

/// The identity of a file of samples: its name, and an identity that survives renaming.
pub struct Mark {
    name: Vec<u8>,
    file: Vec<u8>,
}

impl Mark {
    /// The identity of an open file at a path.
    ///
    /// # Errors
    /// If its metadata cannot be read.
    pub fn of(path: &Path, open: &File) -> io::Result<Self> {
        let about = open.metadata()?;
        // File systems reuse inode numbers, so the creation time is part of the identity.
        let made = about.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
        let made = made.unwrap_or_default().as_nanos().to_be_bytes();
        let file = [&about.dev().to_be_bytes()[..], &about.ino().to_be_bytes(), &made].concat();
        Ok(Self { name: path.as_os_str().as_bytes().to_vec(), file })
    }

    fn lines(&self) -> Vec<u8> {
        [[LINES].as_slice(), &self.file].concat()
    }

    fn name(&self) -> Vec<u8> {
        [[NAME].as_slice(), &self.name].concat()
    }
}

impl ClientLedger {
    /// Opens it.
    ///
    /// # Errors
    /// If the store cannot be read, or is an old copy.
    pub fn open(store: Arc<dyn Store>, fence: &Path) -> Result<Self, Failure> {
        let found = FencedLedger::open_spaces(store, fence, None, SPACES)?;
        let found = found.in_format(FORMAT).blame(Category::Input)?;
        if found.since_it_began() == StateOrigin::Restored {
            return Err(OldCopyError).blame(Category::Input);
        }
        let OpenedLedger { ledger, records, .. } = found;
        Ok(Self { durable: ledger, records: records.into_iter().collect() })
    }

    /// All records.
    #[must_use]
    pub fn records(&self) -> Records {
        self.records.clone()
    }

    /// The number of contributed lines of a file; none if another file of its name was contributed.
    #[must_use]
    pub fn lines(&self, of: &Mark) -> Option<u64> {
        if self.records.get(&of.name()).is_some_and(|known| *known != of.file) {
            return None;
        }
        let bytes = self.records.get(&of.lines()).and_then(|value| value.first_chunk());
        Some(bytes.map_or(0, |bytes| u64::from_be_bytes(*bytes)))
    }

    /// Records the number of contributed lines.
    #[must_use]
    pub fn record_lines(of: &Mark, many: u64) -> Vec<Change> {
        vec![put(of.name(), of.file.clone()), put(of.lines(), many.to_be_bytes().to_vec())]
    }

    /// Keeps the receipts of an upload.
    #[must_use]
    pub fn keep(entry: &Entry, certificate: &Endorsed<Entry>) -> Vec<Change> {
        let value = postcard::to_allocvec(certificate).unwrap_or_default();
        vec![put(of_slot(RECEIPTS, entry), value)]
    }

    /// The entries of an aggregate that have receipts, and the changes that delete them. The receipts
    /// were checked when they arrived.
    #[must_use]
    pub fn kept(&self, name: &Digest) -> Vec<(Entry, Change)> {
        let read = |(key, value): (&Vec<u8>, &Vec<u8>)| {
            let certificate: Endorsed<Entry> = postcard::from_bytes(value).ok()?;
            let entry = certificate.dangerous_unverified()?;
            Some((entry, Change { key: key.clone(), value: None }))
        };
        self.under(about(RECEIPTS, name)).filter_map(read).collect()
    }

    /// Keeps a deposit, of a sample or a dummy, that only the closing can confirm.
    #[must_use]
    pub fn keep_unconfirmed(entry: &Entry, sample: bool) -> Change {
        let value = postcard::to_allocvec(&(entry, sample)).unwrap_or_default();
        put(of_slot(UNCONFIRMED, entry), value)
    }

    /// The unconfirmed deposits of an aggregate, whether each is a sample, and the change that deletes
    /// it.
    #[must_use]
    pub fn unconfirmed(&self, name: &Digest) -> Vec<(Entry, bool, Change)> {
        let read = |(key, value): (&Vec<u8>, &Vec<u8>)| {
            let (entry, sample): (Entry, bool) = postcard::from_bytes(value).ok()?;
            Some((entry, sample, Change { key: key.clone(), value: None }))
        };
        self.under(about(UNCONFIRMED, name)).filter_map(read).collect()
    }

    /// Whether it keeps anything to check against an aggregate's closing.
    #[must_use]
    pub fn awaits(&self, name: &Digest) -> bool {
        [RECEIPTS, UNCONFIRMED].iter().any(|kind| self.under(about(*kind, name)).next().is_some())
    }

    /// How many contributions it keeps to check against an aggregate's closing.
    #[must_use]
    pub fn count(&self, name: &Digest) -> u64 {
        let kinds = [RECEIPTS, UNCONFIRMED].iter();
        kinds.map(|kind| self.under(about(*kind, name)).count() as u64).sum()
    }

    fn under(&self, prefix: Vec<u8>) -> impl Iterator<Item = (&Vec<u8>, &Vec<u8>)> {
        let from = self.records.range(prefix.clone()..);
        from.take_while(move |(key, _)| key.starts_with(&prefix))
    }
}
