//! Values that are larger than a batch may be.

use alpheus_transport::simulation::{Fault, Machine};
use alpheus_transport::{Batch, Bound, Error, LargeValue, LargeValueError, Space, Store};

/// What a batch may hold at most.
const LIMIT: usize = 64 << 10;
const PART: usize = 4 << 10;

fn space() -> Space {
    Space::new("service").unwrap()
}

fn bytes(seed: u8, length: usize) -> Vec<u8> {
    (0..length).map(|at| u8::try_from(at / 7 % 251).unwrap() ^ seed).collect()
}

fn read(store: &dyn Store) -> Option<Vec<u8>> {
    LargeValue::new(store, &space(), b"value").with_part_bytes(PART).read().unwrap()
}

/// Writes a value, with another key in the same batch.
fn write(store: &dyn Store, content: &[u8]) -> Result<(), Error> {
    let (space, mut batch) = (space(), Batch::new());
    LargeValue::new(store, &space, b"value").with_part_bytes(PART).write(
        &mut batch,
        |mut writer| {
            // In pieces that are no parts, as a serialiser gives them.
            content.chunks(5_000).for_each(|piece| writer.extend(piece.iter().copied()));
            Ok::<_, Error>(writer)
        },
    )?;
    batch.put(&space, b"beside".to_vec(), content.len().to_be_bytes().to_vec())?;
    store.commit(batch).map(drop)
}

fn keys(store: &dyn Store) -> usize {
    store.scan(&space(), b"", Bound::Unbounded, usize::MAX).unwrap().len()
}

#[test]
fn a_value_may_be_larger_than_a_batch() {
    let machine = Machine::new().with_max_staged(LIMIT);
    let store = machine.open().unwrap();
    store.ensure_space(&space()).unwrap();
    let large = bytes(1, 1 << 20);
    let mut batch = Batch::new();
    batch.put(&space(), b"whole".to_vec(), large.clone()).unwrap();
    assert!(matches!(store.commit(batch), Err(Error::BatchTooLarge { .. })));
    assert_eq!(read(store.as_ref()), None);
    write(store.as_ref(), &large).unwrap();
    assert_eq!(read(store.as_ref()).as_ref(), Some(&large));
    assert_eq!(keys(store.as_ref()), 2 + (1 << 20) / PART);
    // Nothing of it stays when another one follows, however short.
    for content in [bytes(2, PART + 1), bytes(3, 0), bytes(4, 3 * PART)] {
        write(store.as_ref(), &content).unwrap();
        assert_eq!(read(store.as_ref()).as_ref(), Some(&content));
        assert_eq!(keys(store.as_ref()), 2 + content.len().div_ceil(PART));
    }
}

/// The machine stops at each write in turn, with more or less of what was not flushed.
#[test]
fn a_write_that_is_cut_off_leaves_the_value_before_it_whole() {
    let (before, after, last) = (bytes(1, 70_000), bytes(2, 300_000), bytes(3, 30_000));
    let (mut cut, mut whole) = (0, 0);
    for writes in 0..12 {
        for seed in 0..4 {
            let machine = Machine::new().with_max_staged(LIMIT);
            let store = machine.open().unwrap();
            store.ensure_space(&space()).unwrap();
            write(store.as_ref(), &before).unwrap();
            machine.inject(Fault::SyncFails(seed), writes);
            let written = write(store.as_ref(), &after);
            machine.crash(seed);
            drop(store);

            let store = machine.open().unwrap();
            let found = read(store.as_ref()).unwrap();
            assert!(found == before || found == after, "{writes}, {seed}: neither of them");
            assert!(written.is_err() || found == after, "{writes}, {seed}: it was durable");
            let beside = store.get(&space(), b"beside").unwrap().unwrap();
            assert_eq!(*beside, found.len().to_be_bytes(), "{writes}, {seed}: not together");
            if found == before {
                cut += 1
            } else {
                whole += 1
            }
            write(store.as_ref(), &last).unwrap();
            assert_eq!(read(store.as_ref()).as_ref(), Some(&last));
            assert_eq!(keys(store.as_ref()), 2 + last.len().div_ceil(PART), "{writes}, {seed}");
        }
    }
    assert!(cut > 0 && whole > 0, "{cut} were cut off, {whole} were not");
}

#[test]
fn a_value_without_all_its_parts_is_an_error_and_one_that_was_put_is_a_value() {
    let store = Machine::new().open().unwrap();
    store.ensure_space(&space()).unwrap();
    let mut batch = Batch::new();
    batch.put(&space(), b"value".to_vec(), b"as it was".to_vec()).unwrap();
    store.commit(batch).unwrap();
    assert_eq!(read(store.as_ref()), Some(b"as it was".to_vec()));
    write(store.as_ref(), &bytes(1, 3 * PART)).unwrap();
    let parts = store.scan(&space(), b"value/", Bound::Unbounded, 10).unwrap();
    let mut batch = Batch::new();
    batch.delete(&space(), parts[1].0.clone()).unwrap();
    store.commit(batch).unwrap();
    let found = LargeValue::new(store.as_ref(), &space(), b"value").read();
    assert!(matches!(found, Err(LargeValueError::Incomplete)));
}
