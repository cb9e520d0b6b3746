//! Tests of what points add to their series.

use super::*;

const CUMULATIVE: Flow = Flow::Cumulative { may_fall: false };
/// The receiver has been there all the time.
const ALL: Horizon = Horizon { begun: 0, forgotten: 0 };

fn targets(scale: u8) -> Vec<Target> {
    vec![Target { position: 0, scale, min: -1000, max: 1000 }; 4]
}

fn whole(value: i64) -> Amounts {
    [(0, Amount::Whole(value))].into()
}

/// What each of these points adds to a series. Nothing, if it came before or may have.
fn run(flow: Flow, scale: u8, points: &[(u64, u64, Amounts)]) -> Vec<Option<i64>> {
    steps(flow, scale, points).into_iter().map(|step| Some(step.ok()??.0)).collect()
}

/// What each of these points adds to a series, and whether two programs send it.
fn steps(
    flow: Flow,
    scale: u8,
    points: &[(u64, u64, Amounts)],
) -> Vec<Result<Option<(i64, bool)>, PointError>> {
    let mut known = None;
    let mut step = |(start, time, amounts): &(u64, u64, Amounts)| {
        let kind = (flow, &Shape::Sum);
        let step = added(known.clone(), kind, (*start, *time), amounts, (&targets(scale), ALL));
        let Some(step) = step? else { return Ok(None) };
        known = Some(step.known);
        Ok(Some((step.added.unwrap().values().sum(), step.overlaps)))
    };
    points.iter().map(&mut step).collect()
}

#[test]
fn cumulative_values_become_differences_and_repetitions_nothing() {
    let points = [
        (1, 10, whole(5)),
        (1, 20, whole(8)),
        (1, 20, whole(8)),
        (1, 15, whole(6)),
        (1, 30, whole(8)),
    ];
    assert_eq!(run(CUMULATIVE, 0, &points), [Some(5), Some(3), None, None, Some(0)]);
    // Without a start, what was counted before the first point is not known.
    let points = [(0, 10, whole(5)), (0, 20, whole(8))];
    assert_eq!(run(CUMULATIVE, 0, &points), [Some(0), Some(3)]);
    // It began again without saying so.
    let points = [(1, 10, whole(5)), (1, 20, whole(2)), (1, 30, whole(3))];
    assert_eq!(run(CUMULATIVE, 0, &points), [Some(5), Some(2), Some(1)]);
    let may_fall = Flow::Cumulative { may_fall: true };
    assert_eq!(run(may_fall, 0, &points), [Some(5), Some(-3), Some(1)]);
}

#[test]
fn what_was_counted_before_the_receiver_began_is_not_counted() {
    let try_first = |horizon, flow, start, time| {
        let kind = (flow, &Shape::Sum);
        added(None, kind, (start, time), &whole(5), (&targets(0), horizon))
    };
    let first = |horizon, flow, start, time| try_first(horizon, flow, start, time).unwrap();
    let begun = Horizon { begun: 100, forgotten: 0 };
    let five = Some(Ok(Increments::from([(0, 5)])));
    let added_by = |step: Option<Step>| step.map(|step| step.added);
    // A program that has run for long, and one that starts later.
    assert_eq!(added_by(first(begun, CUMULATIVE, 90, 110)), Some(Ok(Increments::new())));
    assert_eq!(added_by(first(begun, CUMULATIVE, 101, 110)), five);
    assert_eq!(added_by(first(begun, Flow::Delta, 90, 95)), five);
    // What is known about the old one goes on.
    let known = first(begun, CUMULATIVE, 90, 110).unwrap().known;
    let kind = (CUMULATIVE, &Shape::Sum);
    let next = added(Some(known), kind, (90, 120), &whole(7), (&targets(0), begun));
    assert_eq!(added_by(next.unwrap()), Some(Ok([(0, 2)].into())));
    // A series that was forgotten is not counted again.
    let forgotten = Horizon { begun: 100, forgotten: 200 };
    for flow in [Flow::Delta, CUMULATIVE] {
        assert_eq!(try_first(forgotten, flow, 150, 200), Err(PointError::TooOld));
    }
    assert_eq!(added_by(first(forgotten, CUMULATIVE, 150, 210)), Some(Ok(Increments::new())));
    assert_eq!(added_by(first(forgotten, Flow::Delta, 200, 210)), five);
}

