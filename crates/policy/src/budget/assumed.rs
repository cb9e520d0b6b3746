//! The sums that errors are computed from before there are any.

use crate::layout::{FieldStatistic, Layout};
use crate::plan::Plan;
use crate::schema::{AttributeKind, Schema};
use crate::select::SumLocation;

/// The sums of a plan's cells if a window has `values` values of every attribute, and each is
/// `value(attribute)`, in units of the attribute's scale. NaN for sums that take more than that to
/// know, such as the bins of a histogram.
#[must_use]
pub fn assumed_sums(
    plan: &Plan,
    layout: &Layout,
    values: f64,
    value: impl Fn(u16) -> f64,
) -> Vec<f64> {
    let cell = |place: &SumLocation| {
        let (SumLocation::Whole { row }
        | SumLocation::Digit { row, .. }
        | SumLocation::Limbs { low: row, .. }) = place;
        let word = plan.release.rows.get(usize::from(*row)).and_then(|words| words.first());
        match word.and_then(|word| layout.field_at(*word)).map(|field| field.statistic) {
            Some(FieldStatistic::EventCount | FieldStatistic::Count(_)) => values,
            Some(FieldStatistic::Sum(attribute)) => values * value(attribute),
            Some(FieldStatistic::SumOfSquares(attribute)) => values * value(attribute).powi(2),
            _ => f64::NAN,
        }
    };
    plan.select.cells.iter().map(cell).collect()
}

/// The value of an attribute that is farthest from zero, in units of its scale. With it, errors
/// are upper bounds.
#[must_use]
pub fn farthest(schema: &Schema, attribute: u16) -> f64 {
    match schema.attributes.get(usize::from(attribute)).map(|own| &own.kind) {
        Some(AttributeKind::Number { min, max, .. }) => {
            f64::max((*min as f64).abs(), (*max as f64).abs())
        }
        _ => 1.0,
    }
}
