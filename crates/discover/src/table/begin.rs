//! Where the rows of a table begin, and which line above them names its columns.

use super::{Finder, MAX_ABOVE};
use crate::cells::Row;
use crate::clock::shape;
use crate::headings;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// The kind of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Missing,
    Number,
    Time,
    Text,
}

/// How a row's cells agree with the kinds of their columns.
#[derive(Default)]
struct Agreement {
    fits: bool,
    agree: usize,
    differ: usize,
    /// Empty cells of columns that are never empty.
    lacks: usize,
    /// Whether the first column with a kind differs.
    first_differs: bool,
    /// Whether a time is where most rows have one, whether one is in another such column, and whether
    /// any cell is one.
    timed: bool,
    timed_later: bool,
    has_time: bool,
    /// The number of different texts, and whether no cell equals another or is empty.
    names: usize,
    all_differ: bool,
}

impl<'a> Finder<'a> {
    pub(super) fn kind(&mut self, cell: &str) -> Kind {
        if self.form.is_missing(cell) {
            return Kind::Missing;
        }
        if self.form.marks().plain(cell).is_some() {
            return Kind::Number;
        }
        let Some(shape) = shape::shape(cell) else { return Kind::Text };
        let is_time = *self.shapes.entry(shape).or_insert_with(|| !shape::formats(cell).is_empty());
        if is_time { Kind::Time } else { Kind::Text }
    }

    /// The kind of each column, if nearly all its cells have one; whether it is never empty.
    fn columns(&mut self) -> Vec<(Option<Kind>, bool)> {
        let width = self.sample.width;
        let body: Vec<Row<'a>> =
            self.sample.core().iter().filter(|row| row.len() == width).take(400).cloned().collect();
        let mut found = Vec::new();
        for column in 0..width {
            let (mut number, mut time, mut all, mut filled) = (0, 0, 0, true);
            for row in &body {
                match self.kind(&row[column]) {
                    Kind::Missing => {
                        filled = false;
                        continue;
                    }
                    Kind::Number => number += 1,
                    Kind::Time => time += 1,
                    Kind::Text => {}
                }
                all += 1;
            }
            let most = |count: usize| all > 0 && count * 20 >= all * 19;
            let kind = if most(number) {
                Some(Kind::Number)
            } else if most(time) {
                Some(Kind::Time)
            } else {
                None
            };
            found.push((kind, filled));
        }
        found
    }

    /// How many cells of each row agree with the kinds of their columns, and how many do not.
    fn agreement(&mut self) -> Vec<Agreement> {
        let columns = self.columns();
        let rows = self.sample.rows.clone();
        rows.iter()
            .enumerate()
            .map(|(at, row)| {
                let broken = if row.is_empty() { self.without_quotes(at) } else { Vec::new() };
                let cells = if row.is_empty() { &broken } else { row };
                let fits = row.len() == self.sample.width;
                Agreement { fits, ..self.agreement_of(cells, &columns) }
            })
            .collect()
    }

    fn agreement_of(&mut self, row: &Row<'_>, columns: &[(Option<Kind>, bool)]) -> Agreement {
        let mut found = Agreement::default();
        let typed = columns.iter().position(|(kind, _)| kind.is_some());
        let time = columns.iter().position(|(kind, _)| *kind == Some(Kind::Time));
        for (at, (cell, (wanted, filled))) in row.iter().zip(columns).enumerate() {
            let kind = self.kind(cell);
            found.has_time |= kind == Kind::Time;
            if kind == Kind::Missing {
                found.lacks += usize::from(*filled && cell.is_empty());
            } else if let Some(wanted) = wanted {
                found.agree += usize::from(*wanted == kind);
                found.differ += usize::from(*wanted != kind);
                found.first_differs |= typed == Some(at) && *wanted != kind;
                let is_timed = *wanted == Kind::Time && kind == Kind::Time;
                found.timed |= is_timed && time == Some(at);
                found.timed_later |= is_timed && time != Some(at);
            }
        }
        let different: BTreeSet<&str> =
            row.iter().map(AsRef::as_ref).filter(|cell| !cell.is_empty()).collect();
        found.names = different.len();
        found.all_differ = different.len() == row.len();
        found
    }

