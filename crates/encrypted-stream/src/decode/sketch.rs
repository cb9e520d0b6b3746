//! Statistics computed from a count-min sketch.

use super::{ColumnError, Output};

/// Estimates the number of distinct items by linear counting over one row: with
/// z of w cells empty, −w·ln(z/w), to the nearest integer. Null if no cell is
/// empty, because the row is then too narrow.
pub(super) fn distinct(cells: &[i128]) -> Output {
    let empty = cells.iter().filter(|cell| **cell == 0).count();
    match (u32::try_from(cells.len()), u32::try_from(empty)) {
        (Ok(width), Ok(empty)) if empty > 0 => {
            let width = f64::from(width);
            let estimate = -width * (f64::from(empty) / width).ln();
            #[expect(clippy::cast_possible_truncation, reason = "at most w·ln(w), w below 2^32")]
            let estimate = estimate.round() as i128;
            Output::Integer(estimate)
        }
        _ => Output::Null,
    }
}

/// An upper bound on an item's frequency: the least of its cells.
pub(super) fn frequency(cells: &[i128]) -> Result<Output, ColumnError> {
    cells.iter().min().copied().map(Output::Integer).ok_or(ColumnError::Reference)
}
