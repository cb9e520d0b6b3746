//! The transformer: what a window contains, what excludes a stream, and that one stream's
//! trouble affects no other.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "tests may panic, and use numbers that they made themselves"
)]

mod absent;
mod epochs;
pub(crate) mod feed;
mod memory;
mod order;

use crate::summoned_borders::segments;
use alpheus_crypto::mac::Tag;
use alpheus_encrypted_stream::frame::{Frame, FrameError, Link};
use alpheus_encrypted_stream::transformer::{
    FrameEffect, IncompleteError, IngestError, PlanMismatchError, Status, Transformer, WindowError,
    WindowReport,
};
use alpheus_policy::ids::PlanId;
use alpheus_policy::plan::Release;
use alpheus_time::{Span, Timestamp};
use feed::{NOW, Session, TICK, everything, frames, plan, shape, stream, take, window};

/// A transformer of events of two words with a plan over all of `streams`.
fn setup(streams: u32, size: u64) -> (Transformer, PlanId) {
    let mut transformer = Transformer::new(shape(2), 1);
    let id = transformer.register(&plan(streams, size, everything(2))).unwrap();
    (transformer, id)
}

fn close(transformer: &mut Transformer, plan: &PlanId, start: u64, end: u64) -> WindowReport {
    transformer.close(plan, window(start, end), 0).unwrap()
}

/// Why stream 0 was left out of the only window. `frames` are all its frames; stream 1 is
/// complete and sums to 30.
fn fate(frames: &[Vec<u8>]) -> (IncompleteError, Vec<IngestError>) {
    let (mut transformer, id) = setup(2, TICK);
    let mut refused = Vec::new();
    for frame in frames {
        refused.extend(transformer.handle(0, stream(0), frame, NOW).err());
    }
    take(&mut transformer, 1, &feed::frames(2, 2, 1, 3, 10));
    let report = close(&mut transformer, &id, 0, TICK);
    let excluded: Vec<_> = report.excluded().collect();
    let [(0, reason)] = excluded[..] else { panic!("{report:?}") };
    let complete: Vec<u32> = report.complete().map(|stream| stream.position).collect();
    assert_eq!(complete, [1]);
    assert_eq!(transformer.sum(&id, report.window, &[1]).unwrap(), [30, 30]);
    let error = WindowError::NotSummable { position: 0 };
    assert_eq!(transformer.sum(&id, report.window, &[0, 1]), Err(error));
    (reason, refused)
}

#[test]
fn a_complete_window_is_summed_as_the_plan_releases_it() {
    let mut transformer = Transformer::new(shape(3), 1);
    let release = Release { rows: vec![vec![0, 1], vec![2]] };
    let id = transformer.register(&plan(4, 2 * TICK, release)).unwrap();
    take(&mut transformer, 0, &frames(1, 3, 2, 3, 5));
    take(&mut transformer, 1, &frames(2, 3, 2, 0, 0));
    // Stream 2 never appears; 3 comes only after this window.
    let (mut later, opening) = Session::open(7, 2 * TICK, 3);
    take(&mut transformer, 3, &[opening, later.data(2 * TICK + 1, 1)]);

    let report = close(&mut transformer, &id, 0, 2 * TICK);
    let [(0, Status::Complete(data)), (1, Status::Silent(silent))] = &report.streams[..] else {
        panic!("{report:?}");
    };
    assert_eq!(data.check_sum, 6 * 5);
    assert_eq!(silent.check_sum, 0);
    let [segment] = &segments(data)[..] else { panic!("{data:?}") };
    assert_eq!((segment.session, segment.from, segment.to()), (1, Timestamp(0), Timestamp(20)));
    assert_eq!(segment.opening, Some(Tag([1; 16])));
    assert_eq!(segment.events(), 6);
    assert_eq!(segment.borders.iter().map(|b| b.closing).collect::<Vec<_>>(), [false, true]);

    assert_eq!(transformer.sum(&id, report.window, &[0, 1]).unwrap(), [60, 30]);
    assert_eq!(transformer.sum(&id, report.window, &[1]).unwrap(), [0, 0]);
    assert!(transformer.finish(&id, report.window));
    assert!(!transformer.finish(&id, report.window));
}

