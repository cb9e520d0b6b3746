//! Calendar dates in text: `2026-11-21`, UTC.

use std::fmt;
use std::str::FromStr;
use time::{Date, Month};

/// A day of the calendar, UTC, as days since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Day(pub u64);

/// Julian day of 1970-01-01.
const EPOCH: i64 = 2_440_588;

impl FromStr for Day {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Day, &'static str> {
        let since = u64::try_from(day_number(text)?);
        since.map(Day).map_err(|_| "days before 1970 hold no events")
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&day_text(i64::try_from(self.0).unwrap_or(i64::MAX)))
    }
}

/// Days since 1970 of a date such as `2026-11-21`; negative before.
///
/// # Errors
/// If the text is not a date of the calendar.
pub fn day_number(text: &str) -> Result<i64, &'static str> {
    let wrong = "a day is written as 2026-11-21";
    let mut parts = text.splitn(3, '-');
    let mut part = || parts.next().ok_or(wrong);
    let year: i32 = part()?.parse().map_err(|_| wrong)?;
    let month: u8 = part()?.parse().map_err(|_| wrong)?;
    let day: u8 = part()?.parse().map_err(|_| wrong)?;
    let month = Month::try_from(month).map_err(|_| "there is no such month")?;
    let date = Date::from_calendar_date(year, month, day).map_err(|_| "there is no such day")?;
    Ok(i64::from(date.to_julian_day()) - EPOCH)
}

/// A day, counted from 1970, as it is written: `2026-11-21`.
#[must_use]
pub fn day_text(day: i64) -> String {
    let julian = day.checked_add(EPOCH).and_then(|day| i32::try_from(day).ok());
    let date = julian.and_then(|julian| Date::from_julian_day(julian).ok());
    date.map_or_else(|| format!("day {day}"), |date| date.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_match_the_calendar() {
        assert_eq!("1970-01-01".parse(), Ok(Day(0)));
        assert_eq!("2023-11-14".parse(), Ok(Day(19_675)));
        assert_eq!(Day(19_675).to_string(), "2023-11-14");
        assert_eq!(day_number("1969-12-31"), Ok(-1));
        assert_eq!(day_text(-1), "1969-12-31");
        for (wrong, says) in [
            ("today", "is written as"),
            ("2026-13-01", "no such month"),
            ("2026-02-30", "no such day"),
            ("1969-12-31", "before 1970"),
        ] {
            assert!(wrong.parse::<Day>().unwrap_err().contains(says), "{wrong}");
        }
    }
}
