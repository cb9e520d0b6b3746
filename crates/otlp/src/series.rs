//! What a point adds to what was counted before it: cumulative values become differences, and a
//! point that comes again adds nothing.

use crate::mapping::{SUM, Shape, Target};
use crate::point::{Amount, Amounts, Flow, PointError};
use alpheus_policy::decimal::parse_scaled;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Spans of time with gaps between them that are remembered. Of more, the oldest count as one, so a
/// point between them adds nothing.
const REMEMBERED: usize = 16;
/// Where a number, or the count of a histogram's values, stands among the parts.
const COUNT: u16 = 0;
/// The most events that one point may be split into.
const MAX_PARTS: i64 = 100;

/// What is known of a series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesState {
    /// Spans that points were of, in order, those that touch as one. Cumulative: the last point.
    seen: Vec<(u64, u64)>,
    /// Cumulative: the last point's amounts. Deltas: what rounding has left over.
    totals: Amounts,
    /// The last day on which a point came, by the receiver's clock, in days since 1970.
    pub(crate) day: u64,
}

/// Since when the receiver would know a series, in nanoseconds of its clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Horizon {
    /// It began.
    pub begun: u64,
    /// Series that had no point since then were forgotten.
    pub forgotten: u64,
}

/// What a point adds, by part, in units of the last place.
pub type Added = BTreeMap<u16, i64>;

/// What is known of a series after a point, and what that adds. A total that is refused is known all
/// the same: what follows is counted from there.
pub type Step = (SeriesState, Result<Added, PointError>);

/// What a point of a series adds, and what is known then. Nothing, if it came before.
///
/// For [`Flow::Cumulative`], `known` is of the series and the point's start alone: a program
/// that starts again begins another series.
///
/// # Errors
/// [`PointError`]; then nothing is known that was not before.
pub fn added(
    known: Option<SeriesState>,
    (flow, shape): (Flow, &Shape),
    (start, time): (u64, u64),
    amounts: &Amounts,
    (targets, horizon): (&[Target], Horizon),
) -> Result<Option<Step>, PointError> {
    let is_first = known.is_none();
    // It may have been counted before its series was forgotten.
    if is_first && time != 0 && time <= horizon.forgotten {
        return Ok(None);
    }
    let mut known = known.unwrap_or_default();
    let is_late = matches!(flow, Flow::Cumulative { .. })
        && known.seen.last().is_some_and(|(_, last)| time <= *last);
    let span = match flow {
        Flow::Delta if start != 0 => (start.min(time), time),
        Flow::Delta | Flow::Moment => (time, time),
        Flow::Cumulative { .. } => (start, time),
    };
    let is_within = |own: &(u64, u64)| own.0 <= span.0 && span.1 <= own.1;
    if is_late || !matches!(flow, Flow::Cumulative { .. }) && known.seen.iter().any(is_within) {
        return Ok(None);
    }
    let added = match flow {
        Flow::Moment => scaled_all(amounts, targets)?,
        Flow::Delta => delta(&mut known, amounts, targets)?,
        // It began to count before anybody here did, or nobody knows when: only what follows is known to be new.
        Flow::Cumulative { .. } if is_first && start <= horizon.begun.max(horizon.forgotten) => {
            scaled_all(amounts, targets)?;
            Added::new()
        }
        Flow::Cumulative { may_fall } => {
            scaled_all(amounts, targets)?;
            let added = difference(&known.totals, amounts, targets, (shape, may_fall));
            let added = added.and_then(|added| fits(&added, flow, targets).map(|()| added));
            known.totals.clone_from(amounts);
            known.seen = vec![span];
            return Ok(Some((known, added)));
        }
    };
    fits(&added, flow, targets)?;
    if let Flow::Cumulative { .. } = flow {
        known.totals.clone_from(amounts);
        known.seen = vec![span];
    } else {
        remember(&mut known.seen, span);
    }
    Ok(Some((known, Ok(added))))
}

/// Adds a span to those before. Spans that touch become one, and so do the oldest of too many.
fn remember(seen: &mut Vec<(u64, u64)>, (start, time): (u64, u64)) {
    let mut span = (start, time);
    seen.retain(|own| {
        let touches = own.0 < own.1 && start < time && (own.1 == start || time == own.0);
        if touches {
            span = (span.0.min(own.0), span.1.max(own.1));
        }
        !touches
    });
    let place = seen.partition_point(|own| own.1 < span.1);
    seen.insert(place, span);
    if seen.len() > REMEMBERED {
        let oldest = seen.remove(0);
        if let Some(next) = seen.first_mut() {
            next.0 = next.0.min(oldest.0);
        }
    }
}