    /// The cells of a row whose quotes do not fit, as if it had none.
    fn without_quotes(&self, at: usize) -> Row<'a> {
        let delimiter = self.form.delimiter;
        let line = self.line_at(at);
        let is_mark = |c: char| u8::try_from(c).is_ok_and(|byte| delimiter.is(byte));
        line.split(is_mark).map(|cell| cell.trim().into()).collect()
    }

    /// The position of the first row of data, and of the header if there is one.
    pub(super) fn begin(&mut self) -> Option<(usize, Option<usize>)> {
        let agreement = self.agreement();
        self.alike = agreement.iter().map(|own| own.agree > 0).collect();
        let is_data = |found: &Agreement| {
            found.fits && found.differ == 0 && found.lacks == 0 && found.agree > 0
        };
        let sure = agreement.iter().position(is_data)?;
        let has_times = agreement.iter().any(|own| own.fits && own.timed);
        let strays = self.strays(&agreement, sure, has_times);
        // A row of data may have texts among its numbers, or lack some.
        let data = |at: &usize| {
            let own = &agreement[*at];
            strays[*at] || own.fits && own.agree > 0 && (own.agree >= own.differ || own.timed)
        };
        let header = self.header_above(&agreement, &strays, (0..sure).find(data), sure);
        // What begins with a mark and is data otherwise is no comment.
        let marked =
            |at: usize| self.sample.rows[at].first().is_some_and(|cell| cell.starts_with('#'));
        let mut below = (sure..agreement.len()).filter(|at| marked(*at)).peekable();
        let comments = below.peek().is_some() && !below.any(|at| is_data(&agreement[at]));
        self.form.comment = comments.then_some('#');
        // Below the header, only data has times.
        let below_header = has_times && header.is_some();
        let read = |at: &usize| data(at) || (below_header && agreement[*at].has_time);
        let first = header.map_or(0, |header| header + 1);
        Some(((first..sure).find(read).unwrap_or(sure), header))
    }

    /// Which rows above the first that is data for certain are data too, though they have more cells
    /// than most, or fewer, or quotes that do not fit.
    fn strays(&self, all: &[Agreement], sure: usize, has_times: bool) -> Vec<bool> {
        let used = self.used_width(sure);
        let mut named = false;
        let is_stray = |(at, own): (usize, &Agreement)| {
            let row = &self.sample.rows[at];
            let like = own.agree > own.differ && own.agree > 1 && !own.first_differs;
            let stray =
                !own.fits && if has_times { own.timed && row.len() != 1 } else { named && like };
            named |= own.agree == 0 && own.names > 1 && row.len() + 1 >= used;
            stray
        };
        all.iter().enumerate().take(sure).map(is_stray).collect()
    }

    /// The position of the header above the first row that is data for certain.
    fn header_above(
        &mut self,
        agreement: &[Agreement],
        strays: &[bool],
        top: Option<usize>,
        sure: usize,
    ) -> Option<usize> {
        let (width, used) = (self.sample.width, self.used_width(sure));
        let within = |cells: usize| cells >= used && cells <= width;
        let mut best: Option<usize> = None;
        for at in (top.unwrap_or(sure).saturating_sub(MAX_ABOVE)..sure).rev() {
            if best.is_none() && (strays[at] || headings::is_rule(&self.sample.rows[at])) {
                continue;
            }
            let cells = self.names_at(at).len();
            let lacks_one =
                self.sample.rows[at].len() < used && (cells + 1 == width || cells + 1 == used);
            if !within(cells) && !within(self.sample.rows[at].len()) && !lacks_one {
                break;
            }
            if !within(cells) && !lacks_one {
                continue;
            }
            let own = &agreement[at];
            // Ids of a file may look like dates, and others of it not. No name is a time.
            let other = own.first_differs && own.all_differ && !own.timed_later;
            let names = own.agree == 0 || other || lacks_one;
            if names && (own.differ > 0 || lacks_one || own.names > 1) {
                best = self.better(agreement, best, at);
            }
        }
        best
    }

    /// Which of two rows rather has the names: of rows with as many, the lower one, unless it has the
    /// units or types of the other.
    fn better(&mut self, all: &[Agreement], lower: Option<usize>, at: usize) -> Option<usize> {
        let Some(known) = lower else { return Some(at) };
        let rows = &self.sample.rows;
        let upper = match all[at].names.cmp(&all[known].names) {
            Ordering::Equal => headings::describes(&rows[known], &rows[at]),
            other => other.is_gt(),
        };
        let line = usize::try_from(self.sample.lines[known]).unwrap_or(1);
        let open = || headings::open(&rows[known], &rows[at], line);
        self.open_header = if upper { None } else { open().filter(|_| all[at].fits) };
        Some(if upper { at } else { known })
    }
}
