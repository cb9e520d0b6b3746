//! The guarantees of every store, without crashes.

use crate::world::*;
use alpheus_transport::{Batch, Bound, Bounds, Error, Limits, NewRecord, Offset, Sequence, Store};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Each test runs on each store.
macro_rules! on_every_store {
    ($($test:ident),* $(,)?) => {
        mod local {
            $(#[test] fn $test() { super::$test(&crate::world::World::local()); })*
        }
        mod simulated {
            $(#[test] fn $test() { super::$test(&crate::world::World::simulated()); })*
        }
        #[cfg(feature = "kafka")]
        mod kafka {
            $(#[test] fn $test() {
                if let Some(world) = crate::world::World::kafka() {
                    super::$test(&world);
                }
            })*
        }
    };
}

on_every_store!(
    records_keep_order_offsets_and_content,
    a_batch_with_one_wrong_name_changes_nothing,
    readers_see_only_synced_batches,
    a_reopened_store_has_all_its_data,
    reads_keep_to_their_limits_and_continue_where_they_stopped,
    offsets_outside_a_partition_are_refused,
    state_is_scanned_in_order_within_its_space,
    the_last_of_several_changes_to_a_key_counts,
    truncation_drops_only_the_records_before_its_offset,
    batches_of_concurrent_committers_are_all_kept_in_order,
    unsynced_bytes_are_bounded,
    a_batch_that_is_too_large_is_refused_without_harm,
    a_waiting_reader_wakes_when_a_batch_is_durable,
    topics_keep_their_partitions,
    only_one_open_handle_can_write,
    a_random_history_agrees_with_a_simple_model,
);

fn records_keep_order_offsets_and_content(world: &World) {
    let store = world.open();
    let (a, b) = (topic("t").partition(0), topic("t").partition(1));
    store.ensure_topic(&a.topic, 2).unwrap();
    let headers: &[(&str, &[u8])] = &[("schema", b"7"), ("empty", b"")];
    let mut expected = Vec::new();
    for round in 0..5u8 {
        let mut batch = Batch::new();
        for i in 0..3u8 {
            let value = [round, i];
            let record = NewRecord { key: b"k", value: &value, timestamp: u64::from(i), headers };
            batch.append(if i == 1 { &b } else { &a }, &record).unwrap();
        }
        let receipt = store.commit(batch).unwrap();
        let counts: Vec<_> =
            receipt.appended().iter().map(|x| (&x.partition, x.end.0 - x.first.0)).collect();
        assert_eq!(counts, [(&a, 2), (&b, 1)]);
        expected.extend([receipt.appended()[0].first.0, receipt.appended()[0].end.0 - 1]);
    }
    let read = read_all(&*store, &a);
    assert_eq!(read.iter().map(|r| r.offset.0).collect::<Vec<_>>(), expected);
    assert_eq!(read[3].value, [1, 2].as_slice());
    assert_eq!((read[3].timestamp, &read[3].key[..]), (2, &b"k"[..]));
    assert_eq!(read[3].headers().collect::<Vec<_>>(), headers);
    assert_eq!(values(&*store, &b), (0..5).map(|r| vec![r, 1]).collect::<Vec<_>>());
}

fn a_batch_with_one_wrong_name_changes_nothing(world: &World) {
    let store = world.open();
    let good = topic("t").partition(0);
    store.ensure_topic(&good.topic, 1).unwrap();
    store.ensure_space(&space()).unwrap();
    let mut wrong_partition = one(&good, b"x");
    wrong_partition.put(&space(), "k", "v").unwrap();
    wrong_partition.append(&topic("t").partition(1), &record(b"x")).unwrap();
    let mut wrong_space = one(&good, b"x");
    wrong_space.put(&alpheus_transport::Space::new("other").unwrap(), "k", "v").unwrap();
    let mut wrong_position = one(&good, b"x");
    wrong_position.set_position(&group(), &topic("no").partition(0), Offset(1));
    let outcome = |batch| store.commit(batch).unwrap_err();
    assert!(matches!(outcome(wrong_partition), Error::UnknownPartition { partitions: 1, .. }));
    assert!(matches!(outcome(wrong_space), Error::UnknownSpace { .. }));
    assert!(matches!(outcome(wrong_position), Error::UnknownTopic { .. }));
    assert_eq!(store.bounds(&good).unwrap(), Bounds::default());
    assert!(scan_all(&*store).is_empty());
    store.commit(one(&good, b"y")).unwrap();
    assert_eq!(values(&*store, &good), ["y"]);
}

fn readers_see_only_synced_batches(world: &World) {
    let store = world.open();
    let partition = topic("t").partition(0);
    store.ensure_topic(&partition.topic, 1).unwrap();
    store.ensure_space(&space()).unwrap();
    let mut batch = one(&partition, b"x");
    batch.put(&space(), "k", "v").unwrap();
    batch.set_position(&group(), &partition, Offset(1));
    let pending = store.commit_buffered(batch).unwrap();
    let seen = || {
        let value = store.get(&space(), b"k").unwrap();
        (values(&*store, &partition).len(), value, offset_of(&*store, &partition).0)
    };
    assert_eq!(seen(), (0, None, 0));
    assert!(store.stats().staged_bytes > 0);
    let later = store.commit_buffered(one(&partition, b"y")).unwrap();
    let synced = store.sync().unwrap();
    assert_eq!(seen(), (2, Some("v".into()), 1));
    let unsynced = store.commit_buffered(one(&partition, b"z")).unwrap();
    assert!(pending.settle(synced).is_ok() && later.settle(synced).is_ok());
    let unsynced = unsynced.settle(synced).unwrap_err();
    assert_eq!(seen().0, 2);
    store.settle(unsynced).unwrap();
    assert_eq!(seen().0, 3);
    assert_eq!(store.stats().staged_bytes, 0);
}

fn a_reopened_store_has_all_its_data(world: &World) {
    let partition = topic("t").partition(1);
    for round in 0..4u64 {
        let store = world.open();
        store.ensure_topic(&partition.topic, 2).unwrap();
        store.ensure_space(&space()).unwrap();
        assert_eq!(values(&*store, &partition).len() as u64, round);
        assert_eq!(store.partitions(&partition.topic).unwrap(), Some(2));
        assert_eq!(store.partitions(&topic("none")).unwrap(), None);
        let mut batch = one(&partition, &round.to_le_bytes());
        batch.put(&space(), round.to_le_bytes().to_vec(), "v").unwrap();
        batch.set_position(&group(), &partition, Offset(round));
        store.commit(batch).unwrap();
    }
    let store = world.open();
    let third = offsets(&*store, &partition)[2];
    store.truncate_before(&partition, third).unwrap();
    store.sync().unwrap();
    drop(store);
    let store = world.open();
    assert_eq!(store.bounds(&partition).unwrap().start, third);
    let read: Vec<_> = values(&*store, &partition).iter().map(|v| number(v)).collect();
    assert_eq!(read, [2, 3]);
    assert_eq!(scan_all(&*store).len(), 4);
    assert_eq!(offset_of(&*store, &partition), Offset(3));
}

fn reads_keep_to_their_limits_and_continue_where_they_stopped(world: &World) {
    let store = world.open();
    let partition = topic("t").partition(0);
    store.ensure_topic(&partition.topic, 1).unwrap();
    let mut batch = Batch::new();
    for i in 0..50u64 {
        batch.append(&partition, &record(&i.to_le_bytes())).unwrap();
    }
    store.commit(batch).unwrap();
    for i in 50..60u64 {
        store.commit(one(&partition, &i.to_le_bytes())).unwrap();
    }
    let at = offsets(&*store, &partition);
    for (from, records) in [(0, 1), (3, 7), (45, 10), (49, 2), (59, 5), (0, 100), (0, 60)] {
        let (mut next, end) = (at[from], (from + records).min(60));
        let mut got: Vec<u64> = Vec::new();
        while got.len() < end - from {
            let limits = Limits { records: records - got.len(), bytes: 1 << 20 };
            let fetched = store.read(&partition, next, limits).unwrap();
            next = fetched.next_offset();
            let before = got.len();
            got.extend(fetched.map(|r| number(&r.value)));
            assert!(got.len() <= records && got.len() > before);
        }
        assert_eq!(got, (from as u64..end as u64).collect::<Vec<_>>(), "from {from}");
        assert!(next > at[end - 1] && next <= at[end]);
    }
    let tight = store.read(&partition, at[52], Limits { records: 0, bytes: 0 }).unwrap();
    assert_eq!(tight.map(|r| r.offset).collect::<Vec<_>>(), [at[52]], "at least one record");
    let at_end = store.read(&partition, at[60], Limits::default()).unwrap();
    assert_eq!((at_end.next_offset(), at_end.count()), (at[60], 0));
}

fn offsets_outside_a_partition_are_refused(world: &World) {
    let store = world.open();
    let partition = topic("t").partition(0);
    store.ensure_topic(&partition.topic, 1).unwrap();
    (0..4).for_each(|_| drop(store.commit(one(&partition, b"x")).unwrap()));
    let at = offsets(&*store, &partition);
    store.truncate_before(&partition, at[2]).unwrap();
    store.sync().unwrap();
    let beyond = Offset(at[4].0 + 1);
    for bad in [at[0], at[1], beyond] {
        let refused = store.read(&partition, bad, Limits::default());
        let Err(Error::OffsetOutOfRange { offset, bounds, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!((offset, bounds), (bad, Bounds { start: at[2], end: at[4] }));
    }
    let refused = store.truncate_before(&partition, beyond);
    assert!(matches!(refused, Err(Error::OffsetOutOfRange { .. })));
}

fn state_is_scanned_in_order_within_its_space(world: &World) {
    let store = world.open();
    let other = alpheus_transport::Space::new("other").unwrap();
    store.ensure_space(&other).unwrap();
    store.ensure_space(&space()).unwrap();
    let mut batch = Batch::new();
    for key in ["b", "a", "ab", "", "ba", "\u{7f}"] {
        batch.put(&space(), key, "mine").unwrap();
        batch.put(&other, key, "theirs").unwrap();
    }
    batch.put(&space(), vec![0xff, 0xff], "mine").unwrap();
    store.commit(batch).unwrap();
    let keys = |prefix: &[u8], from: Bound<&[u8]>, limit| {
        let found = store.scan(&space(), prefix, from, limit).unwrap();
        assert!(found.iter().all(|(_, value)| value == "mine"));
        found.into_iter().map(|(key, _)| key.to_vec()).collect::<Vec<_>>()
    };
    let all: [&[u8]; 7] = [b"", b"a", b"ab", b"b", b"ba", b"\x7f", b"\xff\xff"];
    assert_eq!(keys(b"", Bound::Unbounded, 99), all);
    assert_eq!(keys(b"", Bound::Unbounded, 2), all[..2]);
    assert_eq!(keys(b"", Bound::Unbounded, 0), [b""; 0]);
    assert_eq!(keys(b"a", Bound::Unbounded, 99), all[1..3]);
    assert_eq!(keys(b"a", Bound::Excluded(b"a"), 99), all[2..3]);
    assert_eq!(keys(b"", Bound::Excluded(b"ab"), 2), all[3..5]);
    assert_eq!(keys(b"", Bound::Included(b"ab"), 1), all[2..3]);
    assert_eq!(keys(b"b", Bound::Included(b"a"), 99), all[3..5], "from before the prefix");
    assert_eq!(keys(b"a", Bound::Included(b"b"), 99), [b""; 0], "from after the prefix");
    assert_eq!(keys(b"\xff\xff", Bound::Unbounded, 99), all[6..]);
}

fn the_last_of_several_changes_to_a_key_counts(world: &World) {
    let store = world.open();
    let partition = topic("t").partition(0);
    store.ensure_topic(&partition.topic, 1).unwrap();
    store.ensure_space(&space()).unwrap();
    let mut first = Batch::new();
    first.put(&space(), "a", "1").unwrap();
    first.put(&space(), "a", "2").unwrap();
    first.delete(&space(), "b").unwrap();
    first.put(&space(), "b", "3").unwrap();
    first.put(&space(), "c", "4").unwrap();
    first.set_position(&group(), &partition, Offset(9));
    first.set_position(&group(), &partition, Offset(3));
    let mut second = Batch::new();
    second.put(&space(), "a", "5").unwrap();
    second.delete(&space(), "c").unwrap();
    // Both batches are in one group, inside which their order must hold, too.
    let _first = store.commit_buffered(first).unwrap();
    store.commit(second).unwrap();
    assert_eq!(scan_all(&*store), [("a".into(), "5".into()), ("b".into(), "3".into())]);
    assert_eq!(store.get(&space(), b"c").unwrap(), None);
    assert_eq!(offset_of(&*store, &partition), Offset(3));
}

fn truncation_drops_only_the_records_before_its_offset(world: &World) {
    let store = world.open();
    let (partition, other) = (topic("t").partition(0), topic("t").partition(1));
    store.ensure_topic(&partition.topic, 2).unwrap();
    for i in 0..10u64 {
        let mut batch = one(&other, &i.to_le_bytes());
        (0..3).for_each(|j| batch.append(&partition, &record(&(i * 3 + j).to_le_bytes())).unwrap());
        store.commit(batch).unwrap();
    }
    let numbers = |store: &dyn Store| -> Vec<_> {
        values(store, &partition).iter().map(|v| number(v)).collect()
    };
    let at = offsets(&*store, &partition);
    for before in [0, 1, 3, 7, 5, 12] {
        store.truncate_before(&partition, at[usize::try_from(before).unwrap()]).unwrap();
        store.sync().unwrap();
        let first = before.max(if before == 5 { 7 } else { 0 });
        assert_eq!(numbers(&*store), (first..30).collect::<Vec<_>>());
    }
    // Two truncations and an append between two syncs.
    store.truncate_before(&partition, at[30]).unwrap();
    let _pending = store.commit_buffered(one(&partition, &30u64.to_le_bytes())).unwrap();
    store.truncate_before(&partition, at[20]).unwrap();
    store.sync().unwrap();
    assert_eq!(numbers(&*store), [30]);
    assert_eq!(values(&*store, &other).len(), 10);
    drop(store);
    let store = world.open();
    assert_eq!(numbers(&*store), [30]);
    let end = store.bounds(&partition).unwrap().end;
    store.truncate_before(&partition, end).unwrap();
    store.sync().unwrap();
    drop(store);
    let store = world.open();
    assert_eq!(store.bounds(&partition).unwrap(), Bounds { start: end, end });
    assert_eq!(store.commit(one(&partition, b"x")).unwrap().appended()[0].first, end);
    assert_eq!(values(&*store, &other).len(), 10);
}

fn batches_of_concurrent_committers_are_all_kept_in_order(world: &World) {
    const THREADS: u64 = 8;
    const EACH: u64 = 25;
    let store = world.open();
    let partition = topic("t").partition(0);
    store.ensure_topic(&partition.topic, 1).unwrap();
    let before = store.stats();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, partition) = (&store, &partition);
            scope.spawn(move || {
                for i in 0..EACH {
                    let value = [thread.to_le_bytes(), i.to_le_bytes()].concat();
                    let receipt = store.commit(one(partition, &value)).unwrap();
                    let offset = receipt.appended()[0].first;
                    let mut read = store.read(partition, offset, Limits::default()).unwrap();
                    assert_eq!(read.next().unwrap().value, value, "durable, so readable");
                }
            });
        }
    });
    let mut next = std::collections::BTreeMap::<u64, u64>::new();
    for value in values(&*store, &partition) {
        let (thread, i) = value.split_at(8);
        let next = next.entry(number(thread)).or_default();
        assert_eq!(number(i), *next, "each thread's records keep their order");
        *next += 1;
    }
    assert_eq!(next, (0..THREADS).map(|thread| (thread, EACH)).collect());
    let stats = store.stats();
    assert_eq!(stats.batches - before.batches, THREADS * EACH);
    assert_eq!(stats.records - before.records, THREADS * EACH);
    // The disk determines how many batches share a sync. The engine's tests check that
    // waiting ones do.
    assert!(stats.syncs - before.syncs <= THREADS * EACH);
}