#[test]
fn a_running_session_needs_no_opening_in_later_windows() {
    let (mut transformer, id) = setup(1, TICK);
    take(&mut transformer, 0, &frames(1, 2, 3, 1, 1));
    close(&mut transformer, &id, 0, TICK);
    let report = close(&mut transformer, &id, TICK, 2 * TICK);
    let stream = report.complete().next().unwrap();
    assert_eq!(segments(stream)[0].opening, None);
    assert_eq!(segments(stream)[0].from, Timestamp(TICK));
}

#[test]
fn a_lost_record_is_a_gap() {
    let mut lost = frames(1, 2, 1, 3, 10);
    lost.remove(2);
    assert_eq!(fate(&lost), (IncompleteError::Gap, vec![]));
}

#[test]
fn a_doubled_record_is_a_duplicate() {
    let mut doubled = frames(1, 2, 1, 3, 10);
    doubled.insert(2, doubled[2].clone());
    assert_eq!(fate(&doubled), (IncompleteError::Duplicate, vec![]));
}

#[test]
fn one_lost_and_one_doubled_record_break_the_chain() {
    let mut frames = frames(1, 2, 1, 3, 10);
    frames[1] = frames[2].clone();
    assert_eq!(fate(&frames), (IncompleteError::BrokenChain, vec![]));
}

#[test]
fn a_lost_border_is_missing() {
    let mut frames = frames(1, 2, 1, 3, 10);
    frames.pop();
    assert_eq!(fate(&frames), (IncompleteError::MissingBorder, vec![]));
}

#[test]
fn an_event_that_skips_a_border_is_refused() {
    let (mut session, opening) = Session::open(1, 0, 2);
    let first = session.data(3, 1);
    let skips = session.data(TICK + 3, 1);
    let (reason, refused) = fate(&[opening, first, skips]);
    assert_eq!((reason, refused), (IncompleteError::MissingBorder, vec![IngestError::CrossesTick]));
}

#[test]
fn an_event_of_another_length_invalidates_its_own_tick() {
    let mut frames = frames(1, 2, 1, 3, 10);
    frames[2].extend([0; 8]);
    let error = FrameError::WrongLength { expected: 2, found: 3 };
    let expected = (IncompleteError::WrongLength, vec![IngestError::Malformed(error)]);
    assert_eq!(fate(&frames), expected);
}

#[test]
fn events_beyond_the_capacity_exclude_their_stream() {
    let mut transformer = Transformer::new(
        alpheus_encrypted_stream::transformer::Shape { tick: Span(100), ..shape(2) },
        1,
    );
    let id = transformer.register(&plan(1, 200, everything(2))).unwrap();
    let (mut session, opening) = Session::open(1, 0, 2);
    let mut all = vec![opening];
    // 30 + 21 events in a window of at most 50, and then 51 in one tick.
    for (tick, events) in [30, 21, 51, 0].into_iter().enumerate() {
        let start = tick as u64 * 100;
        all.extend((1..=events).map(|i| session.data(start + i, 1)));
        all.push(session.border(start + 100));
    }
    let refused: Vec<_> =
        all.iter().filter_map(|f| transformer.handle(0, stream(0), f, NOW).err()).collect();
    assert_eq!(refused, [IngestError::OverCapacity]);
    for (start, end) in [(0, 200), (200, 400)] {
        let report = close(&mut transformer, &id, start, end);
        assert_eq!(report.excluded().collect::<Vec<_>>(), [(0, IncompleteError::OverCapacity)]);
    }
}

#[test]
fn a_border_that_miscounts_completes_nothing() {
    let (mut session, opening) = Session::open(1, 0, 2);
    let data = session.data(3, 1);
    let link = Link { session: 1, previous: Timestamp(3), t: Timestamp(TICK) };
    let border = Frame::Border { link, count: 2, tag: Tag([0; 16]), words: vec![0; 2] };
    assert_eq!(fate(&[opening, data, border.to_bytes()]).0, IncompleteError::Gap);
}

