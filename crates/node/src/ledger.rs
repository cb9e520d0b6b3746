//! Fenced ledgers: a space of a durable store, and a fence beside it that exposes an older
//! copy.

pub mod store;

use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::fence::{Fence, FenceError, FenceFile};
use alpheus_crypto::ledger::{Change, Ledger, LedgerError, StateOrigin};
use alpheus_time::Timestamp;
use alpheus_transport::{Batch, Error, NewRecord, Space, Store, Topic};
use bytes::Bytes;
use rand_core::Rng;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

/// The key of the ledger's sequence number, beside the records.
const SEQUENCE: &[u8] = b"sequence";
/// The key of the shard that owns the ledger.
const PLACE: &[u8] = b"place";
/// The key of the records' format, if the owner stores one.
const FORMAT: &[u8] = b"format";
/// The fence file has one entry.
const ENTRY: [u8; 32] = [0; 32];

/// Which of a role's processes a ledger belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardIndex {
    /// From 0.
    pub index: u64,
    /// How many there are, at least one.
    pub count: u64,
}

/// A durable ledger with one writer, fenced.
pub struct FencedLedger {
    store: Arc<dyn Store>,
    records: Space,
    fenced: Space,
    fence: FenceFile,
    sequence: u64,
    /// Drawn at each start.
    history: u64,
    /// The shard that owns it from the next commit on, if that changes.
    moves_to: Option<Vec<u8>>,
    /// The format to store in the next commit.
    notes: Option<u32>,
    failed: bool,
}

/// The state has the format of another build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the state has format {found}, but this build reads format {reads}: let the build that wrote it finish its work, or use an empty state"
)]
pub struct FormatError {
    /// The state's format; 0 if none is stored, as by the first builds.
    found: u32,
    /// This build's format.
    reads: u32,
}

/// An opened ledger, its records, and their origin.
pub struct OpenedLedger {
    /// The ledger.
    pub ledger: FencedLedger,
    /// Its records.
    pub records: Vec<(Vec<u8>, Vec<u8>)>,
    /// Whether nothing was ever committed.
    pub untouched: bool,
    /// Whether the fence says that the first commit was about to be made.
    begun: bool,
    /// The format of the records; none if it is empty.
    format: Option<u32>,
    /// Intact if the last commit is the one that the fence has seen, or directly follows it, and
    /// shard index and count are unchanged.
    pub origin: StateOrigin,
}

impl OpenedLedger {
    /// Whether its owner starts for the first time: nothing exists, or it was killed around its first
    /// commit, before anything was sent. A first commit without a fence is no beginning: it may come
    /// from a backup of the first day.
    #[must_use]
    pub fn begins(&self) -> bool {
        self.untouched || self.begun
    }

    /// Checks the records' format, which is stored with the first commit.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn in_format(mut self, reads: u32) -> Result<Self, FormatError> {
        match self.format {
            Some(found) if found != reads => return Err(FormatError { found, reads }),
            Some(_) => {}
            None => self.ledger.notes = Some(reads),
        }
        Ok(self)
    }

    /// The origin, for an owner whose first commit holds its complete initial state.
    #[must_use]
    pub fn since_it_began(&self) -> StateOrigin {
        if self.begins() { StateOrigin::New } else { self.origin }
    }
}

impl FencedLedger {
    /// Opens the ledger in a store, with the fence at `fence`, for a shard if given. Records
    /// of another shard, or of another number of shards, are not trusted. Only the first
    /// commit, which removes them, makes the ledger this shard's.
    ///
    /// # Errors
    /// The store or the fence cannot be read.
    pub fn open(
        store: Arc<dyn Store>,
        fence: &Path,
        shard: Option<ShardIndex>,
    ) -> Result<OpenedLedger, Failure> {
        Self::open_spaces(store, fence, shard, ["pass", "pass-fence"])
    }

    /// The same with other spaces of the store, for records and for the sequence number.
    ///
    /// # Errors
    /// As [`FencedLedger::open`].
    pub fn open_spaces(
        store: Arc<dyn Store>,
        fence: &Path,
        shard: Option<ShardIndex>,
        spaces: [&str; 2],
    ) -> Result<OpenedLedger, Failure> {
        let fence = FenceFile::hold(fence).blame(Category::Input)?;
        let history = entropy::rng()?.next_u64();
        Self::read(store, (fence, history), shard, spaces).blame(Category::Io)
    }

