//! Where the table is in a text: delimiter, lines above it, header, rows of units, widths.

mod begin;
mod sample;

use crate::cells::{Delimiter, Row};
use crate::error::DiscoverError;
use crate::form::{Form, MISSING, distinct, header, names_rows, other_width};
use crate::headings;
use crate::marks;
use crate::number::Marks;
use crate::words::{TIMES, has};
use begin::Kind;
use sample::Sample;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Rows that are looked at to find the table.
const SAMPLE: usize = 2000;
/// Lines that a file may have above its table.
const MAX_ABOVE: usize = 300;

/// Where the table is.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// How to read it.
    pub form: Form,
    /// The name of each column.
    pub names: Vec<String>,
    /// What a row of units says of each column.
    pub units: Vec<String>,
    /// The lines above the header.
    pub above: Vec<String>,
    /// Whether the file names its columns.
    pub has_header: bool,
    /// Units written in the cells, by column.
    pub cell_units: BTreeMap<usize, String>,
    /// A question about decimal marks.
    pub open_marks: Option<String>,
    /// The marks that the file seems to have, if a person says that they are others.
    pub free_marks: Option<Marks>,
    /// What was noticed.
    pub notes: Vec<String>,
    /// A question about the header.
    pub open_header: Option<String>,
}

/// Finds the table.
///
/// # Errors
/// A [`DiscoverError`] if the text holds none.
pub(crate) fn find(text: &str, decimal: Option<char>) -> Result<Table, DiscoverError> {
    let samples = Delimiter::ALL.map(|delimiter| Sample::read(text, delimiter));
    let best = samples.into_iter().max_by(|a, b| a.score.total_cmp(&b.score));
    let Some(sample) = best.filter(|sample| sample.score >= 0.6) else {
        return Err(if is_header_alone(text) {
            DiscoverError::NoRows
        } else {
            DiscoverError::NoTable
        });
    };
    Finder::new(text, sample, decimal).table()
}

/// Whether a text has one line, which names columns.
fn is_header_alone(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let (Some(line), None) = (lines.next(), lines.next()) else { return false };
    let names = |delimiter: &Delimiter| header(line, *delimiter).len() > 1;
    Delimiter::ALL[..4].iter().any(names)
}

struct Finder<'a> {
    text_lines: Vec<&'a str>,
    sample: Sample<'a>,
    form: Form,
    open_marks: Option<String>,
    cell_units: BTreeMap<usize, String>,
    forced: Option<Marks>,
    shapes: HashMap<String, bool>,
    /// Whether some cell of a row is of the kind of its column.
    alike: Vec<bool>,
    open_header: Option<String>,
}

impl<'a> Finder<'a> {
    fn new(text: &'a str, sample: Sample<'a>, decimal: Option<char>) -> Self {
        let found = marks::decide(sample.body(), sample.width, sample.delimiter, None);
        let forced = decimal
            .map(|_| marks::decide(sample.body(), sample.width, sample.delimiter, decimal).marks);
        let last = sample.lines.last().map_or(0, |line| usize::try_from(*line).unwrap_or(0));
        let text_lines = text.lines().take(last + 1).collect();
        let form = Form {
            delimiter: sample.delimiter,
            multiline: sample.multiline,
            decimal: found.marks.decimal,
            thousands: found.marks.thousands,
            around: found.marks.around,
            missing: MISSING.iter().map(|text| (*text).to_owned()).collect(),
            ..Form::default()
        };
        let open_marks = found.open.filter(|_| decimal.is_none());
        let (cell_units, shapes) = (found.units, HashMap::new());
        let (open_header, alike) = (None, Vec::new());
        Finder {
            text_lines,
            sample,
            form,
            open_marks,
            cell_units,
            forced,
            shapes,
            alike,
            open_header,
        }
    }

    /// The names on the line of a row.
    fn names_at(&self, at: usize) -> Vec<String> {
        let row = &self.sample.rows[at];
        if row.iter().any(|cell| cell.contains('\n')) {
            return row.iter().map(ToString::to_string).collect();
        }
        header(self.line_at(at), self.form.delimiter)
    }

