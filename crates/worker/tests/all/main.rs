//! Tests of parts, of what joins them, and of journals.

mod joiners;
mod takeover;

use alpheus_encrypted_stream::job::{JobMessage, Opening, SetDigest, Tally, Token, WindowSum};
use alpheus_policy::ids::{PlanId, StreamId};
use alpheus_time::Timestamp;
use alpheus_transport::simulation::Machine;
use alpheus_transport::{Batch, NewRecord, Offset, Topic};
use alpheus_worker::instruction::{Instruction, InstructionRecord};
use alpheus_worker::joiner::{Joiner, Positions};
use alpheus_worker::journal::{self, EntryError, History};
use alpheus_worker::lane::Step;
use alpheus_worker::part::Part;
use std::sync::Arc;

const PLAN: PlanId = PlanId([3; 32]);
const START: Timestamp = Timestamp(20);

fn set(streams: &[u8]) -> InstructionRecord {
    let ids = streams.iter().map(|at| StreamId([*at; 16]));
    let instruction = Instruction::Opening(Arc::new(Opening {
        plan: PLAN,
        start: START,
        streams: streams.iter().map(|at| (*at).into()).collect(),
        stream_digest: SetDigest::of_streams(&PLAN, START, ids),
        controllers: vec![0, 1],
        token_digest: SetDigest::of_controllers(&PLAN, START, &[0, 1]),
        masked: true,
        rows: 2,
    }));
    InstructionRecord { offset: Offset(3), at: START, instruction }
}

fn part(lane: u32, streams: &[u8], rows: [u64; 2]) -> Part {
    let ids = streams.iter().map(|at| StreamId([*at; 16]));
    let digest = SetDigest::of_streams(&PLAN, START, ids);
    let streams = Tally { count: streams.len() as u64, digest };
    Part { plan: PLAN, start: START, lane, streams, rows: rows.to_vec() }
}

fn token(controller: u32, opens: bool, rows: Vec<u64>) -> Token {
    Token { plan: PLAN, start: START, controller, opens, rows }
}

/// The first part that a successor reads, if eight were read.
fn needed(joiner: &mut Joiner) -> u64 {
    let read = Positions { parts: Offset(8), ..Positions::default() };
    joiner.mark(&read).positions().parts.0
}

#[test]
fn a_window_is_whole_once_with_exactly_its_set() {
    let mut joiner = Joiner::new(0, 1);
    joiner.take(Offset(4), START, part(0, &[1, 2], [10, 20]));
    joiner.instruct(&set(&[1, 2, 5]));
    joiner.answer((0, Offset(9)), START, &token(0, false, vec![1, 1]));
    joiner.answer((0, Offset(9)), START, &token(0, true, vec![0, u64::MAX]));
    joiner.answer((0, Offset(9)), START, &token(1, false, vec![5]));
    joiner.answer((0, Offset(9)), START, &token(1, true, vec![1, 1]));
    // The same again, and another partition's that is not all of it.
    joiner.take(Offset(5), START, part(0, &[1, 2], [10, 20]));
    joiner.take(Offset(6), START, part(1, &[5], [1, 2]));
    assert_eq!(joiner.sums(), [], "an answer has the wrong length, and the first one counts");
    let mut joiner = Joiner::new(0, 1);
    for (controller, rows) in [(0, vec![1, 1]), (1, vec![5, 5])] {
        joiner.answer((0, Offset(9)), START, &token(controller, false, rows.clone()));
        joiner.answer((0, Offset(9)), START, &token(controller, true, vec![1, 1]));
    }
    joiner.instruct(&set(&[1, 2, 5]));
    joiner.take(Offset(4), START, part(0, &[1, 2], [10, 20]));
    assert_eq!((joiner.sums(), needed(&mut joiner)), (vec![], 4));
    joiner.take(Offset(6), START, part(1, &[5], [1, 2]));
    let sums = joiner.sums();
    let sum = WindowSum::from_bytes(&sums[0].1).unwrap();
    assert_eq!((sum.ciphertexts, sum.tokens), (vec![11, 22], vec![4, 4]));
    assert_eq!((sum.streams.count, sum.controllers.count), (3, 2));
    joiner.take(Offset(7), START, part(1, &[5], [1, 2]));
    assert_eq!((joiner.sums(), needed(&mut joiner)), (vec![], 8));
}

