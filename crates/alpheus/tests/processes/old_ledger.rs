//! The private store is restored from an older copy, and the service pretends
//! to have forgotten what it was given: nothing that had closed before the start
//! is released again, the run says why, and no pad comes twice.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::copy_folder;
use crate::common::embedded_replay::Scene;
use crate::common::recording::{Recording, Result as Row, WINDOW, check};
use alpheus_encrypted_stream::ledger::{Record, StampedRecord};
use alpheus_node::ledger::scan_all;
use alpheus_stream_runtime::embedded_deployment::{Controllers, Stores};
use alpheus_stream_runtime::storage::{Topics, reached};
use alpheus_transport::{Batch, Limits, Offset, Store, local};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

const STREAMS: u64 = 3;
const WINDOWS: u64 = 40;

/// Frames by stream, session and time.
type Frames = BTreeMap<(Bytes, [u8; 8], [u8; 8]), Bytes>;

struct Home {
    folder: tempfile::TempDir,
    scene: Scene,
    recording: Recording,
    lives: u64,
}

impl Home {
    fn new(controllers: Controllers) -> Self {
        let recording = Recording::made(STREAMS, WINDOWS);
        let scene = Scene::new(&recording, controllers);
        Self { folder: tempfile::tempdir().unwrap(), scene, recording, lives: 0 }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn store(&self, name: &str) -> Arc<dyn Store> {
        local::open(&self.path(name), &local::Options::default()).unwrap()
    }

    /// One life, of so many windows or to the end; all results so far.
    fn live(&mut self, windows: Option<u64>) -> Vec<Row> {
        let stores = Stores {
            service: self.store("service"),
            private: self.store("private"),
            fence: self.path("fence"),
        };
        self.lives += 1;
        let mut life = self.scene.wake(stores, self.lives).unwrap();
        let mut left = windows.unwrap_or(u64::MAX);
        let chunk = || {
            left = left.checked_sub(1)?;
            Some(1)
        };
        assert_eq!(life.feed(chunk).unwrap(), windows.is_none());
        life.results()
    }

    fn copy(&self, from: &str, to: &str) {
        let to = self.path(to);
        if to.exists() {
            std::fs::remove_dir_all(&to).unwrap();
        }
        copy_folder(&self.path(from), &to);
    }

    /// Seconds up to which the replay had come.
    fn clock(&self) -> u64 {
        let reached = reached(self.store("service").as_ref(), &Topics::new(1).unwrap());
        reached.unwrap().unwrap().0 / 1_000_000
    }

    /// The service's memory of windows and sums, but not of plans and events.
    fn forget(&self) {
        let (store, space) = (self.store("service"), Topics::new(1).unwrap().service);
        let mut batch = Batch::new();
        for (key, _) in scan_all(store.as_ref(), &space, b"").unwrap() {
            if !key.starts_with(b"announcement/") {
                batch.delete(&space, key.to_vec()).unwrap();
            }
        }
        store.commit(batch).unwrap();
    }

    /// Controllers and windows for which the ledgers hold a token.
    fn tokens(&self) -> BTreeSet<(Vec<u8>, u64)> {
        let (store, space) = (self.store("private"), Topics::new(1).unwrap().ledger);
        let records = scan_all(store.as_ref(), &space, b"c").unwrap();
        let spent = |(key, value): &(Bytes, Bytes)| match StampedRecord::read(value).unwrap().record
        {
            Record::Spent(spent) => Some((key[..33].to_vec(), spent.window.start.0 / 1_000_000)),
            _ => None,
        };
        records.iter().filter_map(spent).collect()
    }

    /// Adds all frames of the log; a pad that comes twice is reported with its position.
    fn gather(&self, frames: &mut Frames) {
        let (store, topics) = (self.store("service"), Topics::new(1).unwrap());
        for partition in 0..store.partitions(&topics.events).unwrap().unwrap() {
            let (partition, mut from) = (topics.events.partition(partition), Offset(0));
            loop {
                let fetched = store.read(&partition, from, Limits::default()).unwrap();
                if fetched.next_offset() == from {
                    break;
                }
                from = fetched.next_offset();
                for record in fetched {
                    let number = |at: usize| record.value[at..at + 8].try_into().unwrap();
                    let place = (record.key.clone(), number(1), number(9));
                    let known = frames.entry(place).or_insert_with(|| record.value.clone());
                    assert_eq!(*known, record.value, "two frames under one pad");
                }
            }
        }
    }
}

/// Rows of windows that had closed before `clock`, and the others.
fn before(rows: &[Row], clock: u64) -> (Vec<Row>, Vec<Row>) {
    rows.iter().cloned().partition(|row| row.start + WINDOW <= clock)
}

/// An old ledger under a service that has forgotten everything, so that it asks
/// for all windows again.
fn asked_again(controllers: Controllers, disturb: impl Fn(&Home)) {
    let mut home = Home::new(controllers);
    home.live(Some(8));
    home.copy("private", "old");
    let copied = home.clock();
    let first = home.live(Some(16));
    assert!(first.iter().filter(|row| row.status == "ok").count() > 20);
    let spent = home.tokens();
    home.copy("old", "private");
    home.forget();
    disturb(&home);
    let (clock, known) = (home.clock(), home.tokens());
    assert!(known.len() < spent.len(), "the copy is older");

    let all = home.live(None);
    // Sorted by window, the earlier result of each comes first.
    let mut again = all;
    for row in &first {
        let place = again.iter().position(|other| other == row).unwrap();
        again.remove(place);
    }
    let (closed, open) = before(&again, clock);
    // A window that the old ledger has as settled was published before, and needs no other row.
    let starts = |rows: &[Row]| rows.iter().map(|row| row.start).collect::<BTreeSet<u64>>();
    let (_, unsettled) = before(&first, copied);
    assert!(starts(&closed).is_superset(&starts(&unsettled)), "all others were asked for again");
    assert!(starts(&closed).is_subset(&starts(&first)) && closed.len() < first.len());
    for row in &closed {
        assert!(row.sum.is_none() && row.count.is_none() && row.status != "ok", "{row:?}");
    }
    let named = closed.iter().filter(|row| row.status.contains("counts as released"));
    assert!(named.count() >= 14, "the run says what it refuses: {closed:#?}");
    let fresh: Vec<_> = home.tokens().difference(&known).map(|(_, start)| *start).collect();
    assert!(fresh.iter().all(|start| start + WINDOW > clock), "tokens for {fresh:?}");
    assert!(!fresh.is_empty());
    // Life goes on: what had not closed is released as ever.
    let mut truth = home.recording.truth();
    truth.retain(|start, _| start + WINDOW > clock);
    assert!(check(&open, &truth, "after the restore").len() <= 1);
}

#[test]
fn a_fence_that_is_ahead_of_the_ledger_tells() {
    asked_again(Controllers::Count(1), |_| {});
    asked_again(Controllers::PerOwner, |_| {});
}

#[test]
fn without_a_fence_all_that_has_closed_counts_as_released() {
    let lose = |home: &Home| std::fs::remove_file(home.path("fence")).unwrap();
    asked_again(Controllers::Count(1), lose);
    asked_again(Controllers::PerOwner, lose);
}

/// Service and private store are both from the older copy: the devices send from
/// there again, and other readings at the same times.
#[test]
fn a_whole_state_restored_releases_nothing_twice_and_reuses_no_pad() {
    let mut home = Home::new(Controllers::PerOwner);
    let mut frames = Frames::new();
    home.live(Some(8));
    home.copy("private", "old");
    home.copy("service", "old-service");
    let first = home.live(Some(16));
    let clock = home.clock();
    home.gather(&mut frames);
    home.copy("old", "private");
    home.copy("old-service", "service");
    let (then, known) = (home.clock(), home.tokens());
    assert!(then < clock);
    home.recording.rows.iter_mut().for_each(|(_, _, value)| *value = -*value);
    home.scene = Scene::new(&home.recording, Controllers::PerOwner);

    let rows = home.live(None);
    home.gather(&mut frames);
    let (closed, _) = before(&rows, clock);
    assert_eq!(closed.len(), first.len());
    for row in closed.iter().filter(|row| row.start >= then) {
        assert!(row.sum.is_none() && row.status != "ok", "{row:?}");
        assert!(row.status.contains("counts as released"), "{row:?}");
    }
    let fresh: Vec<_> = home.tokens().difference(&known).map(|(_, start)| *start).collect();
    assert!(!fresh.is_empty() && fresh.iter().all(|start| start + WINDOW > clock), "{fresh:?}");
}

/// Keys without their ledger start nowhere.
#[test]
fn a_ledger_that_is_gone_is_not_recreated() {
    let mut home = Home::new(Controllers::PerOwner);
    home.live(Some(3));
    let (store, space) = (home.store("private"), Topics::new(1).unwrap().ledger);
    let mut batch = Batch::new();
    for (key, _) in scan_all(store.as_ref(), &space, b"").unwrap() {
        batch.delete(&space, key.to_vec()).unwrap();
    }
    store.commit(batch).unwrap();
    drop(store);
    let stores = Stores {
        service: home.store("service"),
        private: home.store("private"),
        fence: home.path("fence"),
    };
    let Err(error) = home.scene.wake(stores, 9) else { panic!("it started") };
    assert!(error.to_string().contains("ledger"), "{error}");
}
