//! Journals that are torn after the last flush, as by a power failure, and files that are
//! damaged elsewhere.

use crate::world::*;
use alpheus_transport::local::{self, Options};
use alpheus_transport::{Error, Limits, Store};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const BATCHES: u64 = 6;

/// The directory of a running store, and the range of its last batch in the journal.
struct RunningStore {
    dir: tempfile::TempDir,
    journal: Vec<u8>,
    last_batch: std::ops::Range<usize>,
    _store: Arc<dyn Store>,
}

/// The written part of a journal. Its file is preallocated with zeros.
fn written_part(dir: &Path) -> Vec<u8> {
    let mut journal = fs::read(journal(dir)).unwrap();
    journal.truncate(journal.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1));
    journal
}

fn journal(dir: &Path) -> PathBuf {
    dir.join("store/data/0.jnl")
}

fn running() -> RunningStore {
    let dir = tempfile::tempdir().unwrap();
    let store = local::open(&dir.path().join("store"), &Options::default()).unwrap();
    let partition = topic("t").partition(0);
    store.ensure_topic(&partition.topic, 1).unwrap();
    let mut before = 0;
    for n in 0..BATCHES {
        before = written_part(dir.path()).len();
        store.commit(one(&partition, &[n.to_le_bytes().as_slice(), &[7; 6_000]].concat())).unwrap();
    }
    let journal = written_part(dir.path());
    RunningStore { last_batch: before..journal.len(), dir, journal, _store: store }
}

impl RunningStore {
    /// A copy of the directory after a crash, with this journal.
    fn crashed_with(&self, bytes: &[u8]) -> tempfile::TempDir {
        let copy = tempfile::tempdir().unwrap();
        copy_all(&self.dir.path().join("store"), &copy.path().join("store"));
        fs::write(journal(copy.path()), bytes).unwrap();
        copy
    }
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().unwrap().is_dir() {
            copy_all(&from, &to);
        } else {
            fs::copy(from, to).unwrap();
        }
    }
}

/// Checks that the store opens, holds `want` batches, accepts another, and keeps it.
fn check(dir: &Path, want: u64, how: &str) {
    let partition = topic("t").partition(0);
    for more in 0..2 {
        let store = local::open(&dir.join("store"), &Options::default());
        let store = store.unwrap_or_else(|error| panic!("{how}: {error}"));
        let read: Vec<_> =
            values(&*store, &partition).iter().map(|value| number(&value[..8])).collect();
        assert_eq!(read, (0..want + more).collect::<Vec<_>>(), "{how}");
        store.commit(one(&partition, &(want + more).to_le_bytes())).unwrap();
    }
}

#[test]
fn a_torn_last_batch_and_nothing_else_is_dropped_completely() {
    let running = running();
    let (start, end) = (running.last_batch.start, running.last_batch.end);
    check(running.crashed_with(&running.journal).path(), BATCHES, "intact");
    let mut seeded = SplitMix(7);
    let within = |seeded: &mut SplitMix| {
        start + usize::try_from(seeded.below((end - start) as u64)).unwrap()
    };
    for round in 0..12 {
        let cut = within(&mut seeded);
        let short = running.crashed_with(&running.journal[..cut]);
        check(short.path(), BATCHES - 1, &format!("cut at {cut}"));

        // Pages that never reached the disk, inside the batch or to its end.
        let mut hole = running.journal.clone();
        let from = within(&mut seeded);
        let to = if round % 2 == 0 { end } else { (from + 512).min(end) };
        hole[from..to].fill(0);
        hole.resize(end + 10_000, 0);
        let how = format!("zeros from {from} to {to} of {start}..{end}");
        check(running.crashed_with(&hole).path(), BATCHES - 1, &how);

        // Or damaged bytes reached it. The first 13 bytes are a header without a checksum.
        let mut garbled = running.journal.clone();
        let at = within(&mut seeded).max(start + 13);
        garbled[at] ^= 0x20;
        let how = format!("byte {at} of {start}..{end}");
        check(running.crashed_with(&garbled).path(), BATCHES - 1, &how);
    }
}

#[test]
fn damage_before_the_last_batch_is_refused_and_not_dropped() {
    let running = running();
    let mut seeded = SplitMix(3);
    for _ in 0..12 {
        let at = usize::try_from(seeded.below(running.last_batch.start as u64 - 20)).unwrap();
        let mut garbled = running.journal.clone();
        garbled[at..at + 20].fill(0x55);
        let copy = running.crashed_with(&garbled);
        let refused = local::open(&copy.path().join("store"), &Options::default());
        let Err(error) = refused else { panic!("opened in spite of 20 damaged bytes at {at}") };
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        assert!(error.to_string().contains("0.jnl") && error.help().is_some(), "{error}");
        assert_eq!(fs::read(journal(copy.path())).unwrap(), garbled, "the file is unchanged");
    }
}

/// The files of flushed records, largest first.
fn blobs(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut left = vec![dir.join("store/data")];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else if path.parent().is_some_and(|p| p.ends_with("blobs")) {
                files.push(path);
            }
        }
    }
    files.sort_by_key(|path| std::cmp::Reverse(fs::metadata(path).unwrap().len()));
    files
}

#[test]
fn a_read_of_damaged_records_reports_where_to_resume() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.memtable = 1 << 20;
    let partition = topic("t").partition(0);
    {
        let store = local::open(&dir.path().join("store"), &options).unwrap();
        store.ensure_topic(&partition.topic, 1).unwrap();
        for n in 0..100u64 {
            let value = [n.to_le_bytes().as_slice(), &vec![9; 50_000]].concat();
            store.commit(one(&partition, &value)).unwrap();
        }
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while blobs(dir.path()).is_empty() && std::time::Instant::now() < until {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
    let victim = blobs(dir.path()).into_iter().next().expect("records are flushed to files");
    let mut bytes = fs::read(&victim).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&victim, bytes).unwrap();

    let store = local::open(&dir.path().join("store"), &options).unwrap();
    let end = store.bounds(&partition).unwrap().end;
    let (mut from, mut good, mut bad) = (alpheus_transport::Offset(0), 0, 0);
    while from < end {
        match store.read(&partition, from, Limits { records: 1, bytes: 1 }) {
            Ok(fetched) => {
                from = fetched.next_offset();
                for record in fetched {
                    assert_eq!(number(&record.value[..8]), record.offset.0);
                    assert!(
                        record.value[8..].iter().all(|&b| b == 9),
                        "damaged bytes were returned"
                    );
                    good += 1;
                }
            }
            Err(Error::CorruptRecords { offset, resume_at, .. }) => {
                assert_eq!(offset, from);
                bad += 1;
                from = resume_at.unwrap_or(end);
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!((good, bad), (99, 1));
}
