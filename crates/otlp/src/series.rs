//! What a point adds to what was counted before it: cumulative values become differences, and a
//! point that comes again adds nothing.

use crate::mapping::{SUM, Shape, Target};
use crate::point::{Amount, Amounts, Flow, PointError};
use alpheus_policy::decimal::parse_scaled;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The last points of a series that are remembered. An older one that comes may be a repetition.
const REMEMBERED: usize = 32;
/// Where a number, or the count of a histogram's values, stands among the parts.
const COUNT: u16 = 0;
/// The most events that one point may be split into.
const MAX_PARTS: i64 = 100;
/// What a stored state begins with. One of an earlier build begins with a smaller number.
const FORMAT: u8 = 0x82;

/// What is known about a series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesState {
    /// Deltas and moments: the last points, in the order of their times.
    seen: Vec<CountedPoint>,
    /// Cumulative: the time of the last point. Otherwise the latest time of those that are no
    /// longer remembered.
    until: u64,
    /// Cumulative: the last point's amounts. Deltas: what rounding has left over.
    totals: Amounts,
    /// The last day on which a point came, by the receiver's clock, in days since 1970.
    pub(crate) day: u64,
}

/// A point that was counted. One that is equal is the same point, which came again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct CountedPoint {
    start: u64,
    time: u64,
    /// Of its amounts.
    digest: u64,
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
pub type Increments = BTreeMap<u16, i64>;

/// What a point does to its series.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What is known about the series after it.
    pub known: SeriesState,
    /// What it adds. A refused total is still remembered: the next one is counted from
    /// there.
    pub added: Result<Increments, PointError>,
    /// Whether it cannot be of the program that sent the points before: their times overlap, or a
    /// total fell that has not begun again. Two programs send as one.
    pub overlaps: bool,
}

impl SeriesState {
    /// Reads a stored state.
    pub(crate) fn read(bytes: &[u8]) -> Option<SeriesState> {
        let (first, rest) = bytes.split_first()?;
        if *first == FORMAT {
            return postcard::from_bytes(rest).ok();
        }
        // An earlier build remembered spans of time.
        let (spans, totals, day): (Vec<(u64, u64)>, Amounts, u64) =
            postcard::from_bytes(bytes).ok()?;
        let until = spans.last().map_or(0, |(_, time)| *time);
        Some(SeriesState { seen: Vec::new(), until, totals, day })
    }

    /// The state as it is stored.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        [vec![FORMAT], postcard::to_allocvec(self).unwrap_or_default()].concat()
    }

    /// Adds a point to those that are remembered.
    fn remember(&mut self, own: CountedPoint) {
        let place = self.seen.partition_point(|other| other.time <= own.time);
        self.seen.insert(place, own);
        if self.seen.len() > REMEMBERED {
            self.until = self.until.max(self.seen.remove(0).time);
        }
    }
}

impl CountedPoint {
    fn new(flow: Flow, (start, time): (u64, u64), amounts: &Amounts) -> CountedPoint {
        let start = if flow == Flow::Delta && start != 0 { start.min(time) } else { time };
        let hash = Sha256::digest(postcard::to_allocvec(amounts).unwrap_or_default());
        let digest = hash.first_chunk().copied().map_or(0, u64::from_be_bytes);
        CountedPoint { start, time, digest }
    }

    fn overlaps(&self, other: &CountedPoint) -> bool {
        let is_same = (self.start, self.time) == (other.start, other.time);
        is_same || self.start < other.time && other.start < self.time
    }
}

/// What a point of a series adds, and what is known then. Nothing, if it came before, or if it is a
/// total that a later one contains.
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
    if time == 0 {
        return Err(PointError::NoTime);
    }
    // It may have been counted before its series was forgotten.
    if known.is_none() && time <= horizon.forgotten {
        return Err(PointError::TooOld);
    }
    let Flow::Cumulative { may_fall } = flow else {
        let own = CountedPoint::new(flow, (start, time), amounts);
        return single(known.unwrap_or_default(), flow, own, (amounts, targets));
    };
    if known.as_ref().is_some_and(|known| time <= known.until) {
        return Ok(None);
    }
    let now = scaled_all(amounts, targets)?;
    let counted = match &known {
        // It began to count before anybody here did, or nobody knows when: only what follows is
        // known to be new.
        None if start <= horizon.begun.max(horizon.forgotten) => Ok((Increments::new(), false)),
        None => Ok((now, false)),
        Some(known) => grown(known, now, targets, (shape, may_fall)),
    };
    // One that begins again says when.
    let overlaps = start != 0 && matches!(counted, Ok((_, true)));
    let added = counted.and_then(|(added, _)| fits(&added, flow, targets).map(|()| added));
    let known = SeriesState { until: time, totals: amounts.clone(), ..known.unwrap_or_default() };
    Ok(Some(Step { known, added, overlaps }))
}

/// What a total has grown by, and whether it fell: then it began again.
fn grown(
    known: &SeriesState,
    now: Increments,
    targets: &[Target],
    (shape, may_fall): (&Shape, bool),
) -> Result<(Increments, bool), PointError> {
    let before = scaled_all(&known.totals, targets)?;
    if !may_fall && of(&now, COUNT) < of(&before, COUNT) {
        return Ok((now, true));
    }
    Ok((difference(&before, &now, targets, shape)?, false))
}

/// A delta, or a value at a moment.
fn single(
    mut known: SeriesState,
    flow: Flow,
    own: CountedPoint,
    (amounts, targets): (&Amounts, &[Target]),
) -> Result<Option<Step>, PointError> {
    if known.seen.contains(&own) {
        return Ok(None);
    }
    if own.time <= known.until {
        return Err(PointError::TooOld);
    }
    let overlaps = known.seen.iter().any(|other| own.overlaps(other));
    let added = match flow {
        Flow::Moment => scaled_all(amounts, targets)?,
        _ => delta(&mut known, amounts, targets)?,
    };
    fits(&added, flow, targets)?;
    known.remember(own);
    Ok(Some(Step { known, added: Ok(added), overlaps }))
}

/// Amounts with a point are rounded as they run, so that what was sent is what is counted in all.
fn delta(
    known: &mut SeriesState,
    amounts: &Amounts,
    targets: &[Target],
) -> Result<Increments, PointError> {
    let mut added = Increments::new();
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

/// What was added since the last point. If only buckets fell, their bounds have moved, as those of
/// an exponential histogram do with its scale: nobody knows then in which of them the new values
/// are.
fn difference(
    before: &Increments,
    now: &Increments,
    targets: &[Target],
    shape: &Shape,
) -> Result<Increments, PointError> {
    let has_buckets = matches!(shape, Shape::Histogram { .. } | Shape::Exponential { .. });
    let is_bucket = |part: u16| has_buckets && part != COUNT && part != SUM;
    let has_moved =
        before.keys().any(|part| is_bucket(*part) && of(now, *part) < of(before, *part));
    let mut added = Increments::new();
    for part in before.keys().chain(now.keys()).filter(|part| !has_moved || !is_bucket(**part)) {
        let value = of(now, *part).checked_sub(of(before, *part)).ok_or(PointError::NoNumber)?;
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

fn of(all: &Increments, part: u16) -> i64 {
    all.get(&part).copied().unwrap_or(0)
}

/// Whether each amount fits into events of its attribute. Only what adds up can be split.
fn fits(added: &Increments, flow: Flow, targets: &[Target]) -> Result<(), PointError> {
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

fn scaled_all(amounts: &Amounts, targets: &[Target]) -> Result<Increments, PointError> {
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
mod tests;