    fn read(
        store: Arc<dyn Store>,
        (fence, history): (FenceFile, u64),
        shard: Option<ShardIndex>,
        spaces: [&str; 2],
    ) -> Result<OpenedLedger, Error> {
        let (records, fenced) = (Space::new(spaces[0])?, Space::new(spaces[1])?);
        store.ensure_space(&records)?;
        store.ensure_space(&fenced)?;
        let stored = store.get(&fenced, SEQUENCE)?.and_then(|bytes| Commit::read(&bytes));
        let fence_has = fence.get(&ENTRY).map(Commit::of);
        let held = stored.map(|(last, _)| last.sequence);
        let seen = fence_has.map(|commit| commit.sequence);
        let place = shard.map(ShardIndex::to_bytes).unwrap_or_default();
        let was = store.get(&fenced, PLACE)?;
        let same = was.as_deref().unwrap_or_default() == place.as_slice();
        let origin = match (stored, fence_has) {
            // The fence has seen the last commit, or the process ended before the fence could.
            (Some((last, before)), Some(seen)) if same && [last, before].contains(&seen) => {
                StateOrigin::Intact
            }
            _ => StateOrigin::Restored,
        };
        let found = scan_all(store.as_ref(), &records, b"")?;
        let found: Vec<_> = found.into_iter().map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
        let before_the_first = seen.is_none_or(|sequence| sequence == 0);
        let untouched = held.is_none() && before_the_first && found.is_empty();
        let noted = store.get(&fenced, FORMAT)?;
        let noted = noted.and_then(|bytes| bytes.as_ref().try_into().ok().map(u32::from_be_bytes));
        let empty = held.is_none() && found.is_empty();
        let format = (!empty).then_some(noted.unwrap_or(0));
        let sequence = held.unwrap_or(0).max(seen.unwrap_or(0));
        let moves_to = (!same).then_some(place);
        let (notes, failed) = (None, false);
        let ledger =
            Self { store, records, fenced, fence, sequence, history, moves_to, notes, failed };
        let begun = seen == Some(0) && origin == StateOrigin::Intact;
        Ok(OpenedLedger { ledger, records: found, untouched, begun, format, origin })
    }

    /// Reads its records beside the writer.
    #[must_use]
    pub fn records(&self) -> Records {
        Records(Arc::clone(&self.store), self.records.clone())
    }

    /// Creates a log beside the records, unless it exists.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn ensure_log(&self, log: &Topic) -> Result<(), Failure> {
        self.store.ensure_topic(log, 1).blame(Category::Io)
    }

    /// The ledger with lines for a log, which are appended in the same commit as its next
    /// change.
    pub fn with<'a>(&'a mut self, log: &'a Topic, lines: Vec<LogRecord>) -> AppendingLedger<'a> {
        AppendingLedger { ledger: self, log, lines }
    }

    fn commit_with(
        &mut self,
        changes: &[Change],
        lines: Option<(&Topic, &[LogRecord])>,
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
        lines: Option<(&Topic, &[LogRecord])>,
    ) -> Result<(), WriteError> {
        let mut batch = Batch::new();
        if let Some((log, lines)) = lines {
            for LogRecord { key, value, timestamp } in lines {
                let record = NewRecord { key, value, timestamp: *timestamp, headers: &[] };
                batch.append(&log.partition(0), &record)?;
            }
        }
        store::stage(&mut batch, &self.records, changes)?;
        // The fence is there before the first commit, which without it could be a copy's.
        if self.sequence == 0 && self.fence.get(&ENTRY).is_none() {
            self.fence.advance([(ENTRY, Commit::default().to_fence())])?;
        }
        self.sequence += 1;
        let commit = Commit { sequence: self.sequence, history: self.history };
        let seen = self.fence.get(&ENTRY).map(Commit::of).unwrap_or_default();
        batch.put(&self.fenced, SEQUENCE, commit.after(seen))?;
        if let Some(place) = self.moves_to.take() {
            batch.put(&self.fenced, PLACE, place)?;
        }
        if let Some(format) = self.notes.take() {
            batch.put(&self.fenced, FORMAT, format.to_be_bytes().to_vec())?;
        }
        self.store.commit(batch)?;
        Ok(self.fence.advance([(ENTRY, commit.to_fence())])?)
    }
}

/// A commit. Two histories that went on from one copy can be equally long, but each start has a number of
/// its own.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Commit {
    sequence: u64,
    history: u64,
}

