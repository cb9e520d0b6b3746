//! Many runs become one, at once or broken off, and nothing else changes.

use crate::commit;
use crate::lasting::{rows, started};
use crate::support::{Server, Store, fetch, total, upload};
use alpheus_verifiable_table::TableKey;
use alpheus_verifiable_table::label::Address;
use alpheus_verifiable_table::layout::Moment;
use alpheus_verifiable_table::messages::Block;
use alpheus_verifiable_table::owner::{CorrectError, Merge, Owner};
use rand_chacha::ChaCha20Rng;
use std::collections::BTreeSet;

const BLOCKS: u64 = 5;

/// A table whose blocks were sealed by as many starts, and a correction.
fn scattered(seed: u64) -> (TableKey, Owner, Server, Store, ChaCha20Rng) {
    let (key, mut owner, mut server, mut store, mut rng) = started(seed);
    for block in 0..BLOCKS.cast_signed() {
        upload(&mut owner, &mut store, &mut server, &rows(block * 4096, 4096), &mut rng).unwrap();
        owner = Owner::open(&key, &store, &mut rng).unwrap();
    }
    assert_eq!(owner.runs().len(), 5);
    let opened = fetch(&owner, &server, 2).unwrap();
    commit(owner.correct(2 * 4096 + 7, vec![Some(1_000_000)], Some(&opened)).unwrap(), &mut store);
    (key, owner, server, store, rng)
}

fn expected() -> i128 {
    let all = rows(0, 5 * 4096);
    let sum: i64 = all.iter().map(|row| row[0].unwrap()).sum();
    i128::from(sum - all[2 * 4096 + 7][0].unwrap() + 1_000_000)
}

fn sum(owner: &Owner, server: &Server) -> i128 {
    total(owner, server, Moment::Sum(0), 0, BLOCKS * 4096).unwrap()
}

fn step(
    owner: &mut Owner,
    server: &mut Server,
    store: &mut Store,
    merge: &mut Merge,
    rng: &mut ChaCha20Rng,
) -> Option<Block> {
    let opened = fetch(owner, server, merge.next_block()?).unwrap();
    let block = commit(owner.merge(merge, &opened, rng).unwrap(), store);
    let address = server.store(block.as_bytes()).unwrap();
    commit(owner.acknowledged(&address).unwrap(), store);
    Some(block)
}

/// Also broken off after any number of blocks: the state is good, and one merge more
/// leaves one run. No label stands twice.
#[test]
fn runs_become_one() {
    for broken_off in 0..=BLOCKS {
        let (key, mut owner, mut server, mut store, mut rng) = scattered(20 + broken_off);
        let mut labels: BTreeSet<Address> = server.blocks.keys().copied().collect();
        let mut merge = owner.begin_merge(0..BLOCKS).unwrap();
        for _ in 0..broken_off {
            let block = step(&mut owner, &mut server, &mut store, &mut merge, &mut rng).unwrap();
            assert!(labels.insert(block.address()));
            assert_eq!(sum(&owner, &server), expected());
        }
        owner = Owner::open(&key, &store, &mut rng).unwrap();
        assert_eq!(owner.runs().len() as u64, BLOCKS.min(BLOCKS + 1 - broken_off));
        assert_eq!(sum(&owner, &server), expected());
        let opened = fetch(&owner, &server, merge.next_block().unwrap_or(0)).unwrap();
        let refused = owner.merge(&mut merge, &opened, &mut rng).err();
        assert_eq!(refused, Some(CorrectError::Closed(opened.index())), "another start's merge");
        let mut merge = owner.begin_merge(0..u64::MAX).unwrap();
        while let Some(block) = step(&mut owner, &mut server, &mut store, &mut merge, &mut rng) {
            assert!(labels.insert(block.address()));
        }
        assert_eq!((owner.runs().len(), owner.runs()[0].to), (1, BLOCKS));
        assert_eq!((sum(&owner, &server), owner.corrected_rows().count()), (expected(), 0));
        let reopened = Owner::open(&key, &store, &mut rng).unwrap();
        assert_eq!(reopened.runs(), owner.runs());
    }
}

/// In its order, each once; and only neighbours that are short are worth it.
#[test]
fn blocks_are_merged_in_their_order() {
    let (_, mut owner, mut server, mut store, mut rng) = scattered(30);
    assert_eq!(owner.scattered(&(0..5), u64::MAX), [0..5]);
    assert_eq!(owner.scattered(&(1..3), u64::MAX), [1..3]);
    assert!(owner.scattered(&(0..5), 1).is_empty());
    let mut merge = owner.begin_merge(1..4).unwrap();
    let opened = fetch(&owner, &server, 2).unwrap();
    let refused = owner.merge(&mut merge, &opened, &mut rng).err();
    assert_eq!(refused, Some(CorrectError::Closed(2)));
    while step(&mut owner, &mut server, &mut store, &mut merge, &mut rng).is_some() {}
    let ends: Vec<(u64, u64)> = owner.runs().iter().map(|run| (run.from, run.to)).collect();
    assert_eq!(ends, [(0, 1), (1, 4), (4, 5)]);
    assert_eq!(owner.scattered(&(0..5), 3), Vec::<std::ops::Range<u64>>::new());
    assert_eq!(sum(&owner, &server), expected());
}
