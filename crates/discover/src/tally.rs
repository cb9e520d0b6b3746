//! Counts and exact sums over all rows, once it is known how to read them.

use crate::bounds::Spread;
use crate::cells::Row;
use crate::clock::Local;
use crate::form::Form;
use crate::hash::{Hashes, Map, Set};
use crate::number::{Decimal, Marks, Sum};
use crate::profile::boolean;
use crate::scan::{Scanned, scan};
use crate::times::{TimePlan, join};
use crate::windows::WINDOWS;
use std::collections::{BTreeMap, HashSet};

/// Times that can be expressed: from 1970 to 2112, in microseconds.
const LIMIT: i64 = alpheus_time::Timestamp::LIMIT.0.cast_signed();

/// What an attribute's cells hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Numbers.
    Number,
    /// Yes and no.
    Boolean,
    /// Texts, which can be counted.
    Text,
}

/// An attribute whose cells are counted.
pub(crate) struct CountedColumn {
    pub column: usize,
    pub values: Values,
    /// Texts that stand for a missing value, in this column.
    pub missing: HashSet<String>,
}

/// The count and the sum of one attribute.
#[derive(Clone, Debug, Default)]
pub struct Total {
    /// Cells with a value.
    pub count: u64,
    /// Their exact sum; of yes and no, the number of yes.
    pub sum: Sum,
    /// The least and the greatest.
    pub range: Option<(Decimal, Decimal)>,
    /// The most decimal places.
    pub places: u8,
    /// The longest text, in bytes.
    pub longest: usize,
    /// Cells of this column that could not be read.
    pub unread: u64,
    /// How its numbers are spread.
    pub spread: Spread,
}

/// What all rows hold.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Rows with a time.
    pub rows: u64,
    /// Rows without a time, though other cells have values.
    pub untimed: u64,
    /// Rows whose time cannot be read.
    pub bad_time: u64,
    /// Rows with another number of cells than the header.
    pub bad_width: u64,
    /// Rows whose quotes do not fit.
    pub broken: u64,
    /// Rows without an owner.
    pub no_owner: u64,
    /// Rows of empty cells.
    pub blank: u64,
    /// Rows before 1970 or after 2112, which cannot be expressed.
    pub out_of_range: u64,
    /// Rows that lie before an earlier row of their owner.
    pub out_of_order: u64,
    /// Rows with the time of an earlier row of their owner.
    pub same_time: u64,
    /// Rows at local times that a change of the clocks skips, and that it repeats.
    pub skipped: u64,
    /// See above; the first of the two is taken.
    pub repeated: u64,
    /// Rows that equal an earlier one in every cell.
    pub duplicates: u64,
    /// Owners.
    pub owners: u64,
    /// Rows of the owner with the most.
    pub most_rows: u64,
    /// For each length of windows: how many windows have data of so many owners.
    pub(crate) crowds: Vec<BTreeMap<u64, u64>>,
    /// The first and the last time, in microseconds since 1970.
    pub span: Option<(i64, i64)>,
    /// Each attribute, in order.
    pub totals: Vec<Total>,
    /// The first lines that were refused.
    pub refused_lines: Vec<u64>,
}

impl Tally {
    /// Of the windows of a length that have data, the part in percent with at least so many
    /// owners.
    pub(crate) fn share_of_crowds(&self, length: usize, least: u64) -> u64 {
        let Some(crowds) = self.crowds.get(length) else { return 0 };
        let full: u64 = crowds.range(least..).map(|(_, windows)| windows).sum();
        full * 100 / crowds.values().sum::<u64>().max(1)
    }

    /// Rows that were refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.untimed + self.bad_time + self.bad_width + self.broken + self.no_owner
    }
}

/// The rows of one owner: their times, each with the hash of its first row.
#[derive(Default)]
struct Owner {
    rows: u64,
    /// Times that came in order.
    run: Vec<(i64, u64)>,
    /// Times that came later than a greater one.
    late: Set<i64>,
    /// Rows that are not in the run.
    others: Set<(i64, u64)>,
}

impl Owner {
    /// Adds a row; whether its time lies before a known one, is known, and the row is known.
    fn add(&mut self, time: i64, hash: u64) -> (bool, bool, bool) {
        self.rows += 1;
        let last = self.run.last().map_or(i64::MIN, |(last, _)| *last);
        if time > last || self.run.is_empty() {
            self.run.push((time, hash));
            return (false, false, false);
        }
        let first = self.run.binary_search_by_key(&time, |(known, _)| *known).ok();
        let same = first.is_some() || self.late.contains(&time);
        if !same {
            self.late.insert(time);
        }
        let is_first = first.is_some_and(|at| self.run[at].1 == hash);
        let repeats = is_first || !self.others.insert((time, hash));
        (time < last, same, repeats)
    }
}