impl Commit {
    /// What a ledger stores with a commit: the commit itself, and the last one that the fence had seen.
    fn after(self, seen: Self) -> Vec<u8> {
        let numbers = [self.sequence, self.history, seen.sequence, seen.history];
        numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
    }

    /// Reads the commit and the one that the fence had seen.
    fn read(bytes: &[u8]) -> Option<(Self, Self)> {
        let (numbers, []) = bytes.as_chunks::<8>() else { return None };
        let [sequence, history, seen, before] = *<&[[u8; 8]; 4]>::try_from(numbers).ok()?;
        let commit = |sequence, history| Self {
            sequence: u64::from_be_bytes(sequence),
            history: u64::from_be_bytes(history),
        };
        Some((commit(sequence, history), commit(seen, before)))
    }

    /// A ledger has no clock of its own.
    fn to_fence(self) -> Fence {
        let Self { sequence, history } = self;
        Fence { sequence, start: history, clock: Timestamp(0), restored: None }
    }

    fn of(fence: Fence) -> Self {
        Self { sequence: fence.sequence, history: fence.start }
    }
}

/// Reads durable records beside the ledger's one writer. Clones share it.
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

impl ShardIndex {
    fn to_bytes(self) -> Vec<u8> {
        [self.index.to_be_bytes(), self.count.to_be_bytes()].concat()
    }
}