    fn line_at(&self, at: usize) -> &'a str {
        let line = usize::try_from(self.sample.lines[at]).unwrap_or(1);
        self.text_lines.get(line - 1).copied().unwrap_or_default()
    }

    fn table(mut self) -> Result<Table, DiscoverError> {
        let (first, header_row) = self.begin().ok_or(DiscoverError::NoTable)?;
        self.same_records(first)?;
        let mut notes = Vec::new();
        self.widths(first, &mut notes);
        let data_line = usize::try_from(self.sample.lines[first]).unwrap_or(1);
        let used = self.used_width(first);
        let fields = headings::of_fields(&self.text_lines[..data_line - 1], used);
        let has_header = header_row.is_some() || fields.is_some();
        let (names, units, above) = match header_row {
            _ if let Some(names) = fields => {
                (self.form.columns, self.form.skip) = (names.clone(), data_line - 1);
                (names, Vec::new(), data_line - 1)
            }
            Some(at) => self.with_header(at, first, data_line),
            None => {
                let width = self.used_width(first);
                self.open_header = self.fewer_names(first, width);
                let names = distinct(vec![""; width].into_iter());
                (self.form.columns, self.form.skip) = (names.clone(), data_line - 1);
                (names, Vec::new(), data_line - 1)
            }
        };
        let above = self.text_lines.iter().take(above).map(|line| (*line).to_owned()).collect();
        let free = self.form.marks();
        let forced = self.forced.filter(|forced| *forced != free);
        let form = match forced.clone() {
            Some(marks) => self.form.with_marks(marks),
            None => self.form,
        };
        Ok(Table {
            form,
            names,
            units,
            above,
            has_header,
            cell_units: self.cell_units,
            open_marks: self.open_marks,
            free_marks: forced.map(|_| free),
            notes,
            open_header: self.open_header,
        })
    }

    /// Names, units and the number of lines above the header.
    fn with_header(
        &mut self,
        at: usize,
        first: usize,
        data_line: usize,
    ) -> (Vec<String>, Vec<String>, usize) {
        let header_line = usize::try_from(self.sample.lines[at]).unwrap_or(1);
        let names = header(self.line_at(at), self.form.delimiter);
        let units = self
            .sample
            .rows
            .get(at + 1..first)
            .into_iter()
            .flatten()
            .find(|row| row.len() >= names.len() && !repeats(row, &names));
        let units =
            units.map(|row| row.iter().map(ToString::to_string).collect()).unwrap_or_default();
        let used = self.used_width(first);
        let over_lines = self.sample.rows[at].iter().any(|cell| cell.contains('\n'));
        if names.len() >= used && names.len() <= self.sample.width && !over_lines {
            self.form.skip = header_line - 1;
            self.form.below = data_line - header_line - 1;
            return (names, units, header_line - 1);
        }
        let rows = self.sample.rows.get(first..).unwrap_or_default().to_vec();
        if !over_lines && !names_rows(&rows, |cell| self.kind(cell) == Kind::Time) {
            self.open_header = Some(other_width(header_line, names.len(), used));
        }
        let mut named: Vec<String> = if over_lines {
            self.sample.rows[at].iter().map(ToString::to_string).collect()
        } else if self.begins_with_time(&names, first) {
            names
        } else {
            // A column without a name stands first, as some programs write their row numbers.
            std::iter::once(String::new()).chain(names).collect()
        };
        named.resize(used.max(named.len()), String::new());
        named.truncate(self.sample.width);
        let names = distinct(named.iter().map(String::as_str));
        (self.form.columns, self.form.skip) = (names.clone(), data_line - 1);
        (names, units, header_line - 1)
    }

    /// Whether the first of several names is that of a time, and the first column has times.
    fn begins_with_time(&mut self, names: &[String], first: usize) -> bool {
        let cell = self.sample.rows.get(first).and_then(|row| row.first()).cloned();
        names.len() > 1
            && has(&names[0], TIMES)
            && cell.is_some_and(|cell| self.kind(&cell) == Kind::Time)
    }

    /// The question about a line right above the rows that holds names, but not one for each cell.
    fn fewer_names(&mut self, first: usize, width: usize) -> Option<String> {
        let at = first.checked_sub(1)?;
        let row = self.sample.rows.get(at)?.clone();
        let names = row.iter().filter(|cell| self.kind(cell) == Kind::Text).count();
        let line = usize::try_from(self.sample.lines[at]).unwrap_or(1);
        headings::fewer(names, &row, (self.line_at(at), line), width)
    }

    /// The width of rows without the columns at their end that are empty throughout.
    fn used_width(&self, first: usize) -> usize {
        let rows = self.sample.rows.iter().skip(first).filter(|row| row.len() == self.sample.width);
        let used =
            rows.map(|row| row.iter().rposition(|cell| !cell.is_empty()).map_or(0, |at| at + 1));
        used.max().unwrap_or(self.sample.width).max(1)
    }

    /// Refuses lines whose first cell says what kind of record they are.
    fn same_records(&self, first: usize) -> Result<(), DiscoverError> {
        let (width, used) = (self.sample.width, self.used_width(first));
        let rows = || self.sample.rows.iter().skip(first).filter(|row| !row.is_empty());
        let fits = |row: &&Row<'_>| row.len() == width || (row.len() >= used && row.len() < width);
        let code = |row: &Row<'_>| row[0].to_string();
        let full: BTreeSet<String> = rows().filter(fits).map(code).collect();
        let others: Vec<&Row<'_>> = rows().filter(|row| !fits(row)).collect();
        let codes: BTreeSet<String> = others.iter().map(|row| code(row)).collect();
        let many = others.len() * 100 > rows().count();
        if many
            && full.len() <= 3
            && !codes.is_empty()
            && codes.len() <= 12
            && codes.is_disjoint(&full)
            && rows().count() > 4
        {
            let show = |set: BTreeSet<String>| {
                set.into_iter().filter(|code| code.len() <= 12).collect::<Vec<_>>().join(", ")
            };
            let widths: BTreeSet<usize> = rows().map(Vec::len).collect();
            let widths: Vec<String> = widths.iter().take(8).map(ToString::to_string).collect();
            let codes = show(full.union(&codes).cloned().collect());
            return Err(DiscoverError::Records { codes, widths: widths.join(", ") });
        }
        Ok(())
    }

    /// Whether rows lack cells at their end.
    fn widths(&mut self, first: usize, notes: &mut Vec<String>) {
        let used = self.used_width(first);
        let rows = || self.sample.rows.iter().skip(first);
        // A line of prose below the table is no row that ends early.
        let alike = self.alike.iter().skip(first);
        let short =
            rows().zip(alike).filter(|(row, alike)| **alike && row.len() > 1 && row.len() < used);
        let short = short.count();
        let long = rows()
            .filter(|row| {
                row.len() > self.sample.width
                    && row.iter().skip(self.sample.width).any(|cell| !cell.is_empty())
            })
            .count();
        if short * 50 > rows().count() && long == 0 {
            self.form.ragged = true;
            notes.push("Some rows end early; their missing cells are read as empty.".to_owned());
        }
    }
}

/// Whether a row says the names once more.
fn repeats(row: &[Cow<'_, str>], names: &[String]) -> bool {
    let same = row.iter().zip(names).filter(|(cell, name)| cell.trim() == name.trim()).count();
    same * 2 > names.len()
}
