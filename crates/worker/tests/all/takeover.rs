//! Tests of what steps say, and of the process that goes on with them.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use alpheus_crypto::mac::Tag;
use alpheus_encrypted_stream::frame::Frame;
use alpheus_encrypted_stream::job::{JobMessage, Join, PlanView};
use alpheus_encrypted_stream::transformer::Shape;
use alpheus_node::service::health::Health;
use alpheus_node::service::heartbeat::Heart;
use alpheus_policy::ids::{PlanId, SchemaId, StreamId};
use alpheus_policy::schema::Frames;
use alpheus_time::{Span, Timestamp};
use alpheus_transport::simulation::Machine;
use alpheus_transport::{Batch, Limits, NewRecord, Offset, Ownership, Partition, Record, Store};
use alpheus_worker::Meter;
use alpheus_worker::group::{Group, Names, Work, WorkerError};
use alpheus_worker::instruction::Instruction;
use alpheus_worker::journal::{self, History};
use alpheus_worker::lane::{Lane, Pace, Step};
use std::sync::Arc;
use std::time::Duration;

/// Bytes that a store of these tests takes at once. A step has more to say.
const LIMIT: usize = 12 << 20;
const STREAMS: u32 = 100_000;
pub(crate) const NOW: Timestamp = Timestamp(1_000_000_000);

pub(crate) fn names() -> Names {
    Names::new(1).unwrap()
}

fn view() -> PlanView {
    PlanView {
        plan: PlanId([3; 32]),
        window: Span::seconds(2),
        grace: Span(0),
        from: Timestamp(0),
        gaps: 0,
        rows: vec![vec![0], vec![1]],
    }
}

/// A store with the topics of a group of one partition.
pub(crate) fn store() -> Arc<dyn Store> {
    let store = Machine::new().with_max_staged(LIMIT).open().unwrap();
    let Names { topics, journals, parts, .. } = names();
    let job = &topics.job;
    let own = [&topics.events, &journals, &parts];
    let of_job = [&job.instructions, &job.tokens, &job.summaries, &job.sums, &job.dead_letters];
    for topic in own.into_iter().chain(of_job) {
        store.ensure_topic(topic, 1).unwrap();
    }
    store
}

/// A plan, and the streams that join it.
fn instruct(store: &dyn Store) {
    let instructions = names().topics.job.instructions.partition(0);
    let mut batch = Batch::new();
    let mut say = |value: &[u8]| {
        batch.append(&instructions, &NewRecord { value, ..Default::default() }).unwrap();
        if batch.bytes() > LIMIT / 2 {
            store.commit(std::mem::take(&mut batch)).unwrap();
        }
    };
    say(&view().to_bytes());
    for position in 0..STREAMS {
        let mut stream = StreamId([0; 16]);
        stream.0[..4].copy_from_slice(&position.to_be_bytes());
        say(&Join { stream, plan: view(), position }.to_bytes());
    }
    store.commit(batch).unwrap();
}

fn shape() -> Shape {
    Shape {
        schema: SchemaId([1; 32]),
        words: 2,
        tick: Span::seconds(1),
        events: 100,
        skew: Span(0),
        frames: Frames::Events,
    }
}

/// A process without partitions.
pub(crate) fn group_of(store: &Arc<dyn Store>) -> Group {
    let pace = Pace { disorder: Span(0), idle: Span::seconds(60), skew: Span::seconds(60) };
    let work = Work { names: names(), shape: shape(), pace, commit: Duration::ZERO };
    let counted = (Meter::default(), Heart::watched(&Health::new(), "worker"));
    Group::open(Arc::clone(store), work, None, counted).unwrap()
}

fn group(store: &Arc<dyn Store>) -> Group {
    let mut group = group_of(store);
    let events = names().topics.events.partition(0);
    group.change(Ownership::Gained(vec![events])).unwrap();
    group
}

pub(crate) fn all(store: &dyn Store, partition: &Partition) -> Vec<Record> {
    let (mut records, mut at) = (Vec::new(), store.bounds(partition).unwrap().start);
    loop {
        let fetched = store.read(partition, at, Limits::default()).unwrap();
        let next = fetched.next_offset();
        records.extend(fetched);
        if next == at {
            return records;
        }
        at = next;
    }
}

