//! Points in time and time spans in microseconds, as used by all protocols. Nothing here reads a
//! clock.

pub mod calendar;

use serde::{Deserialize, Serialize};

/// A point in time: microseconds since 1970-01-01T00:00:00Z. Event times are below 2^52.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Timestamp(pub u64);

/// A length of time in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Span(pub u64);

impl Timestamp {
    /// The first time that does not fit into the cipher's 52 bits (in the year 2112).
    pub const LIMIT: Timestamp = Timestamp(1 << 52);

    /// The last multiple of `span` at or before this time.
    #[must_use]
    pub fn floor(self, span: Span) -> Timestamp {
        Timestamp(self.0 - self.0 % span.0)
    }

    /// This time plus `span`.
    #[must_use]
    pub fn plus(self, span: Span) -> Timestamp {
        Timestamp(self.0.saturating_add(span.0))
    }
}

impl Span {
    /// A day of 24 hours.
    pub const DAY: Span = Span(86_400_000_000);

    /// `n` seconds.
    #[must_use]
    pub const fn seconds(n: u64) -> Span {
        Span(n * 1_000_000)
    }

    /// This length in words, or about it: in the largest unit that it fills, rounded down to a tenth.
    #[must_use]
    pub fn in_largest_unit(self) -> String {
        const UNITS: [(u64, &str); 4] = [
            (365 * 86_400_000_000, "year"),
            (86_400_000_000, "day"),
            (3_600_000_000, "hour"),
            (60_000_000, "minute"),
        ];
        let Some((micros, name)) = UNITS.iter().find(|(micros, _)| self.0 >= *micros) else {
            return self.to_string();
        };
        let tenths = u128::from(self.0) * 10 / u128::from(*micros);
        let about = if self.0.is_multiple_of(*micros) { "" } else { "about " };
        let tenth = if tenths % 10 == 0 { String::new() } else { format!(".{}", tenths % 10) };
        let many = if tenths == 10 { "" } else { "s" };
        format!("{about}{}{tenth} {name}{many}", tenths / 10)
    }

    /// The multiples of `step` next to this length: the last one that is no longer, unless it is 0,
    /// and the first one that is longer.
    pub fn multiples_around(self, step: Span) -> impl Iterator<Item = Span> {
        let below = self.0 - self.0.checked_rem(step.0).unwrap_or(0);
        let around = [below, below.saturating_add(step.0)];
        around.into_iter().filter(|length| *length > 0).map(Span)
    }
}

/// A window of event time. Its boundaries are at `start` and `end`. It contains all events
/// strictly between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Window {
    /// The opening boundary.
    pub start: Timestamp,
    /// The closing boundary.
    pub end: Timestamp,
}

impl Window {
    /// Whether the two windows overlap.
    #[must_use]
    pub fn overlaps(self, other: Window) -> bool {
        self.start < other.end && other.start < self.end
    }
}

impl std::fmt::Display for Span {
    /// Writes the span in the largest unit that divides it, as schemas do: `10s`, `1h`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const UNITS: [(u64, &str); 5] = [
            (86_400_000_000, "d"),
            (3_600_000_000, "h"),
            (60_000_000, "min"),
            (1_000_000, "s"),
            (1_000, "ms"),
        ];
        let unit = UNITS.iter().find(|(micros, _)| self.0 != 0 && self.0.is_multiple_of(*micros));
        match unit {
            Some((micros, name)) => write!(f, "{}{name}", self.0 / micros),
            None => write!(f, "{}us", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_exact_in_words_where_they_are_whole() {
        let hours = |many: u64| Span::seconds(many * 3600).in_largest_unit();
        assert_eq!([hours(24), hours(480)], ["1 day", "20 days"]);
        assert_eq!([hours(36), hours(25)], ["about 1.5 days", "about 1 day"]);
        assert_eq!([hours(365 * 24), hours(800 * 24)], ["1 year", "about 2.1 years"]);
        assert_eq!(Span::seconds(59).in_largest_unit(), "59s");
    }
}
