//! The ledgers of issuer and verifier: a space of a durable store, and a fence
//! beside it that shows an older copy.

use crate::failure::{Blame, Category, Failure};
use crate::pass::verifier::engine::Place;
use crate::runtime::fence::{FenceError, FenceFile};
use crate::runtime::storage::scan_all;
use alpheus_anonymous_credential::ledger::{Change, Ledger, LedgerError, Log};
use alpheus_encrypted_stream::ledger::Fence;
use alpheus_policy::ids::ControllerId;
use alpheus_policy::time::Timestamp;
use alpheus_transport::{Batch, Error, NewRecord, Space, Store, Topic};
use std::path::Path;
use std::sync::Arc;

/// How far the ledger has come, beside the records.
const SEQUENCE: &[u8] = b"sequence";
/// Which shard's ledger it is.
const PLACE: &[u8] = b"place";
/// Which format its records have, if its owner notes it.
const FORMAT: &[u8] = b"format";
/// The fence file has one entry.
const ENTRY: ControllerId = ControllerId([0; 32]);

/// A durable ledger with one writer, fenced.
pub struct FencedLedger {
    store: Arc<dyn Store>,
    records: Space,
    fenced: Space,
    fence: FenceFile,
    sequence: u64,
    /// Whose it is from the next commit on, if it was another's or nobody's.
    moves_to: Option<Vec<u8>>,
    /// What format is noted in the next commit.
    notes: Option<u32>,
    failed: bool,
}

/// A state of another build, which reads its records otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the state has format {found}, and this build reads format {reads}: let the build that wrote it finish what it has begun, or give this one another, empty state"
)]
pub struct OtherFormat {
    /// The state's; 0 if none is noted, as by the first builds.
    found: u32,
    /// This build's.
    reads: u32,
}

/// What a ledger holds, and what is known of it.
pub struct Found {
    /// The ledger.
    pub ledger: FencedLedger,
    /// Its records.
    pub records: Vec<(Vec<u8>, Vec<u8>)>,
    /// Whether there was never anything, neither ledger nor fence.
    pub untouched: bool,
    /// Whether its fence is there: what was never fenced was never released, unless the
    /// fence is lost.
    pub fenced: bool,
    /// Whether nothing but the first commit is in it.
    first: bool,
    /// The format of what is in it; none if nothing is.
    format: Option<u32>,
    /// Whole if the fence has seen no more than the ledger holds, and it is the
    /// ledger of the same shard of as many as before.
    pub log: Log,
}

impl Found {
    /// Whether its owner begins: there was never anything, or it was killed between its first
    /// commit and the fence, so that nothing has left it yet.
    #[must_use]
    pub fn begins(&self) -> bool {
        self.untouched || (!self.fenced && self.first)
    }

    /// The same for an owner whose records have this format, which is noted with the first commit.
    ///
    /// # Errors
    /// [`OtherFormat`].
    pub fn in_format(mut self, reads: u32) -> Result<Self, OtherFormat> {
        match self.format {
            Some(found) if found != reads => return Err(OtherFormat { found, reads }),
            Some(_) => {}
            None => self.ledger.notes = Some(reads),
        }
        Ok(self)
    }

    /// What is known of it, for an owner whose first commit says all that it would begin with.
    #[must_use]
    pub fn since_it_began(&self) -> Log {
        if self.begins() { Log::New } else { self.log }
    }
}

impl FencedLedger {
    /// Opens the ledger in a store, with the fence at `fence`, as that shard's if it
    /// is a shard's. Another shard's records are not to be believed, nor are those
    /// of as many shards more or fewer: the first commit, which removes them,
    /// makes the ledger this shard's, and nothing else does.
    ///
    /// # Errors
    /// The store or the fence cannot be read.
    pub fn open(
        store: Arc<dyn Store>,
        fence: &Path,
        shard: Option<Place>,
    ) -> Result<Found, Failure> {
        Self::open_spaces(store, fence, shard, ["pass", "pass-fence"])
    }

    /// The same in other spaces of the store: for records, and for how far they go.
    ///
    /// # Errors
    /// As [`FencedLedger::open`].
    pub fn open_spaces(
        store: Arc<dyn Store>,
        fence: &Path,
        shard: Option<Place>,
        spaces: [&str; 2],
    ) -> Result<Found, Failure> {
        let fence = FenceFile::load(fence).blame(Category::Input)?;
        Self::read(store, fence, shard, spaces).blame(Category::Io)
    }