fn unsynced_bytes_are_bounded(world: &World) {
    let store = world.open();
    let partition = topic("t").partition(0);
    store.ensure_topic(&partition.topic, 1).unwrap();
    let value = vec![7; MAX_STAGED / 10];
    for _ in 0..50 {
        let _pending = store.commit_buffered(one(&partition, &value)).unwrap();
        let staged = store.stats().staged_bytes;
        assert!(staged <= MAX_STAGED as u64, "{staged} bytes wait");
    }
    store.sync().unwrap();
    assert_eq!(values(&*store, &partition).len(), 50);
    assert!(store.stats().syncs >= 5);
}

fn a_batch_that_is_too_large_is_refused_without_harm(world: &World) {
    let store = world.open();
    let partition = topic("t").partition(0);
    store.ensure_topic(&partition.topic, 1).unwrap();
    let huge = vec![0; MAX_STAGED + 1];
    let refused = store.commit(one(&partition, &huge));
    assert!(matches!(refused, Err(Error::BatchTooLarge { limit: MAX_STAGED, .. })));
    store.commit(one(&partition, b"")).unwrap();
    assert_eq!(values(&*store, &partition), [""]);
}

fn a_waiting_reader_wakes_when_a_batch_is_durable(world: &World) {
    let store = world.open();
    let partition = topic("t").partition(0);
    store.ensure_topic(&partition.topic, 1).unwrap();
    let seen = store.wait(Sequence::default(), Duration::ZERO).unwrap();
    assert_eq!(store.wait(seen, Duration::from_millis(5)).unwrap(), seen, "no batch was committed");
    let writer = Arc::clone(&store);
    let target = partition.clone();
    let start = Instant::now();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        writer.commit(one(&target, b"x")).unwrap().sequence()
    });
    let woken = store.wait(seen, Duration::from_secs(30)).unwrap();
    assert!(woken > seen && start.elapsed() < Duration::from_secs(20));
    assert_eq!(values(&*store, &partition), ["x"]);
    assert_eq!(thread.join().unwrap(), woken);
}

