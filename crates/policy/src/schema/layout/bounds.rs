//! Bounds on the cells of a sum over a window.

use super::{FieldStatistic, PairMoment};
use crate::schema::{AttributeKind, OptionKind, PolicyOption, Schema};

/// Noise exceeds this many scales with probability below 2^-64: `45 > 64·ln 2` times the
/// scale of a Laplace distribution, whose variance bounds that of all noise.
const TAIL: u128 = 45;

/// Bounds on a cell of one statistic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CellBound {
    /// Maximum magnitude in one event.
    pub(super) event: u128,
    /// Maximum magnitude of the noise in a window.
    pub(super) noise: u128,
}

impl CellBound {
    /// Maximum magnitude of a sum over `events` events.
    pub(super) fn window(self, events: u128) -> Option<u128> {
        self.event.checked_mul(events)?.checked_add(self.noise)
    }
}

/// The bound of each cell of `statistic`, or `None` if cells are random words.
pub(super) fn cell(schema: &Schema, statistic: FieldStatistic) -> Option<CellBound> {
    let event = match statistic {
        FieldStatistic::Any(_) | FieldStatistic::All(_) => return None,
        FieldStatistic::Sum(a) | FieldStatistic::Threshold { of: a, order: 1, .. } => {
            magnitude(schema, a)
        }
        FieldStatistic::SumOfSquares(a) => squared(magnitude(schema, a)),
        FieldStatistic::By { of, order, .. } => magnitude(schema, of).saturating_pow(order.into()),
        FieldStatistic::Pair { y, x, moment } => {
            let (x, y) = (magnitude(schema, x), magnitude(schema, y));
            match moment {
                PairMoment::Count => 1,
                PairMoment::X => x,
                PairMoment::Y => y,
                PairMoment::Xx => squared(x),
                PairMoment::Xy => x.saturating_mul(y),
                PairMoment::Yy => squared(y),
            }
        }
        _ => 1,
    };
    Some(CellBound { event, noise: noise(schema, statistic, event) })
}

/// Maximum magnitude of a cell of `statistic` in one event, or `None` if cells are random
/// words.
pub(crate) fn max_in_event(schema: &Schema, statistic: FieldStatistic) -> Option<u128> {
    cell(schema, statistic).map(|bound| bound.event)
}

fn squared(x: u128) -> u128 {
    x.saturating_mul(x)
}

/// Maximum |scaled value| of an attribute.
fn magnitude(schema: &Schema, attribute: u16) -> u128 {
    match schema.attributes.get(usize::from(attribute)).map(|attribute| &attribute.kind) {
        Some(AttributeKind::Number { min, max, .. }) => {
            u128::from(min.unsigned_abs().max(max.unsigned_abs()))
        }
        _ => 1,
    }
}

/// The tail of the noise under the smallest ε per window of any option: the sensitivity
/// of one person's window, `events × event`, times 45 / ε.
fn noise(schema: &Schema, statistic: FieldStatistic, event: u128) -> u128 {
    let person = event.saturating_mul(u128::from(schema.capacity.events));
    let least = noisy_options(schema, statistic)
        .filter_map(|option| option.budget)
        .map(|budget| u128::from(budget.window_micro_epsilon.max(1)))
        .min();
    least.map_or(0, |epsilon| person.saturating_mul(TAIL * 1_000_000).div_ceil(epsilon))
}

/// Options under which the statistic may be released with noise.
pub(super) fn noisy_options(
    schema: &Schema,
    statistic: FieldStatistic,
) -> impl Iterator<Item = &PolicyOption> {
    schema.options.iter().filter(move |option| {
        option.kind == OptionKind::DpAggregate
            && statistic.attributes().any(|attribute| option.attributes.contains(&attribute))
    })
}
