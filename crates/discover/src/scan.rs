//! One pass over all rows of a table.

use crate::cells::Row;
use crate::form::Form;

/// What became of one row.
pub(crate) enum Scanned<'r, 'a> {
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
    mut each: impl FnMut(u64, Scanned<'_, 'a>) -> bool,
) {
    let mut opened = form.open(text);
    let width = opened.names.len();
    let mut row = Vec::with_capacity(width);
    loop {
        let read = opened.rows.read(&mut row);
        let line = opened.rows.line();
        let scanned = match read {
            Ok(false) => return,
            Err(_) => Scanned::Broken,
            Ok(true) if row.iter().all(|cell| cell.is_empty()) => Scanned::Blank,
            Ok(true) if form.fit(&mut row, width) => Scanned::Row(&row),
            Ok(true) => Scanned::Width,
        };
        if !each(line, scanned) {
            return;
        }
    }
}