fn topics_keep_their_partitions(world: &World) {
    let store = world.open();
    store.ensure_topic(&topic("t"), 3).unwrap();
    store.ensure_topic(&topic("t"), 3).unwrap();
    let refused = store.ensure_topic(&topic("t"), 4);
    assert!(matches!(refused, Err(Error::TopicDiffers { have: 3, want: 4, .. })));
    drop(store);
    let refused = world.open().ensure_topic(&topic("t"), 2);
    assert!(matches!(refused, Err(Error::TopicDiffers { have: 3, want: 2, .. })));
}

/// Only one handle can write. Local stores refuse a second handle. In Kafka the newer one
/// wins, and the next write of the older one fails.
fn only_one_open_handle_can_write(world: &World) {
    let partition = topic("t").partition(0);
    let first = world.open();
    first.ensure_topic(&partition.topic, 1).unwrap();
    first.commit(one(&partition, b"x")).unwrap();
    match world.try_open() {
        Err(error) => {
            assert!(matches!(error, Error::Locked { .. }), "{error}");
            first.commit(one(&partition, b"y")).unwrap();
        }
        Ok(second) => {
            assert!(!matches!(world, World::Local(..) | World::Simulated(_)));
            let fenced = first.commit(one(&partition, b"of the fenced")).unwrap_err();
            assert!(fenced.to_string().contains("another process has opened"), "{fenced:?}");
            assert!(fenced.help().is_some());
            assert!(first.read(&partition, Offset(0), Limits::default()).is_err());
            second.commit(one(&partition, b"y")).unwrap();
        }
    }
    drop(first);
    assert_eq!(values(&*world.open(), &partition), ["x", "y"]);
}

