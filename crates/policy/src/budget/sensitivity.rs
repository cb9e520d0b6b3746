//! How far one unit of protection can move the rows of a release.
//!
//! Differential privacy here hides *values*: two inputs are neighbours if they differ in
//! the values of one unit's events. Participation, its times and the number of events count as
//! public, so the event count has sensitivity 0. (In tick frames the service does not see the number;
//! a row with a count reveals it.)

use crate::layout::{Field, FieldStatistic, Layout, Packing, PairMoment};
use crate::release::Release;
use crate::schema::{Aggregation, AttributeKind, PrivacyUnit, Schema};
use alpheus_time::Span;
use std::collections::BTreeSet;

/// Rows of one field that an event moves together, and how far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowGroup {
    /// The rows, ascending.
    pub rows: Vec<u16>,
    /// The statistic that they sum.
    pub statistic: FieldStatistic,
    /// How far an event can move them.
    pub event: Change,
}

/// Bounds on how far rows move, where c is the vector of their differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Σ|c|.
    pub l1: u128,
    /// Σc².
    pub l2_squared: u128,
}

/// No noise can protect the release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SensitivityError {
    /// `ANY` and `ALL` sum random words. With noise they would mean nothing.
    #[error(
        "row {row} reveals whether any value was true, which noise cannot hide; use a count instead"
    )]
    RandomWords {
        /// The row.
        row: u16,
    },
    /// Digits share words, so noise of one would carry into the next.
    #[error(
        "row {row} is packed with others into one word; offer its attribute with noise, so that the layout separates them"
    )]
    Packed {
        /// The row.
        row: u16,
    },
    /// A word that is also in another row, so one value would move both.
    #[error("row {row} repeats a word of another row; release each word once")]
    Repeated {
        /// The row.
        row: u16,
    },
    /// A row of no field, of several fields, or of both halves of one.
    #[error("row {row} is not a sum of one statistic of the schema")]
    NoField {
        /// The row.
        row: u16,
    },
    /// Values so large that noise does not fit.
    #[error("row {row} has bounds too wide for noise; narrow the attribute's `min` and `max`")]
    TooWide {
        /// The row.
        row: u16,
    },
}

/// The number of events of one unit of protection in one window.
#[must_use]
pub fn events_of(unit: PrivacyUnit, schema: &Schema, streams_per_owner: u32) -> u128 {
    match unit {
        PrivacyUnit::Event => 1,
        PrivacyUnit::PersonPerWindow | PrivacyUnit::PersonPerPeriod(_) => {
            u128::from(schema.capacity.events) * u128::from(streams_per_owner.max(1))
        }
    }
}

/// The number of windows of this size that the events of one unit of protection can span.
/// Running totals are charged for these.
#[must_use]
pub fn windows_of(unit: PrivacyUnit, window: Span) -> u32 {
    match unit {
        PrivacyUnit::Event | PrivacyUnit::PersonPerWindow => 1,
        PrivacyUnit::PersonPerPeriod(period) => {
            let whole = period.0.div_ceil(window.0.max(1));
            // One more if windows straddle periods.
            let straddles = !period.0.is_multiple_of(window.0.max(1));
            u32::try_from(whole).unwrap_or(u32::MAX).saturating_add(straddles.into())
        }
    }
}

