//! One pass over all rows of a table.

use crate::cells::Row;
use crate::form::Form;
use crate::watch::Watch;

/// Rows that are enough to see what a file's columns have to do with each other.
pub(crate) const SAMPLE: u64 = 200_000;
/// Rows between two reports.
const ROWS: u32 = 4096;

/// What became of one row.
pub(crate) enum ScannedRow<'r, 'a> {
    /// As wide as the header, and not empty.
    Row(&'r Row<'a>),
    /// Nothing but empty cells.
    Blank,
    /// Another number of cells than the header.
    Width,
    /// Quotes that do not fit.
    Broken,
}

/// Passes every row to `each`, until that says no.
pub(crate) fn scan<'a>(
    text: &'a str,
    form: &Form,
    each: impl FnMut(u64, ScannedRow<'_, 'a>) -> bool,
) {
    scan_watched(text, form, &mut (), each);
}

/// The same while somebody watches.
pub(crate) fn scan_watched<'a>(
    text: &'a str,
    form: &Form,
    watch: &mut dyn Watch,
    mut each: impl FnMut(u64, ScannedRow<'_, 'a>) -> bool,
) {
    let mut opened = form.open(text);
    let width = opened.names.len();
    let mut row = Vec::with_capacity(width);
    let (mut rows, mut left) = (0, text.len());
    loop {
        rows += 1;
        if rows % ROWS == 0 {
            let rest = opened.rows.rest().len();
            watch.passed((left - rest) as u64);
            left = rest;
        }
        let read = opened.rows.read(&mut row);
        let line = opened.rows.line();
        let scanned = match read {
            Ok(false) => return watch.passed(left as u64),
            Err(_) => ScannedRow::Broken,
            Ok(true) if row.iter().all(|cell| cell.is_empty()) => ScannedRow::Blank,
            Ok(true) if form.fit(&mut row, width) => ScannedRow::Row(&row),
            Ok(true) => ScannedRow::Width,
        };
        if !each(line, scanned) {
            return;
        }
    }
}
