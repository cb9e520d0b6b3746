//! The part of a file that a first answer covers, if all of it would take long.

use crate::cells::BrokenQuotes;
use crate::clock::TimeReader;
use crate::hash::Map;
use crate::times::join;
use crate::understanding::Understanding;
use crate::watch::Watch;
use crate::windows::{DAY, SECOND};
use alpheus_time::calendar::day_text;
use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// What a replay takes, in microseconds: of an owner, of a day on which one is online, since each
/// day has a session of its own, and of a row.
const OWNER: u64 = 1000;
const ONLINE_DAY: u64 = 200;
const ROW: u64 = 15;
/// Bytes between two reports of progress.
const REPORTED: usize = 1 << 16;
/// What a first answer may take.
const MAX_COST: u64 = 4_000_000;

/// Some days of a file, and some owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The first day since 1970, and the first after the last.
    days: (i64, i64),
    /// So many owners at most.
    owners: u64,
    /// All rows take so many times as long.
    times: u64,
}

/// The rows of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The file with no other rows, in UTF-8.
    pub text: String,
    /// How many rows it has.
    pub rows: u64,
    /// Of so many owners.
    pub owners: u64,
    /// Of so many who have rows on these days.
    pub of: u64,
}

/// The cost of some spans of days, which each windows fill.
struct Costs<'a> {
    /// The days of each owner with rows, with how many.
    attendance: &'a [Vec<(i64, u64)>],
    /// Days of a span.
    days: i64,
}

impl Costs<'_> {
    /// What the spans from one to another cost, and how many owners have rows there.
    fn of(&self, first: i64, last: i64) -> (u64, u64) {
        let (mut cost, mut owners) = (0u64, 0);
        for own in self.attendance {
            let from = own.partition_point(|(day, _)| day.div_euclid(self.days) < first);
            let until = own.partition_point(|(day, _)| day.div_euclid(self.days) <= last);
            let Some(([(begin, _), ..], (end, _))) =
                own.get(from..until).and_then(|own| Some((own, own.last()?)))
            else {
                continue;
            };
            let spans = end.div_euclid(self.days) - begin.div_euclid(self.days) + 1;
            let online = u64::try_from(spans * self.days).unwrap_or(0);
            let rows: u64 = own[from..until].iter().map(|(_, rows)| rows).sum();
            cost += OWNER + ONLINE_DAY * online + ROW * rows;
            owners += 1;
        }
        (cost, owners)
    }

    /// Rows of each span that has any.
    fn rows(&self) -> BTreeMap<i64, u64> {
        let mut rows = BTreeMap::new();
        for (day, own) in self.attendance.iter().flatten() {
            *rows.entry(day.div_euclid(self.days)).or_default() += own;
        }
        rows
    }
}

impl Part {
    /// The part with the most rows for a query with windows of so many seconds, in which there
    /// should be so many owners; none if all rows can be answered soon.
    pub(crate) fn of(attendance: &[Vec<(i64, u64)>], seconds: i64, least: u64) -> Option<Part> {
        let costs = Costs { attendance, days: (seconds / DAY).max(1) };
        let rows = costs.rows();
        let (first, last) = (*rows.keys().next()?, *rows.keys().next_back()?);
        let (all, mut owners) = costs.of(first, last);
        if all <= MAX_COST {
            return None;
        }
        let (mut from, mut until, mut cost) = (first, last, all);
        let mut length = last - first + 1;
        while cost > MAX_COST && length > 1 {
            length = (length * 3 / 4).max(1);
            from = fullest(&rows, length)?;
            until = from + length - 1;
            (cost, owners) = costs.of(from, until);
        }
        let each = (cost / owners.max(1)).max(1);
        let owners = if cost > MAX_COST { (MAX_COST / each).max(least) } else { owners };
        let days = (from.saturating_mul(costs.days), (until + 1).saturating_mul(costs.days));
        Some(Part { days, owners, times: (all / (each * owners).max(1)).max(1) })
    }

    /// The first and the last day, as `2024-03-01`.
    #[must_use]
    pub fn days(&self) -> (String, String) {
        (day_text(self.days.0), day_text(self.days.1 - 1))
    }

    /// About how many times as long a replay of all rows takes.
    #[must_use]
    pub fn times(&self) -> u64 {
        self.times
    }