/// A store made of vectors and maps.
#[derive(Default)]
struct Model {
    logs: [Vec<u64>; 3],
    starts: [u64; 3],
    state: std::collections::BTreeMap<String, String>,
}

impl Model {
    /// Draws a batch from a seed and applies it to the model, too.
    fn batch(&mut self, seeded: &mut SplitMix) -> Batch {
        let mut batch = Batch::new();
        for _ in 0..seeded.below(6) {
            let index = u32::try_from(seeded.below(3)).unwrap();
            let value = seeded.next();
            batch.append(&topic("t").partition(index), &record(&value.to_le_bytes())).unwrap();
            self.logs[index as usize].push(value);
        }
        for _ in 0..seeded.below(4) {
            let key = format!("k{}", seeded.below(20));
            if seeded.below(3) == 0 {
                batch.delete(&space(), key.clone()).unwrap();
                self.state.remove(&key);
            } else {
                let value = seeded.next().to_string();
                batch.put(&space(), key.clone(), value.clone()).unwrap();
                self.state.insert(key, value);
            }
        }
        batch
    }

    fn truncate_somewhere(&mut self, store: &dyn Store, seeded: &mut SplitMix) {
        let index = u32::try_from(seeded.below(3)).unwrap();
        let partition = topic("t").partition(index);
        let end = store.bounds(&partition).unwrap().end;
        let (records, log) = (read_all(store, &partition), &self.logs[index as usize]);
        let chosen = usize::try_from(seeded.below(records.len() as u64 + 1)).unwrap();
        let before = records.get(chosen).map_or(end, |record| record.offset);
        store.truncate_before(&partition, before).unwrap();
        let after_last = records.last().map_or(0, |last| index_in(log, last) + 1);
        let first = records.get(chosen).map_or(after_last, |record| index_in(log, record));
        let start = &mut self.starts[index as usize];
        *start = (*start).max(first);
    }

