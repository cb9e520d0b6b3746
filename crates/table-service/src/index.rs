//! The owner's index: times and groups of the rows, in stretches of evenly spaced rows. It
//! maps days to rows. The owner keeps it, since a server that supplied it could choose the
//! range.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// Rows of the same groups, evenly spaced in time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// Number of the first row.
    pub row: u64,
    /// Number of rows.
    pub rows: u64,
    /// Time of the first row, in microseconds.
    pub time: i64,
    /// Time from each row to the next.
    pub step: i64,
    /// The value of each group.
    pub groups: Vec<String>,
}

impl Stretch {
    /// The rows with times from `from` to `to`, both included.
    fn between(&self, from: i64, to: i64) -> Range<u64> {
        let within = |k: u64| {
            let time = self.at(k);
            time >= from && time <= to
        };
        if self.step == 0 || self.rows == 1 {
            return if within(0) { 0..self.rows } else { 0..0 };
        }
        // Times increase or decrease. Either way the selected rows are contiguous.
        let before = |k: u64| if self.step > 0 { self.at(k) < from } else { self.at(k) > to };
        let first = partition(self.rows, before);
        first..partition(self.rows, |k| k < first || within(k))
    }

    fn at(&self, k: u64) -> i64 {
        let k = i64::try_from(k).unwrap_or(i64::MAX);
        self.time.saturating_add(self.step.saturating_mul(k))
    }
}

/// The first of 0 to `count` for which `before` is false. It is false for all later ones.
fn partition(count: u64, before: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = u64::midpoint(low, high);
        if before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

/// All stretches, in order of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    stretches: Vec<Stretch>,
}

/// Microseconds of a day.
pub const DAY: i64 = 86_400_000_000;

/// The rows of a query, and how they are grouped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// From and to, both included, in microseconds.
    pub between: Option<(i64, i64)>,
    /// Groups, by index, and the values that they must have.
    pub equal: Vec<(usize, String)>,
    /// Whether rows are grouped by day.
    pub by_day: bool,
    /// Groups by whose values rows are grouped.
    pub by_groups: Vec<usize>,
}

/// Identifies a group of rows: its day, if rows are grouped by day, and its values.
pub type GroupKey = (Option<i64>, Vec<String>);

impl Index {
    /// An index of these stretches.
    #[must_use]
    pub fn new(mut stretches: Vec<Stretch>) -> Self {
        stretches.sort_by_key(|stretch| stretch.row);
        Self { stretches }
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.stretches.last().map_or(0, |last| last.row.saturating_add(last.rows))
    }

