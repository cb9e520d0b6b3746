//! Tests of which process goes on with a joiner, and of what it reads.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::takeover::{NOW, all, group_of, names, store};
use alpheus_encrypted_stream::job::{JobMessage, Opening, SetDigest, Token, WindowSum};
use alpheus_policy::ids::PlanId;
use alpheus_time::{Span, Timestamp};
use alpheus_transport::{Batch, NewRecord, Offset, Ownership, Partition, Store};
use alpheus_worker::group::{Group, WorkerError};
use alpheus_worker::instruction::{Instruction, InstructionRecord};
use alpheus_worker::joiner::{Joiner, KEY, Mark, Positions};
use alpheus_worker::part::Part;
use std::sync::Arc;

const PLAN: PlanId = PlanId([7; 32]);
const DAY: Span = Span::DAY;

fn at(window: u64) -> Timestamp {
    Timestamp(window * 1_000_000)
}

/// A window of no stream and one controller, or of nobody.
fn opening(window: u64, opens: bool) -> Opening {
    let (start, controllers) = (at(window), if opens { vec![0] } else { vec![] });
    Opening {
        plan: PLAN,
        start,
        streams: Vec::new(),
        stream_digest: SetDigest::default(),
        token_digest: SetDigest::of_controllers(&PLAN, start, &controllers),
        controllers,
        masked: false,
        rows: 1,
    }
}

fn token(window: u64) -> Token {
    Token { plan: PLAN, start: at(window), controller: 0, opens: false, rows: vec![window] }
}

fn received(offset: u64, window: u64, opens: bool) -> InstructionRecord {
    let instruction = Instruction::Opening(Arc::new(opening(window, opens)));
    InstructionRecord { offset: Offset(offset), at: at(window), instruction }
}

fn say(store: &dyn Store, to: &Partition, messages: impl Iterator<Item = (u64, Vec<u8>)>) {
    let mut batch = Batch::new();
    for (window, value) in messages {
        let record = NewRecord { value: &value, timestamp: at(window).0, ..Default::default() };
        batch.append(to, &record).unwrap();
    }
    store.commit(batch).unwrap();
}

fn open(store: &dyn Store, windows: std::ops::Range<u64>) {
    let instructions = names().topics.job.instructions.partition(0);
    say(store, &instructions, windows.map(|it| (it, opening(it, true).to_bytes())));
}

fn answer(store: &dyn Store, windows: std::ops::Range<u64>) {
    let tokens = names().topics.job.tokens.partition(0);
    say(store, &tokens, windows.map(|it| (it, token(it).to_bytes())));
}

/// The windows whose sums are written.
fn sums(store: &dyn Store) -> Vec<u64> {
    let records = all(store, &names().topics.job.sums.partition(0));
    let start = |bytes: &[u8]| WindowSum::from_bytes(bytes).unwrap().start.0 / 1_000_000;
    records.iter().map(|record| start(&record.value)).collect()
}

fn joining(store: &Arc<dyn Store>) -> Group {
    let mut group = group_of(store);
    group.change(Ownership::Gained(vec![names().parts.partition(0)])).unwrap();
    group
}

fn turns(group: &mut Group, now: Timestamp) {
    for _ in 0..3 {
        group.turn(now).unwrap();
    }
}

fn forget(store: &dyn Store, partition: &Partition, before: Offset) {
    store.truncate_before(partition, before).unwrap();
    store.sync().unwrap();
}

#[test]
fn a_successor_reads_what_is_still_useful_and_no_more() {
    let store = store();
    let mut first = joining(&store);
    open(store.as_ref(), 0..40);
    answer(store.as_ref(), 0..39);
    turns(&mut first, NOW);
    first.end().unwrap();
    assert_eq!(sums(store.as_ref()), (0..39).collect::<Vec<_>>());

    // Sums that are old are deleted. Answers and opening sets may still be there.
    let job = names().topics.job;
    forget(store.as_ref(), &job.sums.partition(0), Offset(39));
    let mut heir = joining(&store);
    turns(&mut heir, NOW);
    heir.end().unwrap();
    assert_eq!(sums(store.as_ref()), [] as [u64; 0], "windows that are over are summed again");

    // It does not even read the instructions that all are done with.
    forget(store.as_ref(), &job.instructions.partition(0), Offset(39));
    let mut last = joining(&store);
    turns(&mut last, NOW);
    answer(store.as_ref(), 39..40);
    turns(&mut last, NOW);
    last.end().unwrap();
    assert_eq!(sums(store.as_ref()), [39], "what was waited for is lost");
    // What another one has not read comes to light.
    forget(store.as_ref(), &job.instructions.partition(0), Offset(40));
    let parts = names().parts.partition(0);
    let marks = all(store.as_ref(), &parts).into_iter().filter(|it| it.key == KEY).count();
    assert!(marks > 0);
    turns(&mut joining(&store), NOW);
    forget(store.as_ref(), &parts, store.bounds(&parts).unwrap().end);
    let gone = joining(&store).turn(NOW);
    assert!(matches!(gone, Err(WorkerError::Missing { .. })), "{gone:?}");
}