#[test]
fn deltas_add_up_to_what_was_sent_however_they_are_rounded() {
    let points: Vec<_> = (0..30).map(|n| (n, n + 1, [(0, Amount::Real(0.0333))].into())).collect();
    let added = run(Flow::Delta, 2, &points);
    assert_eq!(added.iter().flatten().sum::<i64>(), 100);
    let again = [points[3].clone(), points[3].clone(), points[4].clone()];
    assert_eq!(run(Flow::Delta, 2, &again).iter().filter(|added| added.is_none()).count(), 1);
}

#[test]
fn points_that_come_again_add_nothing_however_many_came_between() {
    let deltas: Vec<_> = (1..200).map(|n| (n, n + 1, whole(1))).collect();
    let moments: Vec<_> = (1..200).map(|n| (0, n, whole(1))).collect();
    for (flow, points) in [(Flow::Delta, deltas), (Flow::Moment, moments)] {
        let twice = [points.clone(), points.clone()].concat();
        let added = run(flow, 0, &twice);
        assert_eq!(added.iter().flatten().sum::<i64>(), 199, "{flow:?}");
    }
    // What comes late is counted once while its gap is remembered.
    let late = [(1, 2, whole(1)), (5, 6, whole(1)), (3, 4, whole(7)), (3, 4, whole(7))];
    assert_eq!(run(Flow::Delta, 0, &late), [Some(1), Some(1), Some(7), None]);
}

#[test]
fn deltas_of_two_programs_that_send_as_one_are_counted_and_said_to_overlap() {
    // One has the chain from 1 to 21. The other's point is between, also with the same times.
    let both = [
        (1, 11, whole(5)),
        (11, 21, whole(3)),
        (4, 14, whole(7)),
        (14, 24, whole(2)),
        (11, 21, whole(4)),
        (4, 14, whole(7)),
        (21, 31, whole(1)),
        (31, 41, whole(6)),
    ];
    let expected = [(5, false), (3, false), (7, true), (2, true), (4, true)];
    let expected = expected.map(|one| Ok(Some(one))).into_iter();
    // A repetition adds nothing; what only touches is no overlap.
    let rest = [Ok(None), Ok(Some((1, true))), Ok(Some((6, false)))];
    let expected: Vec<_> = expected.chain(rest).collect();
    assert_eq!(steps(Flow::Delta, 0, &both), expected);
    // Values without a length overlap if they are of one time.
    let moments = [(0, 5, whole(1)), (0, 5, whole(2)), (0, 6, whole(2))];
    let expected = [(1, false), (2, true), (2, false)].map(|one| Ok(Some(one)));
    assert_eq!(steps(Flow::Moment, 0, &moments), expected);
}

#[test]
fn a_point_that_may_have_come_before_is_refused_and_none_is_lost_in_silence() {
    let many = u64::try_from(REMEMBERED).unwrap();
    let mut points: Vec<_> = (0..many).map(|n| (10 * n + 10, 10 * n + 20, whole(1))).collect();
    let late = (13, 19, whole(4));
    // It is the oldest of one more than are remembered.
    points.extend([late.clone(), late]);
    // Now the first of the others is forgotten, and what is as old with it.
    points.extend([(5000, 5010, whole(1)), (12, 20, whole(4)), (12, 21, whole(9))]);
    let said = steps(Flow::Delta, 0, &points);
    let first = usize::try_from(many).unwrap();
    let expected = [
        Ok(Some((4, true))),
        Err(PointError::TooOld),
        Ok(Some((1, false))),
        Err(PointError::TooOld),
        Ok(Some((9, true))),
    ];
    assert_eq!(said[first..], expected);
    assert!(said[..first].iter().all(|one| *one == Ok(Some((1, false)))));
}

#[test]
fn totals_of_two_programs_with_one_start_are_said_to_overlap() {
    let points = [(1, 10, whole(100)), (1, 11, whole(50)), (1, 20, whole(101))];
    let expected = [(100, false), (50, true), (51, false)].map(|one| Ok(Some(one)));
    assert_eq!(steps(CUMULATIVE, 0, &points), expected);
    // Without a start, a total that falls has begun again.
    let points = [(0, 10, whole(100)), (0, 20, whole(50))];
    assert_eq!(steps(CUMULATIVE, 0, &points)[1], Ok(Some((50, false))));
}