    fn read(
        store: Arc<dyn Store>,
        fence: FenceFile,
        shard: Option<Place>,
        spaces: [&str; 2],
    ) -> Result<Found, Error> {
        let (records, fenced) = (Space::new(spaces[0])?, Space::new(spaces[1])?);
        store.ensure_space(&records)?;
        store.ensure_space(&fenced)?;
        let held = store.get(&fenced, SEQUENCE)?;
        let held = held.and_then(|bytes| bytes.as_ref().try_into().ok().map(u64::from_be_bytes));
        let seen = fence.get(&ENTRY).map(|fence| fence.sequence);
        let place = shard.map(place).unwrap_or_default();
        let was = store.get(&fenced, PLACE)?;
        let same = was.as_deref().unwrap_or_default() == place.as_slice();
        let log = match (held, seen) {
            (Some(held), Some(seen)) if held >= seen && same => Log::Whole,
            _ => Log::Doubtful,
        };
        let found = scan_all(store.as_ref(), &records, b"")?;
        let found: Vec<_> = found.into_iter().map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
        let untouched = held.is_none() && seen.is_none() && found.is_empty();
        let noted = store.get(&fenced, FORMAT)?;
        let noted = noted.and_then(|bytes| bytes.as_ref().try_into().ok().map(u32::from_be_bytes));
        let empty = held.is_none() && found.is_empty();
        let format = (!empty).then_some(noted.unwrap_or(0));
        let sequence = held.unwrap_or(0).max(seen.unwrap_or(0));
        let moves_to = (!same).then_some(place);
        let (notes, failed) = (None, false);
        let ledger = Self { store, records, fenced, fence, sequence, moves_to, notes, failed };
        let (fenced, first) = (seen.is_some(), held == Some(1));
        Ok(Found { ledger, records: found, untouched, fenced, first, format, log })
    }

    /// Its records, for reading beside it.
    #[must_use]
    pub fn records(&self) -> Records {
        Records(Arc::clone(&self.store), self.records.clone())
    }

    /// Makes a log beside the records, unless it is there.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn ensure_log(&self, log: &Topic) -> Result<(), Failure> {
        self.store.ensure_topic(log, 1).blame(Category::Io)
    }

    /// The ledger with lines for a log: they are appended in the next commit, or neither is durable.
    pub fn with<'a>(&'a mut self, log: &'a Topic, lines: Vec<Logged>) -> Appending<'a> {
        Appending { ledger: self, log, lines }
    }

    fn commit_with(
        &mut self,
        changes: &[Change],
        lines: Option<(&Topic, &[Logged])>,
    ) -> Result<(), LedgerError> {
        if self.failed {
            return Err(LedgerError);
        }
        self.write(changes, lines).map_err(|error| {
            tracing::error!(%error, "the ledger could not be written");
            self.failed = true;
            LedgerError
        })
    }

    fn write(
        &mut self,
        changes: &[Change],
        lines: Option<(&Topic, &[Logged])>,
    ) -> Result<(), NotWritten> {
        let mut batch = Batch::new();
        if let Some((log, lines)) = lines {
            for Logged { key, value, timestamp } in lines {
                let record = NewRecord { key, value, timestamp: *timestamp, headers: &[] };
                batch.append(&log.partition(0), &record)?;
            }
        }
        for Change { key, value } in changes {
            match value {
                Some(value) => batch.put(&self.records, key.clone(), value.to_vec())?,
                None => batch.delete(&self.records, key.clone())?,
            }
        }
        self.sequence += 1;
        batch.put(&self.fenced, SEQUENCE, self.sequence.to_be_bytes().to_vec())?;
        if let Some(place) = self.moves_to.take() {
            batch.put(&self.fenced, PLACE, place)?;
        }
        if let Some(format) = self.notes.take() {
            batch.put(&self.fenced, FORMAT, format.to_be_bytes().to_vec())?;
        }
        self.store.commit(batch)?;
        let fence = Fence { sequence: self.sequence, clock: Timestamp(0), restored: None };
        Ok(self.fence.advance([(ENTRY, fence)])?)
    }
}

/// Reads records as they are durable, beside the ledger's one writer. Clones are one.
#[derive(Clone)]
pub struct Records(Arc<dyn Store>, Space);

impl Records {
    /// A record.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.0.get(&self.1, key)?.map(|value| value.to_vec()))
    }
}

