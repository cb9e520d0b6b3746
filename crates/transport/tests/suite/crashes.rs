//! Power failures of simulated machines, from seeds.

use crate::world::*;
use alpheus_transport::simulation::{Fault, Machine};
use alpheus_transport::{Batch, Error, Limits, Store};

/// Checks that the store holds a prefix of the batches, each complete. All records of a batch
/// contain its number, and so does the state.
fn check_prefix(store: &dyn Store, acknowledged: u64, accepted: u64) -> u64 {
    let count = store.get(&space(), b"count").unwrap().map_or(0, |value| number(&value));
    assert!((acknowledged..=accepted).contains(&count), "{acknowledged} <= {count} <= {accepted}");
    for index in 0..3 {
        let read: Vec<_> =
            values(store, &topic("t").partition(index)).iter().map(|v| number(v)).collect();
        let want: Vec<_> = (1..=count).filter(|n| n % 3 != u64::from(index)).collect();
        assert_eq!(read, want, "partition {index}");
    }
    count
}

fn numbered(n: u64) -> Batch {
    let mut batch = Batch::new();
    for index in (0..3).filter(|&index| n % 3 != u64::from(index)) {
        batch.append(&topic("t").partition(index), &record(&n.to_le_bytes())).unwrap();
    }
    batch.put(&space(), "count", n.to_le_bytes().to_vec()).unwrap();
    batch
}

fn prepare(store: &dyn Store) {
    store.ensure_topic(&topic("t"), 3).unwrap();
    store.ensure_space(&space()).unwrap();
}

#[test]
fn a_crash_keeps_all_acknowledged_batches_and_no_partial_ones() {
    let mut lost = 0;
    let mut kept_unsynced = 0;
    for seed in 0..200 {
        let mut seeded = SplitMix(seed);
        let machine = Machine::new();
        let (mut accepted, mut acknowledged) = (0, 0);
        for _ in 0..5 {
            let store = machine.open().unwrap();
            prepare(&*store);
            let count = check_prefix(&*store, acknowledged, accepted);
            lost += accepted - count;
            kept_unsynced += count - acknowledged;
            (accepted, acknowledged) = (count, count);
            for _ in 0..seeded.below(10) {
                accepted += 1;
                let _pending = store.commit_buffered(numbered(accepted)).unwrap();
                if seeded.below(3) == 0 {
                    store.sync().unwrap();
                    acknowledged = accepted;
                }
            }
            machine.crash(seeded.next());
            let dead = store.commit(numbered(accepted + 1));
            assert!(matches!(dead, Err(Error::Crashed)), "a crashed machine writes nothing");
            assert!(
                store
                    .read(&topic("t").partition(0), Default::default(), Limits::default())
                    .is_err()
            );
        }
    }
    assert!(lost > 100 && kept_unsynced > 100, "both outcomes must occur: {lost}, {kept_unsynced}");
}

#[test]
fn a_batch_is_not_acknowledged_if_the_disk_is_full_or_a_flush_fails() {
    let mut took_effect = [0, 0];
    for seed in 0..40 {
        for fault in [Fault::DiskFull, Fault::SyncFails(seed)] {
            let machine = Machine::new();
            let store = machine.open().unwrap();
            prepare(&*store);
            store.commit(numbered(1)).unwrap();
            machine.inject(fault, 1);
            store.commit(numbered(2)).unwrap();
            let failed = store.commit(numbered(3)).unwrap_err();
            match fault {
                Fault::DiskFull => assert!(matches!(failed, Error::DiskFull { .. })),
                Fault::SyncFails(_) => assert!(matches!(failed, Error::Failed { .. })),
            }
            assert!(failed.help().is_some());
            assert!(store.sync().is_err(), "a failed store accepts no more work");
            assert!(store.bounds(&topic("t").partition(0)).is_err());
            let reopened = machine.open().unwrap();
            let count = check_prefix(&*reopened, 2, 3);
            took_effect[usize::from(count == 3)] += 1;
            assert!(count == 2 || fault != Fault::DiskFull);
            reopened.commit(numbered(count + 1)).unwrap();
        }
    }
    assert!(took_effect.iter().all(|&n| n > 5), "both outcomes must occur: {took_effect:?}");
}

/// Reads numbers, keeps their sum in state and writes each running sum. As in every operator,
/// position, state and results are in one batch.
fn step(store: &dyn Store, at_most: usize) -> Result<bool, Error> {
    let (input, output) = (topic("in").partition(0), topic("out").partition(0));
    let from = store.position(&group(), &input)?.unwrap_or_default();
    let mut sum = store.get(&space(), b"sum")?.map_or(0, |value| number(&value));
    let fetched = store.read(&input, from, Limits { records: at_most, bytes: 1 << 20 })?;
    let next = fetched.next_offset();
    let mut batch = Batch::new();
    for read in fetched {
        sum += number(&read.value);
        batch.append(&output, &record(&sum.to_le_bytes()))?;
    }
    if batch.is_empty() {
        return Ok(false);
    }
    batch.put(&space(), "sum", sum.to_le_bytes().to_vec())?;
    batch.set_position(&group(), &input, next);
    store.commit(batch)?;
    Ok(true)
}

#[test]
fn read_process_write_is_exactly_once_across_crashes_and_faults() {
    for seed in 0..60 {
        let mut seeded = SplitMix(seed);
        let machine = Machine::new();
        let mut written = 0u64;
        while written < 40 {
            let store = machine.open().unwrap();
            if seeded.below(2) == 0 {
                machine.inject(Fault::SyncFails(seeded.next()), seeded.below(20));
            }
            let run = || -> Result<(), Error> {
                for name in ["in", "out"] {
                    store.ensure_topic(&topic(name), 1)?;
                }
                store.ensure_space(&space())?;
                written = store.bounds(&topic("in").partition(0))?.end.0;
                for _ in 0..seeded.below(8) {
                    written += 1;
                    store.commit(one(&topic("in").partition(0), &written.to_le_bytes()))?;
                    if seeded.below(2) == 0 {
                        step(&*store, 3)?;
                    }
                }
                Ok(())
            };
            let _interrupted = { run }();
            machine.crash(seeded.next());
        }
        let store = machine.open().unwrap();
        while step(&*store, 10).unwrap() {}
        let written = store.bounds(&topic("in").partition(0)).unwrap().end.0;
        let sums: Vec<_> =
            values(&*store, &topic("out").partition(0)).iter().map(|v| number(v)).collect();
        assert_eq!(sums, (1..=written).map(|n| n * (n + 1) / 2).collect::<Vec<_>>(), "seed {seed}");
    }
}
