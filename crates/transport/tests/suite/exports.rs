//! An export is everything at one moment, while others write, and becomes the same store again.

use crate::world::*;
use alpheus_transport::local::{self, Options};
use alpheus_transport::{Error, ExportEntry, Store};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn exported(store: &dyn Store) -> Vec<ExportEntry> {
    let mut entries = Vec::new();
    store
        .export(&mut |entry| {
            entries.push(entry);
            true
        })
        .unwrap();
    entries
}

fn imported(entries: Vec<ExportEntry>, path: &Path) -> Arc<dyn Store> {
    let mut entries = entries.into_iter();
    local::import::<Error>(path, || Ok(entries.next())).unwrap();
    local::open(path, &Options::default()).unwrap()
}

/// What a batch of the writer changes: one record, and its number as state.
fn pair(store: &dyn Store, number: u32) {
    let partition = topic("t").partition(0);
    let mut batch = one(&partition, &number.to_be_bytes());
    batch.put(&space(), "last", number.to_be_bytes().to_vec()).unwrap();
    store.commit(batch).unwrap();
}

/// Batches that are written while copies are made.
const MAX_BATCHES: u32 = 2_000;

/// Both parts of the last batch are there, or neither.
fn whole(world: &World) {
    let store = world.open();
    let partition = topic("t").partition(0);
    store.ensure_topic(&partition.topic, 1).unwrap();
    store.ensure_space(&space()).unwrap();
    pair(&*store, 1);
    let (over, writer) = (Arc::new(AtomicBool::new(false)), Arc::clone(&store));
    let ends = Arc::clone(&over);
    let writing = std::thread::spawn(move || {
        let mut number = 2;
        // Memory is so fast that the copies would grow without end.
        while !ends.load(Ordering::Relaxed) && number < MAX_BATCHES {
            pair(&*writer, number);
            number += 1;
        }
    });
    let folder = tempfile::tempdir().unwrap();
    for round in 0..8 {
        let copy = imported(exported(&*store), &folder.path().join(round.to_string()));
        let last = copy.get(&space(), b"last").unwrap().unwrap();
        let records = values(&*copy, &partition);
        assert_eq!(records.last().unwrap(), &last, "round {round}");
        assert_eq!(records.len(), u32::from_be_bytes(last[..].try_into().unwrap()) as usize);
        // The copy is a store like any other.
        pair(&*copy, 7);
        assert_eq!(values(&*copy, &partition).len(), records.len() + 1);
    }
    over.store(true, Ordering::Relaxed);
    writing.join().unwrap();
}

#[test]
fn an_export_of_a_local_store_holds_whole_batches() {
    whole(&World::local());
}

#[test]
fn an_export_of_a_simulated_store_holds_whole_batches() {
    whole(&World::simulated());
}

#[test]
fn an_import_ends_where_its_source_ends_and_takes_no_place_that_is_taken() {
    let (world, folder) = (World::local(), tempfile::tempdir().unwrap());
    let store = world.open();
    store.ensure_topic(&topic("t"), 1).unwrap();
    let mut entries = exported(&*store).into_iter();
    let taken = folder.path().join("taken");
    local::import::<Error>(&taken, || Ok(entries.next())).unwrap();
    let again = local::import::<Error>(&taken, || Ok(None));
    assert!(matches!(again, Err(Error::NotAStore { .. })));
    let broken = local::import::<Error>(&folder.path().join("broken"), || Err(Error::Crashed));
    assert!(matches!(broken, Err(Error::Crashed)));
    // A caller may stop.
    let mut count = 0;
    store
        .export(&mut |_| {
            count += 1;
            false
        })
        .unwrap();
    assert_eq!(count, 1);
}

/// Entries that are no store are noticed at the import.
#[test]
fn an_import_that_lacks_a_part_is_refused() {
    let (world, folder) = (World::local(), tempfile::tempdir().unwrap());
    let store = world.open();
    store.ensure_topic(&topic("t"), 1).unwrap();
    let mut entries = exported(&*store);
    entries.iter_mut().for_each(|entry| entry.value = vec![1].into());
    let mut entries = entries.into_iter();
    let refused = local::import::<Error>(&folder.path().join("store"), || Ok(entries.next()));
    assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
}