    /// Whether the stretches are contiguous from the first row on, and none is empty.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let mut next = 0;
        self.stretches.iter().all(|stretch| {
            let follows = stretch.row == next && stretch.rows > 0;
            next = stretch.row.saturating_add(stretch.rows);
            follows
        })
    }

    /// Adds a row, and returns the number of its stretch.
    pub fn push(&mut self, time: i64, groups: &[String]) -> usize {
        let row = self.rows();
        if let Some(last) = self.stretches.last_mut() {
            let step = time.saturating_sub(last.at(last.rows - 1));
            if last.groups == groups && (last.rows == 1 || last.step == step) {
                last.step = step;
                last.rows += 1;
                return self.stretches.len() - 1;
            }
        }
        let groups = groups.to_vec();
        self.stretches.push(Stretch { row, rows: 1, time, step: 0, groups });
        self.stretches.len() - 1
    }

    /// The rows of a time and of these groups.
    #[must_use]
    pub fn at(&self, time: i64, groups: &[String]) -> Vec<u64> {
        let same = self.stretches.iter().filter(|stretch| stretch.groups == groups);
        same.flat_map(|stretch| stretch.between(time, time).map(|row| stretch.row + row)).collect()
    }

    /// The time and the groups of a row.
    #[must_use]
    pub fn row(&self, row: u64) -> Option<(i64, &[String])> {
        let after = self.stretches.partition_point(|stretch| stretch.row <= row);
        let stretch = self.stretches.get(after.checked_sub(1)?)?;
        let k = row - stretch.row;
        (k < stretch.rows).then(|| (stretch.at(k), stretch.groups.as_slice()))
    }

    /// Stretches from number `from` on.
    #[must_use]
    pub fn since(&self, from: usize) -> &[Stretch] {
        self.stretches.get(from..).unwrap_or_default()
    }

    /// The ranges of rows of each group. Adjacent ranges are joined.
    #[must_use]
    pub fn select(&self, selection: &Selection) -> BTreeMap<GroupKey, Vec<Range<u64>>> {
        let mut found: BTreeMap<GroupKey, Vec<Range<u64>>> = BTreeMap::new();
        let value =
            |stretch: &Stretch, at: usize| stretch.groups.get(at).cloned().unwrap_or_default();
        let (from, to) = selection.between.unwrap_or((i64::MIN, i64::MAX));
        let equal = |stretch: &&Stretch| {
            selection.equal.iter().all(|(at, wanted)| value(stretch, *at) == *wanted)
        };
        for stretch in self.stretches.iter().filter(equal) {
            let key: Vec<String> =
                selection.by_groups.iter().map(|at| value(stretch, *at)).collect();
            let all = stretch.between(from, to);
            let mut k = all.start;
            while k < all.end {
                let (day, end) = if selection.by_day {
                    let day = stretch.at(k).div_euclid(DAY);
                    let midnight = day.saturating_mul(DAY);
                    let of_day = stretch.between(midnight, midnight.saturating_add(DAY - 1));
                    (Some(day), of_day.end.clamp(k + 1, all.end))
                } else {
                    (None, all.end)
                };
                let rows = stretch.row + k..stretch.row + end;
                let ranges = found.entry((day, key.clone())).or_default();
                match ranges.last_mut() {
                    Some(last) if last.end == rows.start => last.end = rows.end,
                    _ => ranges.push(rows),
                }
                k = end;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::ChaCha20Rng;
    use rand_core::{Rng, SeedableRng};

    /// Rows of a random table: times go on by one, jump, or stand still, in eighths of a day.
    fn rows(rng: &mut ChaCha20Rng) -> Vec<(i64, String)> {
        let (mut time, mut all) = (0, Vec::new());
        for _ in 0..rng.next_u32() % 60 {
            time = match rng.next_u32() % 8 {
                0 => i64::from(rng.next_u32() % 40),
                1 => time,
                2 => time - 1,
                _ => time + 1,
            };
            all.push((time * DAY / 8, (rng.next_u32() % 10 / 8).to_string()));
        }
        all
    }

    /// The index selects the same rows as a scan, for random times and groups.
    #[test]
    fn the_index_selects_the_same_rows_as_a_scan() {
        let mut rng = ChaCha20Rng::from_seed([3; 32]);
        for _ in 0..2000 {
            let (mut index, all) = (Index::default(), rows(&mut rng));
            for (time, group) in &all {
                index.push(*time, std::slice::from_ref(group));
            }
            let mut some = |of: u32| i64::from(rng.next_u32() % of);
            let between = (some(2) == 0).then(|| (some(40) * DAY / 8, some(40) * DAY / 8));
            let equal = (some(2) == 0).then(|| some(2).to_string());
            let (by_day, by_group) = (some(2) == 0, some(2) == 0);
            let mut plain: BTreeMap<GroupKey, Vec<u64>> = BTreeMap::new();
            for (row, (time, group)) in (0..).zip(&all) {
                let within = between.is_none_or(|(a, b)| (a..=b).contains(time));
                if within && equal.as_ref().is_none_or(|wanted| wanted == group) {
                    let key = if by_group { vec![group.clone()] } else { Vec::new() };
                    let day = by_day.then_some(time.div_euclid(DAY));
                    plain.entry((day, key)).or_default().push(row);
                }
            }
            let selection = Selection {
                between,
                equal: equal.into_iter().map(|value| (0, value)).collect(),
                by_day,
                by_groups: if by_group { vec![0] } else { Vec::new() },
            };
            let found = index.select(&selection).into_iter();
            let found = found.map(|(key, ranges)| (key, ranges.into_iter().flatten().collect()));
            assert_eq!(found.collect::<BTreeMap<_, Vec<u64>>>(), plain, "{all:?}, {selection:?}");
            assert_eq!(index.rows(), all.len() as u64);
            for (row, (time, group)) in (0..).zip(&all) {
                assert_eq!(index.row(row), Some((*time, std::slice::from_ref(group))));
            }
            assert_eq!(index.row(index.rows()), None);
        }
    }
}