/// Every key of a space that starts with `prefix`, with its value.
///
/// # Errors
/// The store's error.
pub fn scan_all(
    store: &dyn Store,
    space: &Space,
    prefix: &[u8],
) -> Result<Vec<(Bytes, Bytes)>, Error> {
    const PAGE: usize = 1000;
    let mut all: Vec<(Bytes, Bytes)> = Vec::new();
    loop {
        let last = all.last().map(|(key, _)| key.clone());
        let from = last.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let page = store.scan(space, prefix, from, PAGE)?;
        let full = page.len() == PAGE;
        all.extend(page);
        if !full {
            return Ok(all);
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum WriteError {
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
pub struct LogRecord {
    /// What it is about.
    pub key: Vec<u8>,
    /// What it says.
    pub value: Vec<u8>,
    /// Microseconds since 1970.
    pub timestamp: u64,
}

/// A ledger whose commit appends lines to a log too.
pub struct AppendingLedger<'a> {
    ledger: &'a mut FencedLedger,
    log: &'a Topic,
    lines: Vec<LogRecord>,
}

impl Ledger for AppendingLedger<'_> {
    fn commit(&mut self, changes: &[Change]) -> Result<(), LedgerError> {
        let lines = std::mem::take(&mut self.lines);
        self.ledger.commit_with(changes, Some((self.log, &lines)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_transport::local;
    use alpheus_transport::simulation::Machine;

    /// A shard is killed while it replaces another: the untrusted records still exist and
    /// are still not trusted.
    #[test]
    fn a_ledger_stays_another_shards_until_the_first_commit() {
        let folder = tempfile::tempdir().unwrap();
        let fence = folder.path().join("fence");
        let store = Machine::new().open().unwrap();
        let (first, second) =
            (ShardIndex { index: 0, count: 2 }, ShardIndex { index: 0, count: 3 });
        let open = |shard| FencedLedger::open(Arc::clone(&store), &fence, Some(shard)).unwrap();
        let change = |value: Option<&[u8]>| {
            [Change { key: b"tag".to_vec(), value: value.map(|v| v.to_vec().into()) }]
        };
        let mut found = open(first);
        assert!(found.untouched && found.origin == StateOrigin::Restored);
        found.ledger.commit(&change(Some(b"spent"))).unwrap();
        assert!(open(first).origin == StateOrigin::Intact);
        for _ in 0..2 {
            // Opened, and killed before anything was written.
            let found = open(second);
            assert!(found.origin == StateOrigin::Restored && found.records.len() == 1);
        }
        assert!(open(first).origin == StateOrigin::Intact, "nothing has happened to it");
        open(second).ledger.commit(&change(None)).unwrap();
        assert!(
            open(second).origin == StateOrigin::Intact
                && open(first).origin == StateOrigin::Restored
        );
    }

    /// A copy is made between a commit and the fence, and an older one continues in its place, equally far. When
    /// the first is put back, the fence has seen another history.
    #[test]
    fn a_history_of_equal_length_is_not_taken_for_the_latest() {
        let folder = tempfile::tempdir().unwrap();
        let (fence, kept) = (folder.path().join("fence"), folder.path().join("kept"));
        let put = |value: u8| [Change { key: b"k".to_vec(), value: Some(vec![value].into()) }];
        let open = |name: &str| {
            let store = local::open(&folder.path().join(name), &local::Options::default());
            FencedLedger::open(store.unwrap(), &fence, None).unwrap()
        };
        let copy = |from: &str, to: &str| {
            let (from, to) = (folder.path().join(from), folder.path().join(to));
            let status = std::process::Command::new("cp").arg("-r").args([from, to]).status();
            assert!(status.unwrap().success());
        };
        open("store").ledger.commit(&put(1)).unwrap();
        copy("store", "older");
        std::fs::copy(&fence, &kept).unwrap();
        open("store").ledger.commit(&put(2)).unwrap();
        // The machine stopped before the fence had moved: what was committed is the latest.
        std::fs::copy(&kept, &fence).unwrap();
        copy("store", "unfenced");
        assert!(open("unfenced").origin == StateOrigin::Intact);
        // The older copy is one commit behind, and the fence cannot know of that. It goes on.
        let mut other = open("older");
        assert!(other.origin == StateOrigin::Intact);
        other.ledger.commit(&put(3)).unwrap();
        drop(other);
        assert!(open("older").origin == StateOrigin::Intact);
        assert!(open("unfenced").origin == StateOrigin::Restored);
    }

    /// A state of another build is not mistaken for a corrupted one.
    #[test]
    fn a_state_of_another_format_is_refused_with_both_formats() {
        let folder = tempfile::tempdir().unwrap();
        let fence = folder.path().join("fence");
        let change = [Change { key: b"begun".to_vec(), value: Some(vec![1].into()) }];
        let store = Machine::new().open().unwrap();
        let open = || FencedLedger::open(Arc::clone(&store), &fence, None).unwrap();
        open().in_format(2).unwrap().ledger.commit(&change).unwrap();
        assert!(open().in_format(2).is_ok());
        assert_eq!(open().in_format(3).err(), Some(FormatError { found: 2, reads: 3 }));
        // A fence alone has no format: the state is lost, which is another matter.
        let lost = Machine::new().open().unwrap();
        let found = FencedLedger::open(lost, &fence, None).unwrap().in_format(3).unwrap();
        assert!(!found.begins() && found.origin == StateOrigin::Restored);
        // Builds that noted none.
        let store = Machine::new().open().unwrap();
        let open =
            || FencedLedger::open(Arc::clone(&store), &folder.path().join("f"), None).unwrap();
        open().ledger.commit(&change).unwrap();
        let refused = open().in_format(2).err().unwrap();
        assert_eq!(refused, FormatError { found: 0, reads: 2 });
        assert!(refused.to_string().contains("format 0"));
    }

    /// An owner killed around its first commit has sent nothing.
    #[test]
    fn an_owner_killed_at_the_first_commit_starts_again() {
        let folder = tempfile::tempdir().unwrap();
        let fence = folder.path().join("fence");
        let store = Machine::new().open().unwrap();
        let open = || FencedLedger::open(Arc::clone(&store), &fence, None).unwrap();
        let change = [Change { key: b"begun".to_vec(), value: Some(vec![1].into()) }];
        assert!(open().begins());
        // Killed before the commit: the fence alone is there.
        let about_to = [(ENTRY, Commit::default().to_fence())];
        FenceFile::load(&fence).unwrap().advance(about_to).unwrap();
        assert!(open().begins() && open().untouched);
        let before = std::fs::read(&fence).unwrap();
        open().ledger.commit(&change).unwrap();
        assert!(!open().begins() && open().origin == StateOrigin::Intact);
        // Killed after it.
        std::fs::write(&fence, before).unwrap();
        assert!(open().begins() && open().origin == StateOrigin::Intact);
    }

    /// A backup of the first day holds the first commit alone, and comes back without a fence. Requests served
    /// since would be served again.
    #[test]
    fn a_first_commit_without_its_fence_is_no_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let fence = folder.path().join("fence");
        let store = Machine::new().open().unwrap();
        let open = || FencedLedger::open(Arc::clone(&store), &fence, None).unwrap();
        let change = [Change { key: b"begun".to_vec(), value: Some(vec![1].into()) }];
        open().ledger.commit(&change).unwrap();
        std::fs::remove_file(&fence).unwrap();
        assert!(!open().begins() && open().since_it_began() == StateOrigin::Restored);
        open().ledger.commit(&change).unwrap();
        std::fs::remove_file(&fence).unwrap();
        assert!(!open().begins() && open().origin == StateOrigin::Restored);
    }
}
