//! The lengths of windows that queries may have, and which of them fits the readings.

/// A length of windows: in schemas, in queries, and in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub name: &'static str,
    pub sql: &'static str,
    pub seconds: i64,
}

pub(crate) const WINDOWS: [Window; 12] = [
    Window { name: "10s", sql: "10 SECONDS", seconds: 10 },
    Window { name: "1min", sql: "1 MINUTE", seconds: 60 },
    Window { name: "5min", sql: "5 MINUTES", seconds: 300 },
    Window { name: "10min", sql: "10 MINUTES", seconds: 600 },
    Window { name: "15min", sql: "15 MINUTES", seconds: 900 },
    Window { name: "30min", sql: "30 MINUTES", seconds: 1800 },
    Window { name: "1hr", sql: "1 HOUR", seconds: 3600 },
    Window { name: "1d", sql: "1 DAY", seconds: DAY },
    Window { name: "7d", sql: "7 DAYS", seconds: 7 * DAY },
    Window { name: "28d", sql: "28 DAYS", seconds: 28 * DAY },
    Window { name: "84d", sql: "84 DAYS", seconds: 84 * DAY },
    // Whole weeks, and multiples of the others. Each has one of the readings of a year.
    Window { name: "364d", sql: "364 DAYS", seconds: 364 * DAY },
];

/// The position of the longest length that is usual. Longer ones are for readings of which shorter
/// windows have too few owners.
pub(crate) const USUAL: usize = 9;
pub(crate) const DAY: i64 = 86_400;
pub(crate) const SECOND: i64 = 1_000_000;
/// Windows of a query at most, if a longer window is available.
const MAX_WINDOWS: i64 = 100;
/// Intervals at which devices take readings, in seconds.
const INTERVALS: [i64; 18] = [
    10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10_800, 14_400, 21_600, 43_200,
    DAY,
];

impl Window {
    /// Whether readings over this time, in microseconds, fall into few windows of this length.
    pub(crate) fn fits(&self, span: i64) -> bool {
        span / (self.seconds * SECOND) < MAX_WINDOWS
    }

    /// Whether windows of this length are whole multiples of another's.
    pub(crate) fn is_multiple_of(&self, other: Window) -> bool {
        self.seconds % other.seconds == 0
    }
}

/// Of the times between readings, in microseconds, what windows may be multiples of, so that the
/// interval of the readings, an hour and a day are allowed. None without two readings of an
/// owner.
pub(crate) fn shortest(mut gaps: Vec<i64>) -> Option<Window> {
    gaps.sort_unstable();
    let middle = gaps.get(gaps.len() / 2)? / SECOND;
    // An hour more or less where clocks change.
    let whole_days = |gap: &&i64| {
        let off = (**gap / SECOND).rem_euclid(DAY);
        **gap >= 23 * 3600 * SECOND && off.min(DAY - off) <= 3600
    };
    if gaps.iter().filter(whole_days).count() * 10 >= gaps.len() * 9 {
        return Some(longest_part(DAY));
    }
    let near = |interval: &&i64| (middle - **interval).abs() * 20 <= **interval;
    if let Some(interval) = INTERVALS.iter().find(near) {
        return Some(longest_part(*interval));
    }
    Some(longest_part(match middle {
        ..60 => 10,
        60..3600 => 60,
        3600..DAY => 300,
        _ => 3600,
    }))
}

/// The longest window up to a day of which an interval is a multiple; else the shortest.
fn longest_part(interval: i64) -> Window {
    let mut parts = WINDOWS.iter().filter(|own| own.seconds <= DAY && interval % own.seconds == 0);
    parts.next_back().copied().unwrap_or(WINDOWS[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(seconds: &[i64]) -> Option<&'static str> {
        shortest(seconds.iter().map(|own| own * SECOND).collect()).map(|own| own.name)
    }

    #[test]
    fn windows_follow_the_interval_of_readings() {
        for (interval, expected) in [
            (900, "15min"),
            (600, "10min"),
            (1200, "10min"),
            (300, "5min"),
            (120, "1min"),
            (30, "10s"),
            (1, "10s"),
            (3600, "1hr"),
            (7200, "1hr"),
            (DAY, "1d"),
            (7 * DAY, "1d"),
        ] {
            assert_eq!(name(&[interval; 5]), Some(expected), "{interval}");
        }
        // With gaps, and with clocks that are not exact.
        assert_eq!(name(&[900, 900, 900, 1800, 90_000]), Some("15min"));
        assert_eq!(name(&[897, 901, 905, 899]), Some("15min"));
        // Days of local time, over a change of the clocks.
        assert_eq!(name(&[DAY, DAY - 3600, 3 * DAY + 3600]), Some("1d"));
        // Irregular.
        assert_eq!(name(&[3, 17, 44]), Some("10s"));
        assert_eq!(name(&[70, 423, 5000]), Some("1min"));
        assert_eq!(name(&[9000, 5000, 20_000]), Some("5min"));
        assert_eq!(name(&[130_000, 200_000, 555_555]), Some("1hr"));
        assert_eq!(name(&[]), None);
    }

    #[test]
    fn an_hour_and_a_day_are_multiples_of_each_short_window() {
        for own in WINDOWS.iter().filter(|own| own.seconds <= 3600) {
            assert!(WINDOWS[6].is_multiple_of(*own) && WINDOWS[7].is_multiple_of(*own));
        }
    }
}