#[test]
fn a_frozen_tick_never_changes() {
    let (mut transformer, id) = setup(1, TICK);
    let all = frames(1, 2, 2, 3, 10);
    for (i, frame) in all.iter().take(5).enumerate() {
        let accepted = transformer.handle(0, stream(0), frame, NOW).unwrap();
        let expected =
            [FrameEffect::Opened, FrameEffect::Added, FrameEffect::Added, FrameEffect::Added];
        let frozen = FrameEffect::Froze(Timestamp(TICK));
        assert_eq!(accepted, expected.get(i).copied().unwrap_or(frozen));
    }
    for frame in &all[1..5] {
        assert_eq!(transformer.handle(0, stream(0), frame, NOW), Err(IngestError::Frozen));
    }
    take(&mut transformer, 0, &all[5..]);
    let report = close(&mut transformer, &id, 0, TICK);
    assert_eq!(transformer.sum(&id, report.window, &[0]).unwrap(), [30, 30]);
    for frame in &all[1..5] {
        assert_eq!(transformer.handle(0, stream(0), frame, NOW), Err(IngestError::Late));
    }
}

#[test]
fn misplaced_frames_are_refused_with_the_reason() {
    let (mut transformer, _) = setup(1, TICK);
    let mut refusal = |frame: &[u8]| transformer.handle(0, stream(0), frame, NOW).unwrap_err();
    let (mut early, _) = Session::open(5, 0, 2);
    assert_eq!(refusal(&early.data(3, 1)), IngestError::UnknownSession);
    let (_, off) = Session::open(5, 3, 2);
    assert_eq!(refusal(&off), IngestError::BorderOffTick);
    assert_eq!(refusal(&[]), IngestError::Malformed(FrameError::Empty));

    let (mut session, opening) = Session::open(1, 20, 2);
    let mut take = |frame: &[u8]| transformer.handle(0, stream(0), frame, NOW);
    take(&opening).unwrap();
    assert_eq!(take(&opening), Err(IngestError::SessionKnown));
    let (mut before, _) = Session::open(1, 0, 2);
    assert_eq!(take(&before.data(13, 1)), Err(IngestError::BeforeOpening));
    assert_eq!(take(&session.clone().data(30, 1)), Err(IngestError::DataOnTick));
    assert_eq!(take(&session.clone().border(25)), Err(IngestError::BorderOffTick));
    take(&session.data(25, 1)).unwrap();
    let (_, past) = Session::open(2, 20, 2);
    assert_eq!(take(&past), Err(IngestError::Backdated));
    take(&session.closing(30)).unwrap();
    assert_eq!(take(&session.data(31, 1)), Err(IngestError::SessionEnded));
    assert_eq!(transformer.handle(0, stream(99), &opening, NOW), Err(IngestError::UnknownStream));
}

#[test]
fn a_dead_session_loses_its_tail_and_the_next_continues() {
    let (mut transformer, id) = setup(1, TICK);
    let (mut dead, opening) = Session::open(1, 0, 2);
    take(&mut transformer, 0, &[opening, dead.data(3, 1), dead.border(10), dead.data(12, 1)]);
    let (mut next, opening) = Session::open(2, 20, 2);
    take(&mut transformer, 0, &[opening]);
    // Frames of the dead session that are still in transit come too late.
    let late = transformer.handle(0, stream(0), &dead.clone().data(21, 1), NOW);
    assert_eq!(late, Err(IngestError::SessionEnded));
    take(&mut transformer, 0, &[next.data(25, 7), next.border(30)]);

    assert_eq!(close(&mut transformer, &id, 0, 10).complete().count(), 1);
    let report = close(&mut transformer, &id, 10, 20);
    assert_eq!(report.excluded().collect::<Vec<_>>(), [(0, IncompleteError::SessionDied)]);
    let report = close(&mut transformer, &id, 20, 30);
    assert_eq!(segments(report.complete().next().unwrap())[0].opening, Some(Tag([2; 16])));
    assert_eq!(transformer.sum(&id, report.window, &[0]).unwrap(), [7, 7]);
}