    /// The rows of this part of a file that was understood so: of owners drawn by their names'
    /// hash, and of each of them all.
    #[must_use]
    pub fn cut(&self, bytes: &[u8], found: &Understanding, watch: &mut dyn Watch) -> Cut {
        let text = found.form.encoding.decode(bytes);
        watch.expects(text.len() as u64);
        let (mut ids, mut names) = (Map::default(), Vec::new());
        // Each row's owner, by its position among the names, and its text.
        let mut lines: Vec<(usize, &str)> = Vec::new();
        self.lines(&text, found, watch, |whose, line| {
            let id = match ids.get(whose) {
                Some(id) => *id,
                None => {
                    names.push((drawn(whose), whose.to_owned()));
                    ids.insert(whose.to_owned(), names.len() - 1);
                    names.len() - 1
                }
            };
            lines.push((id, line));
        });
        let all = names.len();
        let most = usize::try_from(self.owners).unwrap_or(usize::MAX);
        let mut order: Vec<usize> = (0..all).collect();
        order.sort_by_key(|id| &names[*id]);
        let mut taken = vec![false; all];
        order.iter().take(most).for_each(|id| taken[*id] = true);
        let start = text.len() - found.form.open(&text).rows.rest().len();
        let (owners, of) = (all.min(most) as u64, all as u64);
        let mut cut = Cut { text: text[..start].to_owned(), rows: 0, owners, of };
        for (_, line) in lines.into_iter().filter(|(id, _)| taken[*id]) {
            cut.text.push_str(line);
            cut.rows += 1;
        }
        cut
    }

    /// Visits the owner and the text of each row of these days.
    fn lines<'t>(
        &self,
        text: &'t str,
        found: &Understanding,
        watch: &mut dyn Watch,
        mut visit: impl FnMut(&str, &'t str),
    ) {
        let mut opened = found.form.open(text);
        let owner = found.owner.as_ref().and_then(|own| opened.names.iter().position(|n| n == own));
        let width = opened.names.len();
        let position = |rest: &str| text.len() - rest.len();
        let mut start = position(opened.rows.rest());
        let mut reported = 0;
        let (mut row, mut joined) = (Vec::new(), String::new());
        let mut times = TimeReader::of(&found.time.clock);
        loop {
            let read = opened.rows.read(&mut row);
            let end = position(opened.rows.rest());
            let line = &text[start..end];
            start = end;
            if end - reported >= REPORTED {
                watch.passed((end - reported) as u64);
                reported = end;
            }
            match read {
                Ok(false) => break,
                Ok(true) if found.form.fit(&mut row, width) => {}
                Ok(true) | Err(BrokenQuotes) => continue,
            }
            let timed = join(&row, &found.time.columns, &found.form, &mut joined);
            let time = if timed { times.read(&joined) } else { None };
            let day = time.map(|(micros, _)| micros.div_euclid(DAY * SECOND));
            if !day.is_some_and(|day| (self.days.0..self.days.1).contains(&day)) {
                continue;
            }
            let whose = owner.and_then(|at| row.get(at)).map_or("", AsRef::as_ref);
            if owner.is_none() || !whose.is_empty() {
                visit(whose, line);
            }
        }
    }
}

/// The place of an owner's name in an order that has nothing to do with the file's, and is always
/// the same.
fn drawn(whose: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    whose.hash(&mut hasher);
    hasher.finish()
}

/// The first of so many spans in a row that have the most rows.
fn fullest(rows: &BTreeMap<i64, u64>, length: i64) -> Option<i64> {
    let spans: Vec<(i64, u64)> = rows.iter().map(|(span, rows)| (*span, *rows)).collect();
    let (mut best, mut until, mut sum) = (None::<(u64, i64)>, 0, 0);
    for (at, (first, _)) in spans.iter().enumerate() {
        while let Some((_, own)) = spans.get(until).filter(|(span, _)| span - first < length) {
            sum += own;
            until += 1;
        }
        if best.is_none_or(|(most, _)| sum > most) {
            best = Some((sum, *first));
        }
        sum -= spans[at].1;
    }
    best.map(|(_, first)| first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_answered_in_part() {
        let every = |each: i64, days: i64| -> Vec<Vec<(i64, u64)>> {
            vec![
                (0..days).step_by(usize::try_from(each).unwrap()).map(|day| (day, 1)).collect();
                200
            ]
        };
        assert_eq!(Part::of(&every(1, 50), DAY, 10), None);
        let part = Part::of(&every(7, 2000), DAY, 10).unwrap();
        assert!(part.days.1 - part.days.0 < 110 && part.owners == 200, "{part:?}");
        let windows = Part::of(&every(1, 2000), 28 * DAY, 10).unwrap();
        assert_eq!((windows.days.0 % 28, windows.days.1 % 28), (0, 0));
        // Many rows stand at the end.
        let recent: Vec<Vec<(i64, u64)>> = vec![vec![(0, 1), (3000, 90)]; 50];
        let part = Part::of(&recent, DAY, 10).unwrap();
        assert_eq!(part.days.0, 3000);
        // A day of many owners.
        let crowd = vec![vec![(7, 1)]; 30_000];
        let part = Part::of(&crowd, 3600, 10).unwrap();
        assert!(part.days == (7, 8) && (3000..4000).contains(&part.owners), "{part:?}");
    }
}