    fn check(&self, store: &dyn Store) {
        for (index, (log, &start)) in (0..).zip(self.logs.iter().zip(&self.starts)) {
            let read = values(store, &topic("t").partition(index));
            let read: Vec<_> = read.iter().map(|value| number(value)).collect();
            assert_eq!(read, log[usize::try_from(start).unwrap()..]);
        }
        let state = self.state.iter();
        let want: Vec<_> = state.map(|(k, v)| (k.clone().into(), v.clone().into())).collect();
        assert_eq!(scan_all(store), want);
    }
}

/// The index of a record in its partition. No value is drawn twice.
fn index_in(log: &[u64], record: &alpheus_transport::Record) -> u64 {
    log.iter().position(|&value| value == number(&record.value)).unwrap() as u64
}

/// Appends, puts, deletes, truncations, syncs and reopenings, drawn from a seed.
fn a_random_history_agrees_with_a_simple_model(world: &World) {
    let (mut seeded, mut model) = (SplitMix(42), Model::default());
    for _reopened in 0..4 {
        let store = world.open();
        store.ensure_topic(&topic("t"), 3).unwrap();
        store.ensure_space(&space()).unwrap();
        for _ in 0..30 {
            let pending = store.commit_buffered(model.batch(&mut seeded)).unwrap();
            match seeded.below(3) {
                0 => drop(store.settle(pending).unwrap()),
                1 => drop(store.sync().unwrap()),
                _ => {}
            }
            if seeded.below(4) == 0 {
                model.truncate_somewhere(&*store, &mut seeded);
            }
        }
        store.sync().unwrap();
        model.check(&*store);
    }
}
