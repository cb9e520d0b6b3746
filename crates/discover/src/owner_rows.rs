//! The rows of one owner, as all rows are counted.

use crate::hash::Set;
use crate::steps::Before;
use crate::windows::{DAY, SECOND};

/// The rows of one owner: their times, each with the hash of its first row.
#[derive(Default)]
pub(crate) struct Owner {
    pub(crate) rows: u64,
    /// Times that came in order.
    pub(crate) run: Vec<(i64, u64)>,
    /// Times that came later than a greater one.
    pub(crate) late: Set<i64>,
    /// Rows that are not in the run.
    others: Set<(i64, u64)>,
    /// The times of these, repeated ones too.
    pub(crate) beside: Vec<i64>,
    /// The reading before, of each attribute.
    pub(crate) before: Vec<Before>,
    /// The time of the row before.
    pub(crate) latest: Option<i64>,
    /// What may describe it: the hashes of the cells of its first row.
    pub(crate) facts: Vec<u64>,
}

impl Owner {
    /// Adds a row; whether its time lies before a known one, is known, and the row is known.
    pub(crate) fn add(&mut self, time: i64, hash: u64) -> (bool, bool, bool) {
        self.rows += 1;
        self.latest = Some(time);
        let last = self.run.last().map_or(i64::MIN, |(last, _)| *last);
        if time > last || self.run.is_empty() {
            self.run.push((time, hash));
            return (false, false, false);
        }
        self.beside.push(time);
        let first = self.run.binary_search_by_key(&time, |(known, _)| *known).ok();
        let same = first.is_some() || self.late.contains(&time);
        if !same {
            self.late.insert(time);
        }
        let is_first = first.is_some_and(|at| self.run[at].1 == hash);
        let repeats = is_first || !self.others.insert((time, hash));
        (time < last, same, repeats)
    }

    /// The days since 1970 with rows, in order, each with how many.
    pub(crate) fn days(&self) -> Vec<(i64, u64)> {
        let times = self.run.iter().map(|(time, _)| time).chain(&self.beside);
        let mut days: Vec<(i64, u64)> = Vec::new();
        for day in times.map(|time| time.div_euclid(DAY * SECOND)) {
            match days.last_mut() {
                Some((last, rows)) if *last == day => *rows += 1,
                _ => days.push((day, 1)),
            }
        }
        days.sort_unstable();
        days.dedup_by(|next, own| {
            own.0 == next.0 && {
                own.1 += next.1;
                true
            }
        });
        days
    }
}