/// What was said to the service, but not how far lanes are.
fn said(store: &dyn Store) -> Vec<(Vec<u8>, Vec<u8>)> {
    let records = all(store, &names().topics.job.summaries.partition(0));
    let reports = records.iter().filter(|record| !record.key.starts_with(b"progress/"));
    reports.map(|record| (record.key.to_vec(), record.value.to_vec())).collect()
}

fn copy(records: &[(Vec<u8>, Vec<u8>)], to: &Partition, store: &dyn Store) {
    for records in records.chunks(1000) {
        let mut batch = Batch::new();
        for (key, value) in records {
            batch.append(to, &NewRecord { key, value, ..Default::default() }).unwrap();
        }
        store.commit(batch).unwrap();
    }
}

#[test]
fn a_step_that_is_too_long_for_a_transaction_is_said_in_parts_and_once() {
    let whole = store();
    let mut first = group(&whole);
    instruct(whole.as_ref());
    first.turn(NOW).unwrap();
    first.turn(NOW).unwrap();
    let expected = said(whole.as_ref());
    assert_eq!(expected.len(), usize::try_from(STREAMS).unwrap());

    // Another one was killed after the first part.
    let journal = names().journals.partition(0);
    let entries = all(whole.as_ref(), &journal);
    let mut history = History::default();
    entries.iter().take(2).for_each(|entry| history.take(&entry.value).unwrap());
    let part = usize::try_from(history.said.unwrap().messages).unwrap();
    assert!(part > 0 && part < expected.len(), "{part}");
    let cut = store();
    instruct(cut.as_ref());
    let entries: Vec<_> = entries.iter().map(|entry| (vec![], entry.value.to_vec())).collect();
    copy(&entries[..2], &journal, cut.as_ref());
    let Names { topics, group: of, .. } = names();
    copy(&expected[..part], &topics.job.summaries.partition(0), cut.as_ref());
    let mut batch = Batch::new();
    batch.set_position(&of, &journal, Offset(history.last().unwrap()));
    cut.commit(batch).unwrap();

    // Who takes over and goes away again has not said the rest, and no snapshot may hide it.
    let mut brief = group(&cut);
    let events = topics.events.partition(0);
    brief.change(Ownership::Leaving(vec![events])).unwrap();
    let mut heir = group(&cut);
    for _ in 0..3 {
        heir.turn(NOW).unwrap();
    }
    heir.end().unwrap();
    assert!(said(cut.as_ref()) == expected, "another order, or other reports");
    // And nobody says it again.
    let mut last = group(&cut);
    last.turn(NOW).unwrap();
    last.turn(NOW).unwrap();
    last.end().unwrap();
    assert_eq!(said(cut.as_ref()).len(), expected.len());
}

#[test]
fn a_lane_is_taken_over_only_once_its_idle_steps_are_seen() {
    let store = store();
    let (Names { journals, group: of, topics, .. }, mut batch) = (names(), Batch::new());
    let journal = journals.partition(0);
    // Both steps took no frames. The second one's transaction is decided, and cannot be read yet.
    let note = |number, reached| {
        let mut batch = Batch::new();
        let idle = Step { number, reached, ..Step::default() };
        journal::note(&mut batch, &journal, idle).unwrap();
        store.commit(batch).unwrap();
    };
    note(1, 10);
    batch.set_position(&of, &topics.events.partition(0), Offset(0));
    batch.set_position(&of, &journal, Offset(2));
    store.commit(batch).unwrap();
    let mut heir = group(&store);
    for _ in 0..3 {
        // It asks for changes of its group meanwhile.
        heir.turn(NOW).unwrap();
        heir.end().unwrap();
    }
    assert_eq!(all(store.as_ref(), &journal).len(), 1, "it went on without the second step");
    note(2, 20);
    for _ in 0..3 {
        heir.turn(NOW).unwrap();
    }
    heir.end().unwrap();
    let (mut position, mut history) = (Offset(0), History::default());
    journal::read(store.as_ref(), &journal, &mut position, &mut history).unwrap().unwrap();
    assert!(history.snapshot.is_some(), "it did not go on");
}

/// Writes the openings of this many streams.
fn open_sessions(store: &dyn Store, many: u8) -> Partition {
    let (events, mut batch) = (names().topics.events.partition(0), Batch::new());
    for number in 0..many {
        let (t, tag) = (Timestamp(1_000_000), Tag([0; 16]));
        let value = Frame::<Vec<u64>>::Opening { session: 7, t, tag }.to_bytes();
        let record = NewRecord { key: &[number; 16], value: &value, ..Default::default() };
        batch.append(&events, &record).unwrap();
    }
    store.commit(batch).unwrap();
    events
}