#[test]
fn another_stream_in_a_part_keeps_the_window_shut() {
    let mut joiner = Joiner::new(0, 1);
    joiner.instruct(&set(&[1, 2]));
    for controller in [0, 1] {
        joiner.answer((0, Offset(9)), START, &token(controller, false, vec![1, 1]));
        joiner.answer((0, Offset(9)), START, &token(controller, true, vec![1, 1]));
    }
    joiner.take(Offset(0), START, part(0, &[1, 3], [10, 20]));
    assert_eq!(joiner.sums(), []);
    // So does one with another number of rows.
    let mut joiner = Joiner::new(0, 1);
    joiner.instruct(&set(&[1, 2]));
    for controller in [0, 1] {
        joiner.answer((0, Offset(9)), START, &token(controller, false, vec![1, 1]));
        joiner.answer((0, Offset(9)), START, &token(controller, true, vec![1, 1]));
    }
    let short = Part { rows: vec![10], ..part(0, &[1, 2], [10, 20]) };
    joiner.take(Offset(0), START, short);
    assert_eq!(joiner.sums(), []);
}

#[test]
fn parts_are_read_back_and_other_bytes_are_none() {
    let streams = Tally { count: 3, digest: SetDigest([1, 2, 3, u64::MAX]) };
    let (plan, start) = (PlanId([7; 32]), Timestamp(20));
    let part = Part { plan, start, lane: 2, streams, rows: vec![5, u64::MAX] };
    let bytes = part.to_bytes();
    assert_eq!(Part::from_bytes(&bytes), Some(part));
    for bad in [&[][..], &[9], &bytes[1..], &bytes[..bytes.len() - 1], &[&bytes[..], &[0]].concat()]
    {
        assert_eq!(Part::from_bytes(bad), None);
    }
}

fn step(events: u64) -> Step {
    Step { events, ..Step::default() }
}

#[test]
fn steps_after_the_last_whole_snapshot_count() {
    let store = Machine::new().open().unwrap();
    let topic = Topic::new("journals").unwrap();
    store.ensure_topic(&topic, 1).unwrap();
    let journal = topic.partition(0);
    let note = |events| {
        let mut batch = Batch::new();
        journal::note(&mut batch, &journal, step(events)).unwrap();
        store.commit(batch).unwrap();
    };
    let save = |bytes: &[u8], pieces| {
        // Each piece in a batch of its own is the worst case: what follows may never be written.
        for batch in journal::snapshot(&journal, bytes).unwrap().into_iter().take(pieces) {
            store.commit(batch).unwrap();
        }
    };
    let read = || {
        let (mut position, mut history) = (Offset(0), History::default());
        journal::read(store.as_ref(), &journal, &mut position, &mut history).unwrap().unwrap();
        history
    };
    note(1);
    let large: Vec<u8> = (0..40_u32 << 20).map(|at| at.to_le_bytes()[1]).collect();
    save(&large, usize::MAX);
    note(2);
    // The process that wrote this went away.
    save(&vec![7; 40 << 20], 1);
    note(3);
    let history = read();
    assert!(history.snapshot.as_deref() == Some(&large[..]), "another snapshot");
    assert_eq!(history.steps, [step(2), step(3)]);
    save(b"small", usize::MAX);
    let history = read();
    assert_eq!(history.snapshot.as_deref(), Some(&b"small"[..]));
    assert_eq!(history.steps, []);
    let mut batch = Batch::new();
    batch.append(&journal, &NewRecord { value: &[9, 9], ..Default::default() }).unwrap();
    store.commit(batch).unwrap();
    let (mut position, mut history) = (Offset(0), History::default());
    let other = journal::read(store.as_ref(), &journal, &mut position, &mut history).unwrap();
    assert_eq!(other, Err(EntryError));
}
