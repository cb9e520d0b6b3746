//! A client's ledger: durable, and in memory as it is durable.

use crate::failure::{Blame, Category, Failure};
use crate::pass::ledger::{FencedLedger, Found};
use alpheus_accountable_statistics::client::Records;
use alpheus_accountable_statistics::configuration::Pinned;
use alpheus_accountable_statistics::endorsed::Endorsed;
use alpheus_accountable_statistics::messages::Entry;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, Ledger, LedgerError, Log, put};
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
/// The format of its records. One that cannot be read any more, or is read otherwise, gets the
/// next number.
const FORMAT: u32 = 1;
/// Receipts of a quorum for an upload; the client's own records begin with other letters.
const RECEIPTS: u8 = b'r';
/// A deposit without receipts of a quorum, which may have been certified all the same.
const DOUBTFUL: u8 = b'm';
/// How many lines of a file were given, and which file had a name.
const LINES: u8 = b'l';
const NAME: u8 = b'n';

/// The ledger.
pub struct Book {
    durable: FencedLedger,
    records: Records,
}

/// The state is an old copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the state is older than its fence, so what this client has shown may be forgotten and would be shown twice; take another folder when the next period of credentials begins"
)]
struct OldCopy;

impl Ledger for Book {
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

/// A file of samples: its name, and what makes it this file under any name.
pub struct Mark {
    name: Vec<u8>,
    file: Vec<u8>,
}

impl Mark {
    /// Of an open file at a path.
    ///
    /// # Errors
    /// If nothing can be said of it.
    pub fn of(path: &Path, open: &File) -> io::Result<Self> {
        let about = open.metadata()?;
        // A number of a file that is gone is another's after a while, but for when it was made.
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

impl Book {
    /// Opens it.
    ///
    /// # Errors
    /// If the store cannot be read, or is an old copy.
    pub fn open(store: Arc<dyn Store>, fence: &Path) -> Result<Self, Failure> {
        let found = FencedLedger::open_spaces(store, fence, None, SPACES)?;
        let found = found.in_format(FORMAT).blame(Category::Input)?;
        if found.since_it_began() == Log::Doubtful {
            return Err(OldCopy).blame(Category::Input);
        }
        let Found { ledger, records, .. } = found;
        Ok(Self { durable: ledger, records: records.into_iter().collect() })
    }

    /// All of it.
    #[must_use]
    pub fn records(&self) -> Records {
        self.records.clone()
    }

    /// How many lines of a file were given; none if its name was another file's, whose were.
    #[must_use]
    pub fn lines(&self, of: &Mark) -> Option<u64> {
        if self.records.get(&of.name()).is_some_and(|known| *known != of.file) {
            return None;
        }
        let bytes = self.records.get(&of.lines()).and_then(|value| value.first_chunk());
        Some(bytes.map_or(0, |bytes| u64::from_be_bytes(*bytes)))
    }

    /// That so many were.
    #[must_use]
    pub fn given(of: &Mark, many: u64) -> Vec<Change> {
        vec![put(of.name(), of.file.clone()), put(of.lines(), many.to_be_bytes().to_vec())]
    }

    /// Keeps the receipts of an upload.
    #[must_use]
    pub fn keep(entry: &Entry, certificate: &Endorsed<Entry>) -> Vec<Change> {
        let value = postcard::to_allocvec(certificate).unwrap_or_default();
        vec![put(of_slot(RECEIPTS, entry), value)]
    }

    /// The entries of an aggregate for which there are receipts, and what forgets them.
    #[must_use]
    pub fn kept(&self, name: &Digest, pinned: &Pinned) -> Vec<(Entry, Change)> {
        let read = |(key, value): (&Vec<u8>, &Vec<u8>)| {
            let certificate: Endorsed<Entry> = postcard::from_bytes(value).ok()?;
            let entry = certificate.open(pinned, pinned.quorum()).ok()?.into_inner();
            Some((entry, Change { key: key.clone(), value: None }))
        };
        self.under(about(RECEIPTS, name)).filter_map(read).collect()
    }

    /// Keeps a deposit, a sample's or a dummy's, of which only the closing will show whether it
    /// counts.
    #[must_use]
    pub fn doubt(entry: &Entry, sample: bool) -> Change {
        let value = postcard::to_allocvec(&(entry, sample)).unwrap_or_default();
        put(of_slot(DOUBTFUL, entry), value)
    }

    /// These deposits of an aggregate, whether each is a sample's, and what forgets it.
    #[must_use]
    pub fn doubtful(&self, name: &Digest) -> Vec<(Entry, bool, Change)> {
        let read = |(key, value): (&Vec<u8>, &Vec<u8>)| {
            let (entry, sample): (Entry, bool) = postcard::from_bytes(value).ok()?;
            Some((entry, sample, Change { key: key.clone(), value: None }))
        };
        self.under(about(DOUBTFUL, name)).filter_map(read).collect()
    }

    /// Whether it keeps anything to look for in an aggregate's closing.
    #[must_use]
    pub fn awaits(&self, name: &Digest) -> bool {
        [RECEIPTS, DOUBTFUL].iter().any(|kind| self.under(about(*kind, name)).next().is_some())
    }

    fn under(&self, prefix: Vec<u8>) -> impl Iterator<Item = (&Vec<u8>, &Vec<u8>)> {
        let from = self.records.range(prefix.clone()..);
        from.take_while(move |(key, _)| key.starts_with(&prefix))
    }
}