/// Amounts with a point are rounded as they run, so that what was sent is what is counted in all.
fn delta(
    known: &mut SeriesState,
    amounts: &Amounts,
    targets: &[Target],
) -> Result<Added, PointError> {
    let mut added = Added::new();
    for (part, amount) in amounts {
        let scale = target(targets, *part)?.scale;
        let value = match amount {
            Amount::Whole(_) => scaled(*amount, scale)?,
            Amount::Real(value) => {
                let left = match known.totals.get(part) {
                    Some(Amount::Real(left)) => *left,
                    _ => 0.0,
                };
                let before = scaled(Amount::Real(left), scale)?;
                let running = left + value;
                let after = scaled(Amount::Real(running), scale)?;
                known.totals.insert(*part, Amount::Real(running.fract()));
                after.checked_sub(before).ok_or(PointError::NoNumber)?
            }
        };
        if value != 0 {
            added.insert(*part, value);
        }
    }
    Ok(added)
}

/// What was added since the last point. A number or a count of values that fell without a new start
/// began again. If only buckets fell, their bounds have moved, as those of an exponential histogram
/// do with its scale: nobody knows then in which of them the new values are.
fn difference(
    before: &Amounts,
    now: &Amounts,
    targets: &[Target],
    (shape, may_fall): (&Shape, bool),
) -> Result<Added, PointError> {
    let (before, now) = (scaled_all(before, targets)?, scaled_all(now, targets)?);
    let of = |all: &Added, part: u16| all.get(&part).copied().unwrap_or(0);
    if !may_fall && of(&now, COUNT) < of(&before, COUNT) {
        return Ok(now);
    }
    let has_buckets = matches!(shape, Shape::Histogram { .. } | Shape::Exponential { .. });
    let is_bucket = |part: u16| has_buckets && part != COUNT && part != SUM;
    let has_moved =
        before.keys().any(|part| is_bucket(*part) && of(&now, *part) < of(&before, *part));
    let mut added = Added::new();
    for part in before.keys().chain(now.keys()).filter(|part| !has_moved || !is_bucket(**part)) {
        let value = of(&now, *part).checked_sub(of(&before, *part)).ok_or(PointError::NoNumber)?;
        if value != 0 {
            added.insert(*part, value);
        }
    }
    if let Some(count) = added.get(&COUNT).copied().filter(|_| has_moved) {
        let unplaced = u16::try_from(targets.len()).ok().and_then(|parts| parts.checked_sub(1));
        added.insert(unplaced.ok_or(PointError::Malformed)?, count);
    }
    Ok(added)
}

/// Whether each amount fits into events of its attribute. Only what adds up can be split.
fn fits(added: &Added, flow: Flow, targets: &[Target]) -> Result<(), PointError> {
    for (part, value) in added {
        let own = target(targets, *part)?;
        let bound = if *value < 0 { own.min.min(0) } else { own.max.max(0) };
        let is_inside = match flow {
            Flow::Moment => (own.min..=own.max).contains(value),
            _ => *value == 0 || bound != 0 && *value / bound < MAX_PARTS,
        };
        if !is_inside {
            return Err(PointError::OutOfBounds);
        }
    }
    Ok(())
}

fn target(targets: &[Target], part: u16) -> Result<Target, PointError> {
    targets.get(usize::from(part)).copied().ok_or(PointError::Malformed)
}

fn scaled_all(amounts: &Amounts, targets: &[Target]) -> Result<Added, PointError> {
    let one = |(part, amount): (&u16, &Amount)| {
        Ok((*part, scaled(*amount, target(targets, *part)?.scale)?))
    };
    amounts.iter().map(one).collect()
}

/// An amount in units of the last place, rounded once.
fn scaled(amount: Amount, scale: u8) -> Result<i64, PointError> {
    let text = match amount {
        Amount::Whole(value) => value.to_string(),
        Amount::Real(value) if value.is_finite() => value.to_string(),
        Amount::Real(_) => return Err(PointError::NoNumber),
    };
    parse_scaled(&text, scale).map_err(|_| PointError::NoNumber)
}

