//! How a file of readings is written: all that is needed to read its rows.

use crate::cells::{Delimiter, Row, Rows, split};
use crate::encoding::Encoding;
use crate::hash::Set;
use crate::number::Marks;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

/// Texts that stand for a missing value in files of all kinds.
pub const MISSING: &[&str] = &[
    "NA", "N/A", "n/a", "na", "#N/A", "NaN", "nan", "NAN", "null", "NULL", "Null", "None", "none",
    "-", "--", "---", "?", ".", "*", "\\N", "(null)", "MM", "ND", "nd", "n.d.", "k.A.", "missing",
    "Missing", "nil", "\u{2013}", "\u{2014}", "<NA>", "NaT", "#REF!", "#NUM!", "#NAME?", "#VALUE!",
    "#DIV/0!", "inf", "-inf", "Inf", "-Inf",
];

/// How a file is written, as in the `file:` section of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Form {
    /// The encoding of its text.
    pub encoding: Encoding,
    /// Lines above the header; if there are `columns`, lines above the first row.
    pub skip: usize,
    /// The names of the columns, if no line of the file gives one for each.
    pub columns: Vec<String>,
    /// Lines between the header and the first row, such as a row of units.
    pub below: usize,
    /// Rows that begin with this are comments.
    pub comment: Option<char>,
    /// What stands between cells.
    pub delimiter: Delimiter,
    /// Whether a quoted cell may span several lines.
    pub multiline: bool,
    /// Whether cells may lack at the end of a row.
    pub ragged: bool,
    /// What stands before the decimals.
    #[serde(with = "crate::decimal_mark")]
    pub decimal: char,
    /// What stands between thousands.
    pub thousands: Option<char>,
    /// What stands around numbers, such as `$` or `%`.
    pub around: Vec<String>,
    /// Texts that stand for a missing value, besides the empty one.
    pub missing: Vec<String>,
    /// Whether rows without a time are left out rather than refused.
    pub untimed: bool,
    /// Lines of totals below the readings, which are passed over: their numbers, from 1.
    pub totals: Vec<u64>,
}

impl Default for Form {
    fn default() -> Self {
        Form {
            encoding: Encoding::Utf8,
            skip: 0,
            columns: Vec::new(),
            below: 0,
            comment: None,
            delimiter: Delimiter::Comma,
            multiline: false,
            ragged: false,
            decimal: '.',
            thousands: None,
            around: Vec::new(),
            missing: Vec::new(),
            untimed: false,
            totals: Vec::new(),
        }
    }
}

/// Texts that stand for a missing value, to look up the cells of many rows.
#[derive(Clone, Debug, Default)]
pub struct MissingTexts {
    texts: Set<String>,
    longest: usize,
    /// Whether one begins with a digit, as most cells do.
    digits: bool,
}

impl MissingTexts {
    /// These texts.
    pub fn of<'t>(texts: impl IntoIterator<Item = &'t String>) -> MissingTexts {
        let texts: Set<String> = texts.into_iter().cloned().collect();
        let longest = texts.iter().map(String::len).max().unwrap_or(0);
        let digits = texts.iter().any(|text| begins_with_digit(text));
        MissingTexts { texts, longest, digits }
    }

    /// Whether a cell is one of them.
    #[must_use]
    pub fn contains(&self, cell: &str) -> bool {
        cell.len() <= self.longest
            && (self.digits || !begins_with_digit(cell))
            && self.texts.contains(cell)
    }
}

fn begins_with_digit(text: &str) -> bool {
    text.as_bytes().first().is_some_and(u8::is_ascii_digit)
}

/// A file that is open for reading.
pub struct OpenFile<'a> {
    /// The name of each column.
    pub names: Vec<String>,
    /// The rows.
    pub rows: Rows<'a>,
}

impl Form {
    /// How numbers are written.
    #[must_use]
    pub fn marks(&self) -> Marks {
        Marks { decimal: self.decimal, thousands: self.thousands, around: self.around.clone() }
    }

    /// The same form with other marks of numbers.
    #[must_use]
    pub fn with_marks(&self, marks: Marks) -> Form {
        let Marks { decimal, thousands, around } = marks;
        Form { decimal, thousands, around, ..self.clone() }
    }

    /// Whether a cell holds no value.
    #[must_use]
    pub fn is_missing(&self, cell: &str) -> bool {
        cell.is_empty() || self.missing.iter().any(|missing| missing == cell)
    }

    /// Opens the text of a file.
    #[must_use]
    pub fn open<'a>(&self, text: &'a str) -> OpenFile<'a> {
        let mut rest = text;
        for _ in 0..self.skip {
            rest = after_line(rest);
        }
        let (mut names, mut line) = (self.columns.clone(), self.skip as u64 + 1);
        if names.is_empty() {
            names = header(first_line(rest), self.delimiter);
            rest = after_line(rest);
            line += 1;
        }
        for _ in 0..self.below {
            rest = after_line(rest);
            line += 1;
        }
        let rows = Rows::new(rest, self.delimiter, line)
            .without_comments(self.comment)
            .without_lines(&self.totals)
            .over_lines(self.multiline);
        OpenFile { names, rows }
    }

    /// Makes a row as wide as the header, if it may be: empty cells at its end may be more
    /// or, in a ragged file, fewer.
    #[must_use]
    pub fn fit(&self, row: &mut Row<'_>, width: usize) -> bool {
        if row.len() > width && row.iter().skip(width).all(|cell| cell.is_empty()) {
            row.truncate(width);
        }
        if row.len() < width && self.ragged {
            row.resize(width, Cow::Borrowed(""));
        }
        row.len() == width
    }
}