#[test]
fn a_mark_leads_a_successor_past_windows_that_are_over() {
    let mut joiner = Joiner::new(0, 1);
    // The first one waits. Of the second one nothing comes but an answer, and it fails.
    joiner.instruct(&received(10, 1, true));
    joiner.answer((0, Offset(20)), at(2), &token(2));
    joiner.instruct(&received(11, 2, true));
    joiner.answer((0, Offset(21)), at(1), &Token { controller: 5, ..token(1) });
    joiner.answer((0, Offset(22)), at(2), &Token { controller: 5, ..token(2) });
    joiner.sums();
    let read = Positions {
        instructions: Offset(12),
        parts: Offset(30),
        tokens: vec![Offset(40)],
        sums: vec![Offset(50)],
    };
    let mark = joiner.mark(&read);
    let from = |instructions, token| Positions {
        instructions: Offset(instructions),
        tokens: vec![Offset(token)],
        ..read.clone()
    };
    assert_eq!(mark.positions(), from(10, 21));
    assert_eq!(mark.over().collect::<Vec<_>>(), [(PLAN, at(2))]);
    let mut batch = Batch::new();
    let store = store();
    let parts = names().parts.partition(0);
    mark.note(&mut batch, &parts).unwrap();
    store.commit(batch).unwrap();
    let written = &all(store.as_ref(), &parts)[0];
    assert_eq!((&written.key[..], Part::from_bytes(&written.value)), (KEY, None));
    assert_eq!(Mark::from_bytes(&written.value).as_ref(), Some(&mark));
    assert_eq!(Mark::from_bytes(&written.value[1..]), None);

    // The successor reads both sets again, and the answers from there on.
    let mut heir = Joiner::after(&mark, (0, 1));
    heir.instruct(&received(10, 1, true));
    heir.instruct(&received(11, 2, true));
    heir.answer((0, Offset(20)), at(2), &token(2));
    heir.answer((0, Offset(22)), at(2), &token(2));
    heir.answer((0, Offset(41)), at(1), &token(1));
    let sums: Vec<_> = heir.sums().into_iter().map(|(key, _)| key).collect();
    assert_eq!(sums, [format!("{PLAN}/{}", at(1).0)]);
    // All are over, so a mark names none.
    let mark = heir.mark(&Positions { tokens: vec![Offset(42)], ..read.clone() });
    assert_eq!((mark.positions().instructions, mark.over().count()), (Offset(12), 0));
}

#[test]
fn a_window_that_fails_after_its_set_was_fixed_holds_nothing_back() {
    let mut joiner = Joiner::new(0, 1);
    let read = Positions {
        instructions: Offset(9),
        parts: Offset(9),
        tokens: vec![Offset(9)],
        ..Positions::default()
    };
    joiner.instruct(&received(3, 1, true));
    joiner.answer((0, Offset(4)), at(1), &Token { controller: 1, ..token(1) });
    let waiting = joiner.mark(&read).positions();
    assert_eq!((waiting.instructions, &waiting.tokens[..]), (Offset(3), &[Offset(4)][..]));
    joiner.instruct(&received(5, 1, false));
    assert_eq!(joiner.mark(&read).positions(), read);
    joiner.answer((0, Offset(10)), at(1), &token(1));
    assert_eq!(joiner.sums(), []);
}

#[test]
fn a_window_that_nothing_is_heard_of_is_given_up() {
    let mut joiner = Joiner::new(0, 1);
    let days = |days: u64| Timestamp(days * DAY.0);
    let read =
        Positions { instructions: Offset(9), tokens: vec![Offset(9)], ..Positions::default() };
    joiner.instruct(&received(3, 1, true));
    joiner.answer((0, Offset(4)), at(2), &token(2));
    assert_eq!(joiner.give_up(days(7)), []);
    assert_eq!(joiner.mark(&read).positions().instructions, Offset(3));
    // The other one has no set: it would not have opened.
    assert_eq!(joiner.give_up(days(8)), [(PLAN, at(1))]);
    assert_eq!(joiner.mark(&read).positions(), read);
    // Old instructions that are read again, or by a joiner without a mark, begin nothing.
    joiner.instruct(&received(3, 1, true));
    joiner.instruct(&received(4, 3, true));
    joiner.answer((0, Offset(10)), at(3), &token(3));
    assert_eq!((joiner.sums(), joiner.give_up(days(30))), (vec![], vec![]));
}

#[test]
fn partitions_that_were_added_to_events_are_not_read_and_stop_nobody() {
    let store = store();
    let mut group = joining(&store);
    let added = names().topics.events.partition(1);
    group.change(Ownership::Gained(vec![added.clone()])).unwrap();
    open(store.as_ref(), 0..1);
    answer(store.as_ref(), 0..1);
    turns(&mut group, NOW);
    group.change(Ownership::Leaving(vec![added])).unwrap();
    group.end().unwrap();
    assert_eq!(sums(store.as_ref()), [0]);
}