#[cfg(test)]
mod tests {
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

    /// What each of these points adds to a series.
    fn run(flow: Flow, scale: u8, points: &[(u64, u64, Amounts)]) -> Vec<Option<i64>> {
        let mut known = None;
        let mut step = |(start, time, amounts): &(u64, u64, Amounts)| {
            let kind = (flow, &Shape::Sum);
            let step = added(known.clone(), kind, (*start, *time), amounts, (&targets(scale), ALL));
            let (next, added) = step.unwrap()?;
            known = Some(next);
            Some(added.unwrap().values().sum())
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
        let first = |horizon, flow, start, time| {
            let kind = (flow, &Shape::Sum);
            added(None, kind, (start, time), &whole(5), (&targets(0), horizon)).unwrap()
        };
        let begun = Horizon { begun: 100, forgotten: 0 };
        let five = Some(Ok(Added::from([(0, 5)])));
        let added_by = |step: Option<Step>| step.map(|(_, added)| added);
        // A program that has run for long, and one that starts later.
        assert_eq!(added_by(first(begun, CUMULATIVE, 90, 110)), Some(Ok(Added::new())));
        assert_eq!(added_by(first(begun, CUMULATIVE, 101, 110)), five);
        assert_eq!(added_by(first(begun, Flow::Delta, 90, 95)), five);
        // What is known of the old one goes on.
        let (known, _) = first(begun, CUMULATIVE, 90, 110).unwrap();
        let kind = (CUMULATIVE, &Shape::Sum);
        let next = added(Some(known), kind, (90, 120), &whole(7), (&targets(0), begun));
        assert_eq!(added_by(next.unwrap()), Some(Ok([(0, 2)].into())));
        // A series that was forgotten is not counted again.
        let forgotten = Horizon { begun: 100, forgotten: 200 };
        assert_eq!(first(forgotten, Flow::Delta, 150, 200), None);
        assert_eq!(first(forgotten, CUMULATIVE, 150, 200), None);
        assert_eq!(added_by(first(forgotten, CUMULATIVE, 150, 210)), Some(Ok(Added::new())));
        assert_eq!(added_by(first(forgotten, Flow::Delta, 200, 210)), five);
    }

    #[test]
    fn deltas_add_up_to_what_was_sent_however_they_are_rounded() {
        let points: Vec<_> =
            (0..30).map(|n| (n, n + 1, [(0, Amount::Real(0.0333))].into())).collect();
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
    fn a_total_that_is_refused_is_where_the_next_one_counts_from() {
        let step = |known, time, value| {
            added(known, (CUMULATIVE, &Shape::Sum), (1, time), &whole(value), (&targets(0), ALL))
        };
        let (known, refused) = step(None, 10, 10_000_000).unwrap().unwrap();
        assert_eq!(refused, Err(PointError::OutOfBounds));
        let (_, next) = step(Some(known), 20, 10_000_003).unwrap().unwrap();
        assert_eq!(next, Ok([(0, 3)].into()));
    }

    #[test]
    fn buckets_that_move_without_a_restart_add_no_value_twice() {
        // Parts: count, sum, zero, negative, two buckets, unplaced.
        let targets = vec![Target { position: 0, scale: 0, min: 0, max: 1000 }; 7];
        let shape = Shape::Exponential { scale: 0, low: 0, high: 1 };
        let point = |count, buckets: &[(u16, i64)]| -> Amounts {
            let all = [&[(0, count)], buckets].concat();
            all.into_iter().map(|(part, value)| (part, Amount::Whole(value))).collect()
        };
        let kind = (CUMULATIVE, &shape);
        let step = |known, time, amounts: &Amounts| {
            let (known, added) =
                added(known, kind, (1, time), amounts, (&targets, ALL)).unwrap().unwrap();
            (Some(known), added.unwrap())
        };
        let (known, first) = step(None, 10, &point(5, &[(4, 3), (5, 2)]));
        assert_eq!(first, [(0, 5), (4, 3), (5, 2)].into());
        // A coarser scale: the buckets are no more the same.
        let (known, moved) = step(known, 20, &point(7, &[(6, 7)]));
        assert_eq!(moved, [(0, 2), (6, 2)].into());
        // A threshold of zero that grew, and no new value.
        let (known, still) = step(known, 30, &point(7, &[(2, 4), (6, 3)]));
        assert_eq!(still, Added::new());
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
}
