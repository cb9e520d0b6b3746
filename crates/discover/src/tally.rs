//! Counts and exact sums over all rows, once it is known how to read them.

use crate::cells::Row;
use crate::form::Form;
use crate::number::{Decimal, Marks, Sum};
use crate::profile::boolean;
use crate::scan::{Scanned, scan};
use crate::times::{TimePlan, join};
use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};

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
    /// Rows that equal an earlier one in every cell.
    pub duplicates: u64,
    /// Owners.
    pub owners: u64,
    /// Rows of the owner with the most.
    pub most_rows: u64,
    /// The first and the last time, in microseconds since 1970.
    pub span: Option<(i64, i64)>,
    /// Each attribute, in order.
    pub totals: Vec<Total>,
    /// The first lines that were refused.
    pub refused_lines: Vec<u64>,
}

impl Tally {
    /// Rows that were refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.untimed + self.bad_time + self.bad_width + self.broken + self.no_owner
    }
}

struct Owner {
    last: i64,
    rows: u64,
    times: HashSet<i64>,
}

struct Counter<'w> {
    tally: Tally,
    form: &'w Form,
    missing: HashSet<&'w str>,
    marks: Marks,
    time: &'w TimePlan,
    owner: Option<usize>,
    wanted: &'w [CountedColumn],
    owners: HashMap<String, Owner>,
    seen: HashSet<u64>,
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
        owners: HashMap::new(),
        seen: HashSet::new(),
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
    counter.tally.owners = counter.owners.len() as u64;
    counter.tally.most_rows = counter.owners.values().map(|owner| owner.rows).max().unwrap_or(0);
    counter.tally
}

impl Counter<'_> {
    fn row(&mut self, row: &Row<'_>) {
        if !join(row, &self.time.columns, self.form, &mut self.joined) {
            self.tally.untimed += 1;
            return;
        }
        let Some(micros) = self.time.clock.micros(&self.joined) else {
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
        self.order(owner, micros);
        let mut hasher = DefaultHasher::new();
        row.hash(&mut hasher);
        self.tally.duplicates += u64::from(!self.seen.insert(hasher.finish()));
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

    fn order(&mut self, owner: &str, micros: i64) {
        let Some(known) = self.owners.get_mut(owner) else {
            let first = Owner { last: micros, rows: 1, times: HashSet::from([micros]) };
            self.owners.insert(owner.to_owned(), first);
            return;
        };
        known.rows += 1;
        self.tally.out_of_order += u64::from(micros < known.last);
        known.last = known.last.max(micros);
        self.tally.same_time += u64::from(!known.times.insert(micros));
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
                self.places = self.places.max(value.places);
                self.range = Some(
                    self.range.map_or((value, value), |(lo, hi)| (lo.min(value), hi.max(value))),
                );
            }
        }
    }
}
