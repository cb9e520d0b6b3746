//! Columns that repeat a part of the row's time, such as its hour, and days far from all others.

use crate::hash::Map;
use crate::number::Decimal;
use crate::times::TimePlan;
use crate::windows::SECOND;
use time::OffsetDateTime;

/// Parts of a time, as a column may repeat them.
const PARTS: [&str; 9] = [
    "year",
    "month",
    "day",
    "hour",
    "day of the week",
    "day of the year",
    "week",
    "minute of the day",
    "second of the day",
];
const YEAR: usize = 0;
const WEEKDAY: usize = 4;
/// Rows that prove it.
const MIN_ROWS: u64 = 20;

/// Which parts of the rows' times a column has equalled so far.
#[derive(Clone, Debug)]
pub(crate) struct RepeatedTimeParts {
    rows: u64,
    /// How much more than the part the column says; none once it differed.
    more: [Option<i64>; PARTS.len()],
    /// The least and the greatest of each part.
    ranges: [(i64, i64); PARTS.len()],
    alive: bool,
}

impl Default for RepeatedTimeParts {
    fn default() -> Self {
        let ranges = [(i64::MAX, i64::MIN); PARTS.len()];
        Self { rows: 0, more: [None; PARTS.len()], ranges, alive: true }
    }
}

impl RepeatedTimeParts {
    /// Adds a row's number, with its local time in seconds since 1970.
    pub(crate) fn add(&mut self, value: Decimal, local: Option<i64>) {
        if !self.alive {
            return;
        }
        let value = i64::try_from(value.digits).ok().filter(|_| value.places == 0);
        let time = local.and_then(|local| OffsetDateTime::from_unix_timestamp(local).ok());
        let (Some(value), Some(time)) = (value, time) else {
            self.alive = false;
            return;
        };
        let parts = [
            i64::from(time.year()),
            i64::from(u8::from(time.month())),
            i64::from(time.day()),
            i64::from(time.hour()),
            i64::from(time.weekday().number_days_from_monday()),
            i64::from(time.ordinal()),
            i64::from(time.iso_week()),
            i64::from(time.hour()) * 60 + i64::from(time.minute()),
            i64::from(time.hour()) * 3600
                + i64::from(time.minute()) * 60
                + i64::from(time.second()),
        ];
        self.rows += 1;
        self.alive = false;
        for (at, part) in parts.into_iter().enumerate() {
            let more = match at {
                WEEKDAY => (value - part).rem_euclid(7),
                _ => value - part,
            };
            let likely = match at {
                YEAR => more == 0 || (0..100).contains(&value),
                WEEKDAY => (0..=7).contains(&value),
                _ => (-1..=1).contains(&more),
            };
            let same = likely && (self.rows == 1 || self.more[at] == Some(more));
            self.more[at] = same.then_some(more);
            let (lo, hi) = self.ranges[at];
            self.ranges[at] = (lo.min(part), hi.max(part));
            self.alive |= same;
        }
    }

    /// The part that the column repeats in all rows.
    pub(crate) fn part(&self) -> Option<&'static str> {
        let varies = |at: &usize| self.ranges[*at].0 < self.ranges[*at].1;
        let found = (0..PARTS.len()).filter(|at| self.more[*at].is_some()).find(varies)?;
        (self.alive && self.rows >= MIN_ROWS).then_some(PARTS[found])
    }
}

/// Rows at midnight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Midnights {
    /// As hour 24 of the day before.
    ends: u64,
    begins: u64,
}

impl Midnights {
    /// Adds a row's time, in microseconds since 1970 and as its text.
    pub(crate) fn add(&mut self, micros: i64, plan: &TimePlan, text: &str) {
        // Zones differ by quarters of an hour.
        const QUARTER: i64 = 900 * SECOND;
        if plan.days || micros % QUARTER != 0 {
            return;
        }
        match plan.clock.ends_day(text) {
            Some(true) => self.ends += 1,
            Some(false) => self.begins += 1,
            None => {}
        }
    }

    /// Whether all are hour 24, so that hours go from 1 to 24.
    pub(crate) fn are_ends(self) -> bool {
        self.ends > 0 && self.begins == 0
    }
}

/// Days with rows, each with how many.
#[derive(Clone, Debug, Default)]
pub(crate) struct Days {
    counts: Map<i64, u64>,
    last: (i64, u64),
}

/// Days far from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FarDays {
    /// Rows on them.
    pub rows: u64,
    /// The first and the last of them, and of all others, since 1970.
    pub far: (i64, i64),
    /// See above.
    pub others: (i64, i64),
}

impl Days {
    /// Adds a row of a day since 1970.
    pub(crate) fn add(&mut self, day: i64) {
        if self.last.0 != day {
            self.flush();
            self.last.0 = day;
        }
        self.last.1 += 1;
    }

    fn flush(&mut self) {
        if self.last.1 > 0 {
            *self.counts.entry(self.last.0).or_default() += self.last.1;
            self.last.1 = 0;
        }
    }

    /// The days of few rows that lie much farther from the others than these from each other.
    pub(crate) fn far(mut self) -> Option<FarDays> {
        const MIN_GAP: i64 = 180;
        self.flush();
        let mut days: Vec<(i64, u64)> = self.counts.into_iter().collect();
        days.sort_unstable();
        let (least, most) = bulk(&days)?;
        let reach = MIN_GAP.max(2 * (most - least));
        let is_far = |(day, _): &(i64, u64)| *day < least - reach || *day > most + reach;
        let (far, others): (Vec<_>, Vec<_>) = days.into_iter().partition(is_far);
        let span = |days: &[(i64, u64)]| Some((days.first()?.0, days.last()?.0));
        let rows = far.iter().map(|(_, rows)| rows).sum();
        Some(FarDays { rows, far: span(&far)?, others: span(&others)? })
    }
}

/// The first and the last of the fewest days in a row that have nineteen in twenty rows.
fn bulk(days: &[(i64, u64)]) -> Option<(i64, i64)> {
    let total: u64 = days.iter().map(|(_, rows)| rows).sum();
    let (mut best, mut first, mut rows) = (None::<(i64, i64)>, 0, 0);
    for (last, (_, own)) in days.iter().enumerate() {
        rows += own;
        while (rows - days[first].1) * 20 >= total * 19 {
            rows -= days[first].1;
            first += 1;
        }
        let (from, to) = (days[first].0, days[last].0);
        let shorter = best.is_none_or(|(known, until)| to - from < until - known);
        if rows * 20 >= total * 19 && shorter {
            best = Some((from, to));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_days_far_from_all_others_are_found() {
        let far = |days: &[(i64, u64)]| {
            let mut counted = Days::default();
            for (day, rows) in days {
                (0..*rows).for_each(|_| counted.add(*day));
            }
            counted.far()
        };
        let bulk: Vec<(i64, u64)> = (19_000..19_030).map(|day| (day, 24)).collect();
        assert_eq!(far(&bulk), None);
        let with = |more: &[(i64, u64)]| far(&[&bulk, more].concat());
        let one = FarDays { rows: 14, far: (0, 0), others: (19_000, 19_029) };
        assert_eq!(with(&[(0, 14)]), Some(one));
        let both = FarDays { rows: 15, far: (0, 45_000), others: (19_000, 19_029) };
        assert_eq!(with(&[(0, 14), (45_000, 1)]), Some(both));
        assert_eq!(with(&[(0, 300)]), None, "two times that both are frequent");
        assert_eq!(with(&[(19_100, 5)]), None, "near");
    }
}
