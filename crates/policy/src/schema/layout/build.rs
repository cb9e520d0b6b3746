//! Lays out the statistics of a schema in words.

use super::bounds::{self, CellBound};
use super::{Field, FieldStatistic, Layout, MAX_WORDS, Packing, PairMoment};
use crate::schema::{Aggregation, Edges, Schema};
use std::collections::HashSet;

/// The schema has no layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// A worst-case sum over a window that does not fit in two words.
    #[error(
        "the sum of attribute {attribute} over a window may not fit in two 64-bit words; narrow its bounds, or lower its scale or the capacity"
    )]
    SumTooLarge {
        /// Position of the attribute.
        attribute: u16,
    },
    /// A vector longer than the cipher's block counter allows.
    #[error("an event would take {words} words, but at most {MAX_WORDS} fit; use fewer bins")]
    TooManyWords {
        /// Words needed, including the check word.
        words: usize,
    },
}

/// Sums in one word are below this, in two's complement.
const WORD: u128 = 1 << 63;

/// A statistic and its number of cells.
type Cells = (FieldStatistic, usize);

pub(super) fn layout(schema: &Schema) -> Result<Layout, LayoutError> {
    let mut fields = Vec::new();
    let mut next = 0usize;
    for (statistic, cells) in statistics(schema) {
        let packing = packing(schema, statistic, cells)?;
        let too_many = |words| LayoutError::TooManyWords { words };
        // Positions fit in 16 bits. Beyond that the vector is too long anyway.
        let first = u16::try_from(next).map_err(|_| too_many(next))?;
        let cells = u16::try_from(cells).map_err(|_| too_many(next.saturating_add(cells)))?;
        let field = Field { statistic, first, cells, packing };
        next += usize::from(field.words());
        fields.push(field);
    }
    let words = next + 1;
    match u16::try_from(words) {
        Ok(short) if words <= MAX_WORDS => Ok(Layout { fields, words: short }),
        _ => Err(LayoutError::TooManyWords { words }),
    }
}

/// All statistics of a schema, each once.
fn statistics(schema: &Schema) -> Vec<Cells> {
    let (mut all, mut seen) = (Vec::new(), HashSet::new());
    for (position, attribute) in (0u16..).zip(&schema.attributes) {
        for (aggregation, offered) in (0u16..).zip(&attribute.aggregations) {
            for cells in of_aggregation(schema, position, aggregation, offered) {
                if seen.insert(cells.0) {
                    all.push(cells);
                }
            }
        }
    }
    // The shared count belongs to no attribute, so it comes last.
    let shared = (FieldStatistic::EventCount, 1);
    if seen.contains(&shared.0) {
        all.retain(|cells| *cells != shared);
        all.push(shared);
    }
    all
}

fn of_aggregation(schema: &Schema, a: u16, k: u16, offered: &Aggregation) -> Vec<Cells> {
    let one = |statistic| (statistic, 1);
    let count = one(schema.count_of(a));
    let sum = one(FieldStatistic::Sum(a));
    match offered {
        Aggregation::Count => vec![count],
        // Without its count, an empty sum looks like a sum of zero.
        Aggregation::Sum if schema.is_optional(a) => vec![sum, count],
        Aggregation::Sum => vec![sum],
        Aggregation::Mean => vec![sum, count],
        Aggregation::Variance => vec![sum, one(FieldStatistic::SumOfSquares(a)), count],
        Aggregation::Histogram(edges) => vec![(FieldStatistic::Histogram(a, k), bins(edges))],
        Aggregation::Regression { x, r_squared } => pair(a, *x, *r_squared),
        Aggregation::By { attribute, edges, order } => (0..=*order)
            .map(|order| {
                let by = *attribute;
                (FieldStatistic::By { of: a, by, aggregation: k, order }, bins(edges))
            })
            .collect(),
        Aggregation::Threshold { .. } => (0..=1)
            .map(|order| (FieldStatistic::Threshold { of: a, aggregation: k, order }, 2))
            .collect(),
        Aggregation::Any => vec![one(FieldStatistic::Any(a))],
        Aggregation::All => vec![one(FieldStatistic::All(a))],
        Aggregation::Sketch { depth, width } => {
            vec![(FieldStatistic::Sketch(a, k), usize::from(*depth) * usize::from(*width))]
        }
    }
}

fn bins(edges: &Edges) -> usize {
    usize::from(edges.bins())
}

/// `[1, x, y, x², xy]` and `y²`. The moments cover events that have both attributes, so
/// none is shared with the attributes' own moments.
fn pair(y: u16, x: u16, r_squared: bool) -> Vec<Cells> {
    use PairMoment::{Count, X, Xx, Xy, Y, Yy};
    let moments = [Count, X, Y, Xx, Xy, Yy];
    let encoded = if r_squared { &moments[..] } else { &moments[..5] };
    encoded.iter().map(|moment| (FieldStatistic::Pair { y, x, moment: *moment }, 1)).collect()
}

/// How to pack the cells of a statistic into words.
fn packing(
    schema: &Schema,
    statistic: FieldStatistic,
    cells: usize,
) -> Result<Packing, LayoutError> {
    let Some(bound) = bounds::cell(schema, statistic) else { return Ok(Packing::Whole) };
    let capacity = schema.capacity;
    let events = u128::from(capacity.population).saturating_mul(u128::from(capacity.events));
    match bound.window(events) {
        Some(sum) if sum < WORD && may_share(schema, statistic) => Ok(digits(sum, cells)),
        Some(sum) if sum < WORD => Ok(Packing::Whole),
        _ if fits_limbs(bound, events) => Ok(Packing::Limbs),
        _ => {
            let attribute = statistic.attributes().next().unwrap_or_default();
            Err(LayoutError::SumTooLarge { attribute })
        }
    }
}

/// Whether the cells of a field may share words. They must be the bins of a grid, and no
/// offered option may add up several of them or add noise. (Thresholds and sketches have
/// bins, too, but a query releases one cell and not its neighbours.)
fn may_share(schema: &Schema, statistic: FieldStatistic) -> bool {
    let Some((bucketed, grid)) = statistic.grid(schema) else { return false };
    let added_up = schema
        .options
        .iter()
        .flat_map(|option| &option.generalise)
        .any(|generalise| generalise.attribute == bucketed && !generalise.is_as_fine_as(grid));
    !added_up && bounds::noisy_options(schema, statistic).next().is_none()
}

/// As few words as digits that hold `sum` and its sign allow, with the widest digits that
/// fit.
fn digits(sum: u128, cells: usize) -> Packing {
    let narrowest = 128 - sum.leading_zeros() + 1;
    let fit = usize::try_from(64 / narrowest).unwrap_or(1).max(1);
    let words = cells.div_ceil(fit).max(1);
    let per_word = cells.div_ceil(words);
    match (u8::try_from(per_word), u8::try_from(64 / per_word.max(1))) {
        (Ok(per_word), Ok(bits)) if per_word > 1 => Packing::Digits { bits, per_word },
        _ => Packing::Whole,
    }
}

/// Whether the sums of both halves fit in a word. Low halves are below 2^32, high halves
/// at most `event / 2^32 + 1` in magnitude, and noise adds to either.
fn fits_limbs(bound: CellBound, events: u128) -> bool {
    let low = events.checked_mul(1 << 32);
    let high = (bound.event >> 32).checked_add(1).and_then(|half| half.checked_mul(events));
    let noise = (bound.noise >> 32).checked_add(1);
    let high = high.zip(noise).and_then(|(high, noise)| high.checked_add(noise));
    low.is_some_and(|low| low < WORD) && high.is_some_and(|high| high < WORD)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