/// The groups of rows that need noise: all but the check row and public statistics.
///
/// # Errors
/// [`SensitivityError`] with the first row that noise cannot protect.
pub fn groups(
    release: &Release,
    schema: &Schema,
    layout: &Layout,
) -> Result<Vec<RowGroup>, SensitivityError> {
    let mut groups: Vec<(FieldStatistic, bool, RowGroup)> = Vec::new();
    let mut seen = BTreeSet::new();
    for (row, words) in (0u16..).zip(&release.rows) {
        if words.as_slice() == [layout.check_word()] {
            continue;
        }
        if !words.iter().all(|word| seen.insert(*word)) {
            return Err(SensitivityError::Repeated { row });
        }
        let (field, high) = field_of(words, layout, row)?;
        let known = groups.iter_mut().find(|(of, half, _)| (*of, *half) == (field.statistic, high));
        if let Some((_, _, group)) = known {
            group.rows.push(row);
            continue;
        }
        let limbs = field.packing == Packing::Limbs;
        let event = change(schema, field.statistic, row, limbs.then_some(high))?;
        let group = RowGroup { rows: vec![row], statistic: field.statistic, event };
        groups.push((field.statistic, high, group));
    }
    let moved = groups.into_iter().map(|(_, _, group)| group);
    Ok(moved.filter(|group| group.event.l1 > 0).collect())
}

/// The field of all words of a row, and whether they are high halves.
fn field_of<'a>(
    words: &[u16],
    layout: &'a Layout,
    row: u16,
) -> Result<(&'a Field, bool), SensitivityError> {
    let first = words.first().and_then(|word| Some((*word, layout.field_at(*word)?)));
    let (first, field) = first.ok_or(SensitivityError::NoField { row })?;
    let limbs = match field.packing {
        Packing::Whole => false,
        Packing::Digits { .. } => return Err(SensitivityError::Packed { row }),
        Packing::Limbs => true,
    };
    let end = field.first + field.words();
    let high = |word: &u16| limbs && !(word - field.first).is_multiple_of(2);
    let alike = |word: &u16| (field.first..end).contains(word) && high(word) == high(&first);
    if !words.iter().all(alike) {
        return Err(SensitivityError::NoField { row });
    }
    Ok((field, high(&first)))
}

impl Change {
    /// The change by `events` events that all move the same way.
    #[must_use]
    pub fn times(self, events: u128) -> Option<Change> {
        Some(Change {
            l1: self.l1.checked_mul(events)?,
            l2_squared: self.l2_squared.checked_mul(events)?.checked_mul(events)?,
        })
    }

    fn single(distance: u128) -> Option<Change> {
        Some(Change { l1: distance, l2_squared: distance.checked_mul(distance)? })
    }

    /// An event leaves one cell and enters another: `cells` cells change by up to `most` each,
    /// or one cell by `range`.
    fn moved(cells: u128, most: u128, range: u128) -> Option<Change> {
        let l1 = cells.checked_mul(most)?.max(range);
        let squares = cells.checked_mul(most.checked_mul(most)?)?;
        Some(Change { l1, l2_squared: squares.max(range.checked_mul(range)?) })
    }
}

/// How far an event can move the cells of a statistic. For limbs, the cells of its `high` or
/// low halves.
fn change(
    schema: &Schema,
    statistic: FieldStatistic,
    row: u16,
    high: Option<bool>,
) -> Result<Change, SensitivityError> {
    if matches!(statistic, FieldStatistic::Any(_) | FieldStatistic::All(_)) {
        return Err(SensitivityError::RandomWords { row });
    }
    let terms = Terms::of(schema, statistic).ok_or(SensitivityError::TooWide { row })?;
    let (low, least) = match high {
        None => (terms.high, terms.low),
        // A half of a value that may be absent: from 0, in units of 2^32.
        Some(true) => ((terms.high >> 32).max(0), (terms.low >> 32).min(0)),
        Some(false) => (i128::from(u32::MAX), 0),
    };
    let range = low.abs_diff(least);
    let most = low.unsigned_abs().max(least.unsigned_abs());
    match terms.cells {
        1 => Change::single(range),
        cells => Change::moved(cells, most, range),
    }
    .ok_or(SensitivityError::TooWide { row })
}

/// What an event adds to the cells of a statistic: between `low` and `high` to one cell, or
/// to each of `cells / 2` others when it moves.
struct Terms {
    cells: u128,
    low: i128,
    high: i128,
}

