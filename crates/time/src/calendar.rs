//! Days since 1970, and the dates that they are, in UTC. All other code takes dates from here or from
//! the crate `time`: none computes with months and years of its own.

use time::{Date, Month};

/// Julian day of 1970-01-01.
const EPOCH: i64 = 2_440_588;

/// Days since 1970 of a date; negative before.
#[must_use]
pub fn day_number(date: Date) -> i64 {
    i64::from(date.to_julian_day()) - EPOCH
}

/// The date so many days after 1970-01-01; none if the calendar does not reach so far.
#[must_use]
pub fn date_of(day: i64) -> Option<Date> {
    let julian = i32::try_from(day.checked_add(EPOCH)?).ok()?;
    Date::from_julian_day(julian).ok()
}

/// A day since 1970 as it is written: `2026-04-20`.
#[must_use]
pub fn day_text(day: i64) -> String {
    date_of(day).map_or_else(|| format!("day {day}"), |date| date.to_string())
}

/// The date that a text of exactly the form `2026-04-20` names.
#[must_use]
pub fn date(text: &str) -> Option<Date> {
    let is_formed = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    let mut parts = text.split('-').filter(|_| is_formed);
    let year = parts.next()?.parse().ok()?;
    let month = parts.next()?.parse::<u8>().ok()?;
    let day = parts.next()?.parse().ok()?;
    Date::from_calendar_date(year, Month::try_from(month).ok()?, day).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_and_its_day_since_1970_are_the_same() {
        let first = Date::from_calendar_date(1970, Month::January, 1).unwrap();
        for (date, day) in [(first, 0), (first.previous_day().unwrap(), -1)] {
            assert_eq!((day_number(date), date_of(day)), (day, Some(date)));
        }
        for day in (-700_000..2_900_000).step_by(997) {
            assert_eq!(date_of(day).map(day_number), Some(day));
        }
        assert_eq!([i64::MAX, i64::MIN, 1 << 40].map(date_of), [None; 3]);
    }

    #[test]
    fn a_date_in_text_has_one_form() {
        for (text, day) in [
            ("1969-12-31", -1),
            ("1970-01-01", 0),
            ("1970-12-31", 364),
            ("2000-02-29", 11_016),
            ("2000-03-01", 11_017),
            ("2026-04-20", 20_563),
            ("2100-03-01", 47_541),
        ] {
            assert_eq!(date(text).map(day_number), Some(day), "{text}");
            assert_eq!(day_text(day), text);
        }
        for text in [
            "",
            "2026-4-20",
            "2026-04-020",
            "2026/04/20",
            "2025-02-29",
            "2100-02-29",
            "2026-13-01",
            "2026-00-01",
            "2026-01-00",
            "+026-01-01",
            "2026-01-0１",
        ] {
            assert_eq!(date(text), None, "{text}");
        }
        assert_eq!(day_text(i64::MAX), format!("day {}", i64::MAX));
    }
}
