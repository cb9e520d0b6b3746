//! The sums that errors are computed from before there are any.

use crate::layout::{FieldStatistic, Layout};
use crate::release::Release;
use crate::schema::{AttributeKind, Schema};
use crate::select::{CellRef, ReleasePlan, SumLocation};

/// The sums of the cells of a release if a window has `values` values of every attribute, and each is
/// `value(attribute)`, in units of the attribute's scale. NaN for sums that take more than that to
/// know, such as the bins of a histogram.
#[must_use]
pub fn assumed_sums(
    release: (&Release, &ReleasePlan),
    layout: &Layout,
    values: f64,
    value: impl Fn(u16) -> f64,
) -> Vec<f64> {
    let cell = |at| match statistic_of(release, layout, at) {
        Some(FieldStatistic::EventCount | FieldStatistic::Count(_)) => values,
        Some(FieldStatistic::Sum(attribute)) => values * value(attribute),
        Some(FieldStatistic::SumOfSquares(attribute)) => values * value(attribute).powi(2),
        _ => f64::NAN,
    };
    (0..).zip(&release.1.cells).map(|(at, _)| cell(at)).collect()
}

/// What a cell of a release sums.
pub(crate) fn statistic_of(
    (release, select): (&Release, &ReleasePlan),
    layout: &Layout,
    cell: CellRef,
) -> Option<FieldStatistic> {
    let (SumLocation::Whole { row }
    | SumLocation::Digit { row, .. }
    | SumLocation::Limbs { low: row, .. }) = select.cells.get(usize::from(cell))?;
    let word = release.rows.get(usize::from(*row))?.first()?;
    Some(layout.field_at(*word)?.statistic)
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