impl Terms {
    fn of(schema: &Schema, statistic: FieldStatistic) -> Option<Terms> {
        let one = |(low, high)| Terms { cells: 1, low, high };
        let optional = |a| schema.is_optional(a);
        let counted = |maybe: bool| one((0, i128::from(maybe)));
        let or_absent = |maybe: bool, (low, high): (i128, i128)| match maybe {
            true => one((low.min(0), high.max(0))),
            false => one((low, high)),
        };
        let moving = |cells, (low, high): (i128, i128)| Terms { cells, low, high };
        let power = |a, order: u8| -> Option<(i128, i128)> {
            match order {
                0 => Some((0, 1)),
                1 => Some(bounds(schema, a)),
                _ => square(bounds(schema, a)),
            }
        };
        Some(match statistic {
            FieldStatistic::EventCount => counted(false),
            FieldStatistic::Count(a) => counted(optional(a)),
            FieldStatistic::Sum(a) => or_absent(optional(a), power(a, 1)?),
            FieldStatistic::SumOfSquares(a) => or_absent(optional(a), power(a, 2)?),
            FieldStatistic::Histogram(..) => moving(2, (0, 1)),
            FieldStatistic::By { of, order, .. } => moving(2, power(of, order)?),
            FieldStatistic::Threshold { of, order, .. } => moving(2, power(of, order)?),
            FieldStatistic::Pair { y, x, moment } => {
                let maybe = optional(x) || optional(y);
                match moment {
                    PairMoment::Count => counted(maybe),
                    PairMoment::X => or_absent(maybe, power(x, 1)?),
                    PairMoment::Y => or_absent(maybe, power(y, 1)?),
                    PairMoment::Xx => or_absent(maybe, power(x, 2)?),
                    PairMoment::Yy => or_absent(maybe, power(y, 2)?),
                    PairMoment::Xy => {
                        let range = product(bounds(schema, x), bounds(schema, y), false)?;
                        or_absent(maybe, range)
                    }
                }
            }
            FieldStatistic::Sketch(a, aggregation) => {
                let depth = sketch_depth(schema, a, aggregation);
                moving(2 * depth, (0, 1))
            }
            FieldStatistic::Any(_) | FieldStatistic::All(_) => return None,
        })
    }
}

/// Minimum and maximum scaled value of an attribute.
pub(crate) fn bounds(schema: &Schema, attribute: u16) -> (i128, i128) {
    match schema.attributes.get(usize::from(attribute)).map(|attribute| &attribute.kind) {
        Some(AttributeKind::Number { min, max, .. }) => (i128::from(*min), i128::from(*max)),
        _ => (0, 1),
    }
}

/// Minimum and maximum square of a value within bounds.
pub(crate) fn square(bounds: (i128, i128)) -> Option<(i128, i128)> {
    product(bounds, bounds, true)
}

/// Minimum and maximum product, of a value with itself if `square`.
fn product(one: (i128, i128), other: (i128, i128), square: bool) -> Option<(i128, i128)> {
    let pairs = [(one.0, other.0), (one.0, other.1), (one.1, other.0), (one.1, other.1)];
    let mut corners = [0; 4];
    for (corner, (a, b)) in corners.iter_mut().zip(pairs) {
        *corner = a.checked_mul(b)?;
    }
    let most = corners.into_iter().max()?;
    let least = match square {
        true if one.0 <= 0 && one.1 >= 0 => 0,
        true => corners[0].min(corners[3]),
        false => corners.into_iter().min()?,
    };
    Some((least, most))
}

fn sketch_depth(schema: &Schema, attribute: u16, aggregation: u16) -> u128 {
    let attribute = schema.attributes.get(usize::from(attribute));
    match attribute.and_then(|own| own.aggregations.get(usize::from(aggregation))) {
        Some(Aggregation::Sketch { depth, .. }) => u128::from(*depth),
        // Every cell of any sketch that the layout could hold.
        _ => u128::from(u16::MAX),
    }
}
