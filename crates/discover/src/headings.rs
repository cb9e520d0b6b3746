//! Which of several lines has the names of columns.

use crate::cells::Row;
use crate::form::{distinct, other_width};
use crate::units;
use crate::words::{TIMES, has};

/// Whether a row has the units or the types of the names in the row above it.
pub(crate) fn describes(row: &Row<'_>, above: &Row<'_>) -> bool {
    has_units(row, above) || has_types(row)
}

/// Whether a row has units: some cell is one, and not only this row names a time.
fn has_units(row: &Row<'_>, above: &Row<'_>) -> bool {
    let bracketed = |cell: &str| cell.starts_with(['[', '(']) && cell.ends_with([']', ')']);
    let unit = |cell: &str| {
        units::is_unit(cell)
            || units::is_written_out(cell)
            || bracketed(cell)
            || units::is_width(cell)
    };
    row.iter().any(|cell| unit(cell)) && (names_time(above) || !names_time(row))
}

/// Whether a row has neither letters nor digits, as a line of dashes or a lone `#`.
pub(crate) fn is_rule(row: &Row<'_>) -> bool {
    !row.is_empty() && !row.iter().any(|cell| cell.contains(char::is_alphanumeric))
}

fn names_time(row: &Row<'_>) -> bool {
    row.iter().any(|cell| has(cell, TIMES))
}

/// Whether a row has the types of the names in the row above it, such as `string`, or their places
/// in another program, such as `{"ImportId":"startDate"}`.
fn has_types(row: &Row<'_>) -> bool {
    const TYPES: &[&str] = &[
        "array",
        "bigint",
        "bool",
        "boolean",
        "char",
        "date",
        "datetime",
        "decimal",
        "double",
        "float",
        "float32",
        "float64",
        "int",
        "int32",
        "int64",
        "integer",
        "json",
        "long",
        "number",
        "numeric",
        "object",
        "real",
        "short",
        "smallint",
        "str",
        "string",
        "text",
        "time",
        "timestamp",
        "uuid",
        "varchar",
    ];
    let is_type = |cell: &str| {
        let lower = cell.trim().to_lowercase();
        let bare = lower.split('(').next().unwrap_or_default();
        lower.is_empty() || lower.starts_with('{') || TYPES.contains(&bare)
    };
    row.iter().all(|cell| is_type(cell)) && row.iter().any(|cell| !cell.trim().is_empty())
}

/// Asks about a row of names below another one that is as wide, unless it alone names a time.
pub(crate) fn open(row: &Row<'_>, above: &Row<'_>, line: usize) -> Option<String> {
    (!names_time(row) || names_time(above)).then(|| {
        format!(
            "Line {line} is taken for the names of columns, but lines above it have as many cells and may be the names. Remove lines that are not part of the table, and put one line of names above its rows."
        )
    })
}

/// The names that a line such as `#Fields: date time c-ip` has, as the logs of web servers do.
pub(crate) fn of_fields(above: &[&str], width: usize) -> Option<Vec<String>> {
    let line = above.iter().rev().find_map(|line| line.strip_prefix("#Fields:"))?;
    let names: Vec<&str> = line.split_whitespace().collect();
    (names.len() == width).then(|| distinct(names.into_iter()))
}

/// Asks about a line right above the rows that lists names, but not one for each cell.
pub(crate) fn fewer(
    names: usize,
    row: &Row<'_>,
    (text, line): (&str, usize),
    width: usize,
) -> Option<String> {
    let is_listed = names > 1 || text.contains([',', ';', '\t', '|']);
    let is_header = is_listed && names == row.len() && row.len() != width;
    is_header.then(|| other_width(line, names, width))
}