fn first_line(text: &str) -> &str {
    let line = text.split_once('\n').map_or(text, |(line, _)| line);
    line.strip_suffix('\r').unwrap_or(line)
}

fn after_line(text: &str) -> &str {
    text.split_once('\n').map_or("", |(_, rest)| rest)
}

/// The names of a header line: without a mark such as `# ` before them, `column 3` where there
/// is none, and with a number where a name stands twice.
#[must_use]
pub fn header(line: &str, delimiter: Delimiter) -> Vec<String> {
    let mut row = Vec::new();
    if split(unmarked(line), delimiter, &mut row).is_err() {
        return Vec::new();
    }
    while row.last().is_some_and(|cell| cell.is_empty()) {
        row.pop();
    }
    distinct(row.iter().map(|cell| cell.as_ref()))
}

/// A line without a comment mark that a space follows.
#[must_use]
pub fn unmarked(line: &str) -> &str {
    let trimmed = line.trim_start();
    let rest = trimmed.trim_start_matches(['#', '%', '!']);
    if rest.len() < trimmed.len() && rest.starts_with([' ', '\t']) {
        rest.trim_start_matches(' ')
    } else {
        line
    }
}

/// Names, each different from all before it.
#[must_use]
pub fn distinct<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut known = HashSet::new();
    let mut found = Vec::new();
    for (at, name) in names.enumerate() {
        let flat: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let flat = flat.trim();
        let base = if flat.is_empty() { format!("column {}", at + 1) } else { flat.to_owned() };
        let (mut unique, mut number) = (base.clone(), 2);
        while !known.insert(unique.clone()) {
            unique = format!("{base} ({number})");
            number += 1;
        }
        found.push(unique);
    }
    found
}

/// Whether the first cells of rows number or name these, so that their column needs no name.
pub(crate) fn names_rows(rows: &[Row<'_>], mut is_time: impl FnMut(&str) -> bool) -> bool {
    let cells: Vec<&str> = rows.iter().filter_map(|row| row.first().map(AsRef::as_ref)).collect();
    let numbers: Vec<i64> = cells.iter().filter_map(|cell| cell.parse().ok()).collect();
    if numbers.len() * 20 >= cells.len() * 19 {
        return numbers.windows(2).all(|pair| pair[0] < pair[1]);
    }
    let different: BTreeSet<&str> = cells.iter().copied().collect();
    different.len() == cells.len() && !cells.iter().any(|cell| is_time(cell))
}

/// The question about names and cells that are not as many.
pub(crate) fn other_width(line: usize, names: usize, cells: usize) -> String {
    format!(
        "Line {line} seems to name {names} columns, but rows have {cells} cells. The separator of cells may also occur in numbers, as a decimal comma, or names are missing. Give each column one name."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_names_each_column_once() {
        let names = |line: &str, delimiter| header(line, delimiter).join("|");
        assert_eq!(names("# STN,YYYYMMDD,   HH", Delimiter::Comma), "STN|YYYYMMDD|HH");
        assert_eq!(names("#Timestamp;Value", Delimiter::Semicolon), "#Timestamp|Value");
        assert_eq!(names("A\tUnit\tB\tUnit\t", Delimiter::Tab), "A|Unit|B|Unit (2)");
        assert_eq!(names("\"Temp, °C\",,x,", Delimiter::Comma), "Temp, °C|column 2|x");
    }

    #[test]
    fn missing_texts_are_found() {
        let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        let words = MissingTexts::of(&texts(&["NA", "", "-"]));
        let found = ["NA", "", "-", "N", "NAN", "7"].map(|cell| words.contains(cell));
        assert_eq!(found, [true, true, true, false, false, false]);
        let numbers = MissingTexts::of(&texts(&["9999", "-9"]));
        assert_eq!(["9999", "-9", "999"].map(|c| numbers.contains(c)), [true, true, false]);
        assert!(!MissingTexts::default().contains("7"));
    }

    #[test]
    fn rows_begin_below_header_and_units() {
        let form = Form { skip: 1, below: 1, comment: Some('#'), ..Form::default() };
        let mut opened = form.open("title\na,b\nm,s\n# no row\n1,2,\n3\n");
        assert_eq!(opened.names, ["a", "b"]);
        let mut row = Vec::new();
        assert_eq!(opened.rows.read(&mut row), Ok(true));
        assert!(form.fit(&mut row, 2) && opened.rows.line() == 5);
        assert_eq!(opened.rows.read(&mut row), Ok(true));
        assert!(!form.fit(&mut row, 2));
        assert!(Form { ragged: true, ..form }.fit(&mut row, 2));
    }
}
