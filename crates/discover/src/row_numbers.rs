//! Columns that number the rows: they measure nothing.

use crate::profile::Column;
use crate::words::{has, is};

/// Whether a column at this place numbers the rows.
pub(crate) fn is_row_number(at: usize, column: &Column) -> bool {
    let name = &column.name;
    // A part of a file, or a file with a few rows twice, keeps the numbers of the whole.
    let differs = column.distinct() * 100 >= column.filled * 99;
    let index = is_index(name) && differs || at == 0 && is(name, &["unnamed0"]);
    let few = is(name, SHORT) && column.has_all_numbers();
    column.numbers_rows() && (at == 0 || numbers_by_name(name))
        || column.is_integer() && (index || few)
}

/// Whether a name leaves no doubt that its column numbers the rows, if its numbers differ.
fn is_index(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "index",
        "idx",
        "unnamed0",
        "rowname",
        "rownames",
        "rownum",
        "rownumber",
        "rowno",
        "rownr",
        "rowid",
        "recordnumber",
        "recno",
    ];
    is(name, NAMES)
}

/// Short names that number the rows only if all numbers from the first to the last row are there.
const SHORT: &[&str] = &["x", "row", "obs", "observation", "unnamed"];

/// Whether a name says that its column numbers the rows.
fn numbers_by_name(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "index",
        "idx",
        "no",
        "nr",
        "row",
        "rownumber",
        "record",
        "recno",
        "seq",
        "sequence",
        "lfd",
        "unnamed",
        "entry",
    ];
    name.starts_with("column ") || has(name, NAMES) || name == "#"
}