#[test]
fn sessions_tile_a_window() {
    let (mut transformer, id) = setup(1, 4 * TICK);
    let (mut first, opening) = Session::open(1, 0, 2);
    take(&mut transformer, 0, &[opening, first.data(1, 1), first.border(10), first.closing(20)]);
    let (mut second, opening) = Session::open(2, 20, 2);
    take(&mut transformer, 0, &[opening, second.data(21, 4), second.border(30)]);
    take(&mut transformer, 0, &[second.border(40)]);
    let report = close(&mut transformer, &id, 0, 40);
    let stream = report.complete().next().unwrap();
    let parts: Vec<_> = segments(stream).iter().map(|s| (s.session, s.from.0, s.to().0)).collect();
    assert_eq!(parts, [(1, 0, 20), (2, 20, 40)]);
    assert_eq!(transformer.sum(&id, report.window, &[0]).unwrap(), [5, 5]);
}

#[test]
fn ticks_between_sessions_may_be_missing_only_if_allowed() {
    for (gaps, complete) in [(0, 0), (1, 1), (2, 1)] {
        let (mut transformer, id) = setup(1, 3 * TICK);
        let (mut first, opening) = Session::open(1, 0, 2);
        take(
            &mut transformer,
            0,
            &[opening, first.data(1, 1), first.border(10), first.data(11, 9)],
        );
        let (mut second, opening) = Session::open(2, 20, 2);
        take(&mut transformer, 0, &[opening, second.data(21, 4), second.border(30)]);
        let report = transformer.close(&id, window(0, 30), gaps).unwrap();
        assert_eq!(report.complete().count(), complete, "{gaps}");
        if complete == 1 {
            assert_eq!(transformer.sum(&id, report.window, &[0]).unwrap(), [5, 5]);
        } else {
            let excluded = vec![(0, IncompleteError::SessionDied)];
            assert_eq!(report.excluded().collect::<Vec<_>>(), excluded);
        }
    }
    // A hole within one session is never tiled over.
    let (mut transformer, id) = setup(1, 3 * TICK);
    let mut holed = frames(1, 2, 3, 2, 1);
    holed.remove(4);
    take(&mut transformer, 0, &holed);
    let report = transformer.close(&id, window(0, 30), 3).unwrap();
    assert_eq!(report.excluded().collect::<Vec<_>>(), [(0, IncompleteError::Gap)]);
}

#[test]
fn a_stream_that_leaves_within_a_window_is_not_in_it() {
    let (mut transformer, id) = setup(1, 2 * TICK);
    take(&mut transformer, 0, &frames(1, 2, 1, 1, 1));
    let report = close(&mut transformer, &id, 0, 20);
    assert_eq!(report.excluded().collect::<Vec<_>>(), [(0, IncompleteError::Offline)]);
    assert_eq!(close(&mut transformer, &id, 20, 40).streams, []);
}

#[test]
fn each_plan_keeps_its_own_windows() {
    let mut transformer = Transformer::new(shape(2), 1);
    let short = transformer.register(&plan(2, TICK, everything(2))).unwrap();
    let sum = Release { rows: vec![vec![0, 1], vec![1]] };
    let long = transformer.register(&plan(1, 2 * TICK, sum)).unwrap();
    take(&mut transformer, 0, &frames(1, 2, 2, 2, 3));
    take(&mut transformer, 1, &frames(2, 2, 2, 1, 100));
    for start in [0, 10] {
        let report = close(&mut transformer, &short, start, start + 10);
        assert_eq!(transformer.sum(&short, report.window, &[0, 1]).unwrap(), [106, 106]);
    }
    let report = close(&mut transformer, &long, 0, 20);
    assert_eq!(transformer.sum(&long, report.window, &[0]).unwrap(), [24, 12]);
    assert!(transformer.unregister(&short));
    assert!(!transformer.unregister(&short));
    let unknown = Err(WindowError::UnknownPlan);
    assert_eq!(transformer.sum(&short, window(0, 10), &[]), unknown);
}