struct Counter<'w> {
    tally: Tally,
    form: &'w Form,
    missing: HashSet<&'w str>,
    marks: Marks,
    time: &'w TimePlan,
    owner: Option<usize>,
    wanted: &'w [CountedColumn],
    owners: Map<String, Owner>,
    hashes: Hashes,
    joined: String,
}

/// Reads all rows.
pub(crate) fn tally(
    text: &str,
    form: &Form,
    time: &TimePlan,
    owner: Option<usize>,
    wanted: &[CountedColumn],
) -> Tally {
    let mut counter = Counter {
        tally: Tally { totals: vec![Total::default(); wanted.len()], ..Tally::default() },
        form,
        missing: form.missing.iter().map(String::as_str).collect(),
        marks: form.marks(),
        time,
        owner,
        wanted,
        owners: Map::default(),
        hashes: Hashes::default(),
        joined: String::new(),
    };
    scan(text, form, |line, scanned| {
        let refused = counter.tally.refused();
        match scanned {
            Scanned::Row(row) => counter.row(row),
            Scanned::Blank => counter.tally.blank += 1,
            Scanned::Width => counter.tally.bad_width += 1,
            Scanned::Broken => counter.tally.broken += 1,
        }
        if counter.tally.refused() > refused && counter.tally.refused_lines.len() < 5 {
            counter.tally.refused_lines.push(line);
        }
        true
    });
    counter.tally.crowds =
        WINDOWS.iter().map(|window| crowds(&counter.owners, window.seconds)).collect();
    counter.tally.owners = counter.owners.len() as u64;
    counter.tally.most_rows = counter.owners.values().map(|owner| owner.rows).max().unwrap_or(0);
    counter.tally
}

/// How many windows of this length have data of so many owners.
fn crowds(owners: &Map<String, Owner>, seconds: i64) -> BTreeMap<u64, u64> {
    let mut windows: Map<i64, u64> = Map::default();
    for owner in owners.values() {
        let late = owner.late.iter().copied();
        let times = owner.run.iter().map(|(time, _)| *time).chain(late);
        let (mut known, mut last) = (Set::default(), None);
        for window in times.map(|time| time.div_euclid(seconds * 1_000_000)) {
            if last != Some(window) && known.insert(window) {
                *windows.entry(window).or_default() += 1;
            }
            last = Some(window);
        }
    }
    let mut crowds = BTreeMap::new();
    for owners in windows.into_values() {
        *crowds.entry(owners).or_default() += 1;
    }
    crowds
}

impl Counter<'_> {
    fn row(&mut self, row: &Row<'_>) {
        if !join(row, &self.time.columns, self.form, &mut self.joined) {
            self.tally.untimed += 1;
            return;
        }
        let Some((micros, local)) = self.time.clock.read(&self.joined) else {
            self.tally.bad_time += 1;
            return;
        };
        let owner = self.owner.map_or("", |at| row.get(at).map_or("", AsRef::as_ref));
        if self.owner.is_some() && owner.is_empty() {
            self.tally.no_owner += 1;
            return;
        }
        self.tally.rows += 1;
        self.tally.out_of_range += u64::from(!(0..LIMIT).contains(&micros));
        let known = match self.owners.get_mut(owner) {
            Some(known) => known,
            None => self.owners.entry(owner.to_owned()).or_default(),
        };
        let (before, same, repeats) = known.add(micros, self.hashes.of(row));
        self.tally.out_of_order += u64::from(before);
        self.tally.same_time += u64::from(same);
        self.tally.duplicates += u64::from(repeats);
        self.tally.skipped += u64::from(local == Local::Skipped);
        self.tally.repeated += u64::from(local == Local::Repeated);
        self.tally.span = Some(
            self.tally.span.map_or((micros, micros), |(lo, hi)| (lo.min(micros), hi.max(micros))),
        );
        for (wanted, total) in self.wanted.iter().zip(&mut self.tally.totals) {
            let cell = row.get(wanted.column).map_or("", AsRef::as_ref);
            if !cell.is_empty() && !self.missing.contains(cell) && !wanted.missing.contains(cell) {
                total.count(cell, wanted.values, &self.marks);
            }
        }
    }
}

impl Total {
    fn count(&mut self, cell: &str, values: Values, marks: &Marks) {
        match values {
            Values::Text => {
                self.count += 1;
                self.longest = self.longest.max(cell.len());
            }
            Values::Boolean => match boolean(cell) {
                Some(yes) => {
                    self.count += 1;
                    self.sum.add(Decimal { digits: i128::from(yes), places: 0 });
                }
                None => self.unread += 1,
            },
            Values::Number => {
                let Some(value) = marks.plain(cell).and_then(|plain| Decimal::read(&plain)) else {
                    self.unread += 1;
                    return;
                };
                self.count += 1;
                self.sum.add(value);
                self.spread.add(value, cell);
                self.places = self.places.max(value.places);
                self.range = Some(
                    self.range.map_or((value, value), |(lo, hi)| (lo.min(value), hi.max(value))),
                );
            }
        }
    }
}