fn place(Place { shard, of }: Place) -> Vec<u8> {
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
        self.commit_with(changes, None)
    }
}

/// A line of a log.
pub struct Logged {
    /// What it is about.
    pub key: Vec<u8>,
    /// What it says.
    pub value: Vec<u8>,
    /// Microseconds since 1970.
    pub timestamp: u64,
}

/// A ledger whose commit appends lines to a log too.
pub struct Appending<'a> {
    ledger: &'a mut FencedLedger,
    log: &'a Topic,
    lines: Vec<Logged>,
}

impl Ledger for Appending<'_> {
    fn commit(&mut self, changes: &[Change]) -> Result<(), LedgerError> {
        let lines = std::mem::take(&mut self.lines);
        self.ledger.commit_with(changes, Some((self.log, &lines)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_transport::simulated::Machine;

    /// A shard is killed while it takes another's place: the records that it may not
    /// believe are still there, and still not believed.
    #[test]
    fn a_ledger_is_another_shards_until_it_is_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let fence = folder.path().join("fence");
        let store = Machine::new().open().unwrap();
        let (first, second) = (Place { shard: 0, of: 2 }, Place { shard: 0, of: 3 });
        let open = |shard| FencedLedger::open(Arc::clone(&store), &fence, Some(shard)).unwrap();
        let change = |value: Option<&[u8]>| {
            [Change { key: b"tag".to_vec(), value: value.map(|v| v.to_vec().into()) }]
        };
        let mut found = open(first);
        assert!(found.untouched && found.log == Log::Doubtful);
        found.ledger.commit(&change(Some(b"spent"))).unwrap();
        assert!(open(first).log == Log::Whole);
        for _ in 0..2 {
            // Opened, and killed before anything was written.
            let found = open(second);
            assert!(found.log == Log::Doubtful && found.records.len() == 1);
        }
        assert!(open(first).log == Log::Whole, "nothing has happened to it");
        open(second).ledger.commit(&change(None)).unwrap();
        assert!(open(second).log == Log::Whole && open(first).log == Log::Doubtful);
    }

    /// A state that another build wrote is not taken for a damaged one.
    #[test]
    fn a_state_of_another_format_is_named_by_it() {
        let folder = tempfile::tempdir().unwrap();
        let fence = folder.path().join("fence");
        let change = [Change { key: b"begun".to_vec(), value: Some(vec![1].into()) }];
        let store = Machine::new().open().unwrap();
        let open = || FencedLedger::open(Arc::clone(&store), &fence, None).unwrap();
        open().in_format(2).unwrap().ledger.commit(&change).unwrap();
        assert!(open().in_format(2).is_ok());
        assert_eq!(open().in_format(3).err(), Some(OtherFormat { found: 2, reads: 3 }));
        // A fence alone has no format: the state is lost, which is another matter.
        let lost = Machine::new().open().unwrap();
        let found = FencedLedger::open(lost, &fence, None).unwrap().in_format(3).unwrap();
        assert!(!found.begins() && found.log == Log::Doubtful);
        // Builds that noted none.
        let store = Machine::new().open().unwrap();
        let open =
            || FencedLedger::open(Arc::clone(&store), &folder.path().join("f"), None).unwrap();
        open().ledger.commit(&change).unwrap();
        let refused = open().in_format(2).err().unwrap();
        assert_eq!(refused, OtherFormat { found: 0, reads: 2 });
        assert!(refused.to_string().contains("format 0"));
    }

    /// Killed between the first commit and the fence, its owner has shown nobody anything; one
    /// that has lost the fence later may have.
    #[test]
    fn who_was_killed_at_the_first_commit_begins_again() {
        let folder = tempfile::tempdir().unwrap();
        let fence = folder.path().join("fence");
        let store = Machine::new().open().unwrap();
        let open = || FencedLedger::open(Arc::clone(&store), &fence, None).unwrap();
        let change = [Change { key: b"begun".to_vec(), value: Some(vec![1].into()) }];
        assert!(open().begins());
        open().ledger.commit(&change).unwrap();
        assert!(!open().begins() && open().log == Log::Whole);
        std::fs::remove_file(&fence).unwrap();
        assert!(open().begins() && open().log == Log::Doubtful);
        open().ledger.commit(&change).unwrap();
        std::fs::remove_file(&fence).unwrap();
        assert!(!open().begins() && open().log == Log::Doubtful);
    }
}