#[test]
fn a_point_without_a_time_is_refused() {
    for flow in [Flow::Delta, Flow::Moment, CUMULATIVE] {
        assert_eq!(steps(flow, 0, &[(1, 0, whole(1))]), [Err(PointError::NoTime)]);
    }
}

#[test]
fn a_state_of_an_earlier_build_goes_on() {
    let earlier = (vec![(1_u64, 10_u64), (12, 20)], whole(5), 7_u64);
    let known = SeriesState::read(&postcard::to_allocvec(&earlier).unwrap()).unwrap();
    assert_eq!((known.until, &known.totals, known.day), (20, &whole(5), 7));
    let kind = (CUMULATIVE, &Shape::Sum);
    let step = added(Some(known), kind, (1, 30), &whole(8), (&targets(0), ALL));
    let step = step.unwrap().unwrap();
    assert_eq!(step.added, Ok([(0, 3)].into()));
    assert_eq!(SeriesState::read(&step.known.bytes()), Some(step.known));
}

#[test]
fn a_total_that_is_refused_is_where_the_next_one_counts_from() {
    let step = |known, time, value| {
        added(known, (CUMULATIVE, &Shape::Sum), (1, time), &whole(value), (&targets(0), ALL))
    };
    let refused = step(None, 10, 10_000_000).unwrap().unwrap();
    assert_eq!(refused.added, Err(PointError::OutOfBounds));
    let next = step(Some(refused.known), 20, 10_000_003).unwrap().unwrap();
    assert_eq!(next.added, Ok([(0, 3)].into()));
}

#[test]
fn buckets_that_move_without_a_restart_add_no_value_twice() {
    // Parts: count, sum, zero, negative, below, above, two buckets, unplaced.
    let targets = vec![Target { position: 0, scale: 0, min: 0, max: 1000 }; 9];
    let shape = Shape::Exponential { scale: 0, low: 0, high: 1 };
    let point = |count, buckets: &[(u16, i64)]| -> Amounts {
        let all = [&[(0, count)], buckets].concat();
        all.into_iter().map(|(part, value)| (part, Amount::Whole(value))).collect()
    };
    let kind = (CUMULATIVE, &shape);
    let step = |known, time, amounts: &Amounts| {
        let step = added(known, kind, (1, time), amounts, (&targets, ALL)).unwrap().unwrap();
        (Some(step.known), step.added.unwrap())
    };
    let (known, first) = step(None, 10, &point(5, &[(6, 3), (7, 2)]));
    assert_eq!(first, [(0, 5), (6, 3), (7, 2)].into());
    // A coarser scale: the buckets are no more the same.
    let (known, moved) = step(known, 20, &point(7, &[(8, 7)]));
    assert_eq!(moved, [(0, 2), (8, 2)].into());
    // A threshold of zero that grew, and no new value.
    let (known, still) = step(known, 30, &point(7, &[(2, 4), (8, 3)]));
    assert_eq!(still, Increments::new());
    let (_, again) = step(known, 40, &point(4, &[(2, 4)]));
    assert_eq!(again, [(0, 4), (2, 4)].into());
}

#[test]
fn what_fits_no_event_is_refused() {
    let add = |flow, value| {
        added(None, (flow, &Shape::Sum), (1, 2), &whole(value), (&targets(0), ALL)).map(|_| ())
    };
    assert_eq!(add(Flow::Delta, 99_000), Ok(()));
    assert_eq!(add(Flow::Delta, 100_000), Err(PointError::OutOfBounds));
    assert_eq!(add(Flow::Moment, 1000), Ok(()));
    assert_eq!(add(Flow::Moment, 1001), Err(PointError::OutOfBounds));
    let real = [(0, Amount::Real(f64::NAN))].into();
    let step = added(None, (Flow::Delta, &Shape::Sum), (1, 2), &real, (&targets(0), ALL));
    assert_eq!(step, Err(PointError::NoNumber));
}
