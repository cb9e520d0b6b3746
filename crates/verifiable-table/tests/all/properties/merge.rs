//! Properties: a merge turns many runs into one, even if interrupted, and changes nothing else.

use crate::properties::commit;
use crate::properties::durable::{rows, started};
use crate::support::{Server, Store, fetch, total, upload};
use alpheus_crypto::ledger::FailingLedger;
use alpheus_verifiable_table::TableKey;
use alpheus_verifiable_table::label::Address;
use alpheus_verifiable_table::layout::Moment;
use alpheus_verifiable_table::messages::Block;
use alpheus_verifiable_table::owner::{CorrectError, Merge, Owner};
use chacha20::{ChaCha20Rng, rand_core::Rng};
use std::collections::BTreeSet;
use std::ops::Range;

const BLOCKS: u64 = 5;

/// A table with one start for each block, and a correction.
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
    commit(owner.acknowledge(&address).unwrap(), store);
    Some(block)
}

/// The state is valid after any number of blocks, and a second merge leaves one run. No label
/// is used twice.
#[test]
fn an_interrupted_merge_can_be_repeated_until_one_run_is_left() {
    for interrupted_after in 0..=BLOCKS {
        let (key, mut owner, mut server, mut store, mut rng) = scattered(20 + interrupted_after);
        let mut labels: BTreeSet<Address> = server.blocks.keys().copied().collect();
        let mut merge = owner.begin_merge(0..BLOCKS).unwrap();
        for _ in 0..interrupted_after {
            let block = step(&mut owner, &mut server, &mut store, &mut merge, &mut rng).unwrap();
            assert!(labels.insert(block.address()));
            assert_eq!(sum(&owner, &server), expected());
        }
        owner = Owner::open(&key, &store, &mut rng).unwrap();
        assert_eq!(owner.runs().len() as u64, BLOCKS.min(BLOCKS + 1 - interrupted_after));
        assert_eq!(sum(&owner, &server), expected());
        let opened = fetch(&owner, &server, merge.next_block().unwrap_or(0)).unwrap();
        let refused = owner.merge(&mut merge, &opened, &mut rng).err();
        assert_eq!(refused, Some(CorrectError::NotOpen(opened.index())), "another start's merge");
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

/// A table that is merged while it changes in other ways.
struct Story {
    key: TableKey,
    owner: Owner,
    server: Server,
    store: Store,
    rng: ChaCha20Rng,
    merges: Vec<Merge>,
    labels: BTreeSet<Address>,
    expected: i128,
}

impl Story {
    fn begin(seed: u64) -> Self {
        let (key, mut owner, server, store, rng) = scattered(seed);
        let labels = server.blocks.keys().copied().collect();
        let merges = vec![owner.begin_merge(0..BLOCKS).unwrap()];
        Self { key, owner, server, store, rng, merges, labels, expected: expected() }
    }

    fn random(&mut self, below: usize) -> usize {
        usize::try_from(self.rng.next_u32()).unwrap() % below
    }

    fn append(&mut self) -> Vec<Block> {
        let rows = rows(0, 4096);
        self.expected += rows.iter().map(|row| i128::from(row[0].unwrap())).sum::<i128>();
        commit(self.owner.append(&rows, &mut self.rng).unwrap(), &mut self.store)
    }

    fn rewrite(&mut self) -> Vec<Block> {
        let index = self.random(5) as u64;
        let opened = fetch(&self.owner, &self.server, index).unwrap();
        vec![commit(self.owner.rewrite(&opened, &mut self.rng).unwrap(), &mut self.store)]
    }

    /// Merges the next block. If the commit fails, its label is lost with this start and
    /// nothing of it is stored.
    fn merge(&mut self, which: usize, fails: bool) -> Vec<Block> {
        let Some(next) = self.merges[which].next_block() else { return Vec::new() };
        let opened = fetch(&self.owner, &self.server, next).unwrap();
        let step = self.owner.merge(&mut self.merges[which], &opened, &mut self.rng).unwrap();
        if fails {
            assert!(step.commit(&mut FailingLedger).is_err());
            self.restart();
            return Vec::new();
        }
        vec![commit(step, &mut self.store)]
    }

    fn restart(&mut self) {
        self.owner = Owner::open(&self.key, &self.store, &mut self.rng).unwrap();
        self.merges = vec![self.owner.begin_merge(0..u64::MAX).unwrap()];
    }

    /// Sends the outbox, even of an earlier start, then checks labels and the sum.
    fn deliver(&mut self, sealed: &[Block]) {
        sealed.iter().for_each(|block| assert!(self.labels.insert(block.address()), "reused"));
        for address in self.owner.outbox().copied().collect::<Vec<_>>() {
            self.server.store(&self.store[&Owner::outbox_key(&address)]).unwrap();
            commit(self.owner.acknowledge(&address).unwrap(), &mut self.store);
        }
        let all = self.owner.blocks() * 4096;
        let sum = total(&self.owner, &self.server, Moment::Sum(0), 0, all).unwrap();
        assert_eq!(sum, self.expected);
    }
}

/// Between the blocks of a merge come, at random: appends, rewrites, a second merge, a failed
/// commit, a crash between commit and sending. No label is used twice, the sum is always right,
/// and in the end one run is left.
#[test]
fn a_merge_stays_correct_between_any_other_changes() {
    for seed in 40..46 {
        let mut story = Story::begin(seed);
        for _ in 0..14 {
            let last = story.merges.len() - 1;
            let made = match story.random(8) {
                0 => story.append(),
                1 => story.rewrite(),
                2 => {
                    story.merges.push(story.owner.begin_merge(0..u64::MAX).unwrap());
                    Vec::new()
                }
                3 => {
                    let which = story.random(last + 1);
                    story.merge(which, false)
                }
                4 => story.merge(last, true),
                _ => story.merge(last, false),
            };
            if story.random(4) == 0 {
                story.restart();
            }
            story.deliver(&made);
        }
        while let Some(stretch) = story.owner.merge_candidates(&(0..u64::MAX), u64::MAX).first() {
            let merge = story.owner.begin_merge(stretch.clone()).unwrap();
            story.merges = vec![merge];
            while story.merges[0].next_block().is_some() {
                let made = story.merge(0, false);
                story.deliver(&made);
            }
        }
        assert_eq!(story.owner.runs().len(), 1);
    }
}

/// Each merge stops after two blocks. Starting from the first block each time would never end.
#[test]
fn a_merge_that_is_always_interrupted_makes_progress() {
    let (key, mut owner, mut server, mut store, mut rng) = scattered(31);
    for runs in [4, 3, 3] {
        let stretch = owner.merge_candidates(&(0..BLOCKS), u64::MAX).remove(0);
        let mut merge = owner.begin_merge(stretch).unwrap();
        for _ in 0..2 {
            assert!(step(&mut owner, &mut server, &mut store, &mut merge, &mut rng).is_some());
        }
        owner = Owner::open(&key, &store, &mut rng).unwrap();
        assert_eq!(owner.runs().len(), runs);
    }
    assert_eq!(sum(&owner, &server), expected());
}

/// The merge candidate, if there is exactly one.
fn one_candidate(owner: &Owner, within: Range<u64>) -> Option<Range<u64>> {
    let [stretch] = owner.merge_candidates(&within, u64::MAX).try_into().ok()?;
    Some(stretch)
}

/// Each block once; and only adjacent short runs are candidates.
#[test]
fn blocks_are_merged_in_order() {
    let (_, mut owner, mut server, mut store, mut rng) = scattered(30);
    assert_eq!(one_candidate(&owner, 0..5), Some(0..5));
    assert_eq!(one_candidate(&owner, 1..3), Some(1..3));
    assert!(owner.merge_candidates(&(0..5), 1).is_empty());
    let mut merge = owner.begin_merge(1..4).unwrap();
    let opened = fetch(&owner, &server, 2).unwrap();
    let refused = owner.merge(&mut merge, &opened, &mut rng).err();
    assert_eq!(refused, Some(CorrectError::NotOpen(2)));
    while step(&mut owner, &mut server, &mut store, &mut merge, &mut rng).is_some() {}
    let ends: Vec<(u64, u64)> = owner.runs().iter().map(|run| (run.from, run.to)).collect();
    assert_eq!(ends, [(0, 1), (1, 4), (4, 5)]);
    assert_eq!(owner.merge_candidates(&(0..5), 3), Vec::<Range<u64>>::new());
    // Merging here would cut off a run's end and so save nothing.
    assert_eq!(owner.merge_candidates(&(0..2), u64::MAX), Vec::<Range<u64>>::new());
    assert_eq!(one_candidate(&owner, 0..5), Some(0..5));
    assert_eq!(sum(&owner, &server), expected());
}
