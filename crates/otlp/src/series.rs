//! What a point adds to what was counted before it: cumulative values become differences, and a
//! point that comes again adds nothing.

use crate::mapping::{SUM, Shape, Target};
use crate::point::{Amount, Amounts, Flow, PointError};
use alpheus_policy::decimal::parse_scaled;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Points of which a repetition is noticed.
const REMEMBERED: usize = 16;
/// The most events that one point may be split into.
const MAX_PARTS: i64 = 100;

/// What is known of a series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesState {
    /// Start and time of the last points.
    seen: Vec<(u64, u64)>,
    /// Cumulative: the last point's amounts. Deltas: what rounding has left over.
    totals: Amounts,
}

/// What a point adds, by part, in units of the last place.
pub type Added = BTreeMap<u16, i64>;

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
    targets: &[Target],
) -> Result<Option<(SeriesState, Added)>, PointError> {
    let is_first = known.is_none();
    let mut known = known.unwrap_or_default();
    let is_late = matches!(flow, Flow::Cumulative { .. })
        && known.seen.last().is_some_and(|(_, last)| time <= *last);
    if is_late || known.seen.contains(&(start, time)) {
        return Ok(None);
    }
    let added = match flow {
        Flow::Moment => scaled_all(amounts, targets)?,
        Flow::Delta => delta(&mut known, amounts, targets)?,
        // When it began to count is not known: only what follows is.
        Flow::Cumulative { .. } if is_first && start == 0 => Added::new(),
        Flow::Cumulative { may_fall } => {
            difference(&known.totals, amounts, targets, (shape, may_fall))?
        }
    };
    if let Flow::Cumulative { .. } = flow {
        scaled_all(amounts, targets)?;
        known.totals.clone_from(amounts);
    }
    fits(&added, flow, targets)?;
    known.seen.push((start, time));
    if known.seen.len() > REMEMBERED {
        known.seen.remove(0);
    }
    Ok(Some((known, added)))
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

/// What was added since the last point. Counts that fell without a new start began again.
fn difference(
    before: &Amounts,
    now: &Amounts,
    targets: &[Target],
    (shape, may_fall): (&Shape, bool),
) -> Result<Added, PointError> {
    let (before, now) = (scaled_all(before, targets)?, scaled_all(now, targets)?);
    let is_sum_of_values = |part: u16| part == SUM && *shape != Shape::Sum;
    let fell = |(part, value): (&u16, &i64)| {
        !is_sum_of_values(*part) && now.get(part).copied().unwrap_or(0) < *value
    };
    if !may_fall && before.iter().any(fell) {
        return Ok(now);
    }
    let mut added = Added::new();
    for part in before.keys().chain(now.keys()) {
        let of = |all: &Added| all.get(part).copied().unwrap_or(0);
        let value = of(&now).checked_sub(of(&before)).ok_or(PointError::NoNumber)?;
        if value != 0 {
            added.insert(*part, value);
        }
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
            let step = added(known.clone(), kind, (*start, *time), amounts, &targets(scale));
            let (next, added) = step.unwrap()?;
            known = Some(next);
            Some(added.values().sum())
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
    fn deltas_add_up_to_what_was_sent_however_they_are_rounded() {
        let points: Vec<_> =
            (0..30).map(|n| (n, n + 1, [(0, Amount::Real(0.0333))].into())).collect();
        let added = run(Flow::Delta, 2, &points);
        assert_eq!(added.iter().flatten().sum::<i64>(), 100);
        let again = [points[3].clone(), points[3].clone(), points[4].clone()];
        assert_eq!(run(Flow::Delta, 2, &again).iter().filter(|added| added.is_none()).count(), 1);
    }

    #[test]
    fn what_fits_no_event_is_refused() {
        let add = |flow, value| {
            added(None, (flow, &Shape::Sum), (1, 2), &whole(value), &targets(0)).map(|_| ())
        };
        assert_eq!(add(Flow::Delta, 99_000), Ok(()));
        assert_eq!(add(Flow::Delta, 100_000), Err(PointError::OutOfBounds));
        assert_eq!(add(Flow::Moment, 1000), Ok(()));
        assert_eq!(add(Flow::Moment, 1001), Err(PointError::OutOfBounds));
        let real = [(0, Amount::Real(f64::NAN))].into();
        let step = added(None, (Flow::Delta, &Shape::Sum), (1, 2), &real, &targets(0));
        assert_eq!(step, Err(PointError::NoNumber));
    }
}