#[test]
fn who_would_refuse_other_frames_does_not_go_on() {
    for refused in [0, 1] {
        let store = store();
        open_sessions(store.as_ref(), 3);
        let mut batch = Batch::new();
        let taken = Step { number: 1, events: 3, latest: NOW.0, refused, ..Step::default() };
        journal::note(&mut batch, &names().journals.partition(0), taken).unwrap();
        store.commit(batch).unwrap();
        let went_on = group(&store).turn(NOW);
        let is_refused = matches!(went_on, Err(WorkerError::Keys { partition: 0 }));
        assert_eq!(is_refused, refused == 1, "{went_on:?}");
    }
}

#[test]
fn strangers_do_not_fill_a_lane_and_a_plan_still_adds_streams() {
    let store = store();
    let events = open_sessions(store.as_ref(), 5);
    let records = all(store.as_ref(), &events);
    let mut lane = Lane::new(shape(), (0, 1), Offset(0)).with_most_streams(2);
    lane.instruct(&Instruction::Start(Arc::new(view())));
    for position in [3, 4] {
        let stream = StreamId([position; 16]);
        let (plan, position) = (PlanId([3; 32]), position.into());
        lane.instruct(&Instruction::Join { stream, plan, position });
    }
    lane.instructed(Offset(1));
    lane.take(NOW, &records, None);
    let refused = lane.finish(Timestamp(0)).refused;
    let refused = refused.iter().map(|(record, why)| (record.key[0], *why)).collect::<Vec<_>>();
    assert_eq!(refused, [0, 1, 2].map(|key| (key, "unknown-stream")));
    let mut lane = Lane::new(shape(), (0, 1), Offset(0)).with_most_streams(2);
    lane.take(NOW, &records, None);
    let refused = lane.finish(Timestamp(0)).refused;
    let refused = refused.iter().map(|(record, _)| record.key[0]).collect::<Vec<_>>();
    assert_eq!(refused, [2, 3, 4]);
}

#[test]
fn a_step_is_repeated_only_with_all_of_what_it_took() {
    let missing = |store: &Arc<dyn Store>| match group(store).turn(NOW) {
        Err(WorkerError::Missing { partition, from, to }) => (partition, from.0, to.0),
        other => panic!("{other:?}"),
    };
    // More frames than are there.
    let store_of_events = store();
    let events = open_sessions(store_of_events.as_ref(), 3);
    let note = |store: &dyn Store, step| {
        let mut batch = Batch::new();
        journal::note(&mut batch, &names().journals.partition(0), step).unwrap();
        store.commit(batch).unwrap();
    };
    let step = Step { number: 1, events: 5, latest: NOW.0, ..Step::default() };
    note(store_of_events.as_ref(), step);
    assert_eq!(missing(&store_of_events), (events, 3, 5));
    // More instructions, and deleted ones.
    for deleted in [false, true] {
        let store = store();
        let instructions = names().topics.job.instructions.partition(0);
        copy(&[(vec![], view().to_bytes())], &instructions, store.as_ref());
        let to = if deleted { 1 } else { 2 };
        note(store.as_ref(), Step { number: 1, instructions: to, ..Step::default() });
        if deleted {
            store.truncate_before(&instructions, Offset(1)).unwrap();
            store.sync().unwrap();
        }
        assert_eq!(missing(&store), (instructions, u64::from(!deleted), to));
    }
}

#[test]
fn steps_of_another_version_are_repeated_by_no_one_and_its_snapshot_by_all() {
    let store = store();
    let journal = names().journals.partition(0);
    let mut batch = Batch::new();
    journal::ask_the_time(&mut batch, &journal).unwrap();
    let step = Step { number: 1, ..Step::default() };
    journal::note_as(&mut batch, &journal, step, "0.0.9").unwrap();
    store.commit(batch).unwrap();
    let refused = group(&store).turn(NOW).unwrap_err();
    assert!(matches!(&refused, WorkerError::Version { theirs, .. } if theirs == "0.0.9"));
    assert!(refused.to_string().contains("stop it with SIGTERM"), "{refused}");
    // As the worker of that version leaves it, once it was stopped in order.
    let saved = Lane::new(shape(), (0, 1), Offset(0)).save().unwrap();
    for batch in journal::snapshot(&journal, &saved).unwrap() {
        store.commit(batch).unwrap();
    }
    group(&store).turn(NOW).unwrap();
}