#[test]
fn a_plan_that_starts_late_reports_incomplete_ticks() {
    let mut transformer = Transformer::new(shape(2), 1);
    transformer.admit(stream(0));
    let all = frames(1, 2, 2, 2, 3);
    take(&mut transformer, 0, &all[..2]);
    let id = transformer.register(&plan(1, TICK, everything(2))).unwrap();
    take(&mut transformer, 0, &all[2..]);
    let report = close(&mut transformer, &id, 0, 10);
    assert_eq!(report.excluded().collect::<Vec<_>>(), [(0, IncompleteError::BeforePlan)]);
    assert_eq!(close(&mut transformer, &id, 10, 20).complete().count(), 1);
}

#[test]
fn plans_that_do_not_fit_are_refused() {
    let mut transformer = Transformer::new(shape(2), 1);
    let good = plan(2, TICK, everything(2));
    let mut refused = |change: &dyn Fn(&mut alpheus_policy::plan::Plan)| {
        let mut plan = good.clone();
        change(&mut plan);
        transformer.register(&plan).unwrap_err()
    };
    assert_eq!(refused(&|p| p.schema.0 = [0; 32]), PlanMismatchError::Schema);
    assert_eq!(refused(&|p| p.window = Span(0)), PlanMismatchError::Window);
    assert_eq!(refused(&|p| p.window = Span(15)), PlanMismatchError::Window);
    assert_eq!(refused(&|p| p.release.rows[0] = vec![2]), PlanMismatchError::Release { row: 0 });
    assert_eq!(refused(&|p| p.release.rows[1] = vec![0]), PlanMismatchError::Release { row: 1 });
    assert_eq!(refused(&|p| p.release.rows.clear()), PlanMismatchError::Release { row: 0 });
    assert_eq!(refused(&|p| p.streams.swap(0, 1)), PlanMismatchError::Streams);
    transformer.register(&good).unwrap();
    assert_eq!(transformer.register(&good), Err(PlanMismatchError::Running));
}

#[test]
fn windows_close_once_and_in_order() {
    let (mut transformer, id) = setup(1, TICK);
    take(&mut transformer, 0, &frames(1, 2, 4, 1, 1));
    let mut attempt = |start, end| transformer.close(&id, window(start, end), 0).map(|_| ());
    assert_eq!(attempt(5, 15), Err(WindowError::NoSuchWindow));
    assert_eq!(attempt(0, 20), Err(WindowError::NoSuchWindow));
    assert_eq!(attempt(10, 20), Err(WindowError::OutOfOrder));
    assert_eq!(attempt(0, 10), Ok(()));
    assert_eq!(attempt(0, 10), Err(WindowError::AlreadyClosed));
    assert_eq!(transformer.sum(&id, window(10, 20), &[0]), Err(WindowError::NotClosed));
    let twice = Err(WindowError::NotSummable { position: 0 });
    assert_eq!(transformer.sum(&id, window(0, 10), &[0, 0]), twice);
    transformer.finish(&id, window(0, 10));
    assert_eq!(transformer.sum(&id, window(0, 10), &[0]), Err(WindowError::NotClosed));
}

#[test]
fn a_stream_ahead_within_the_skew_closes_no_other_streams_window() {
    let shape = alpheus_encrypted_stream::transformer::Shape { skew: Span(60), ..shape(2) };
    let mut transformer = Transformer::new(shape, 1);
    let id = transformer.register(&plan(2, TICK, everything(2))).unwrap();
    let now = Timestamp(5);
    let (mut honest, opening) = Session::open(1, 0, 2);
    transformer.handle(0, stream(0), &opening, now).unwrap();
    transformer.handle(0, stream(0), &honest.data(4, 7), now).unwrap();
    let (_, ahead) = Session::open(2, 60, 2);
    transformer.handle(0, stream(1), &ahead, now).unwrap();
    assert_eq!(transformer.closable_window(&id), None, "it is 5, and the window ends at 10");
}
