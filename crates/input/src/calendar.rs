//! Calendar dates and times in text: `2026-11-21` and `2026-11-21T06:00`, UTC.

use alpheus_time::Timestamp;
use alpheus_time::calendar;
pub use alpheus_time::calendar::day_text;
use std::fmt;
use std::str::FromStr;
use time::{Date, Month};

/// A day of the calendar, UTC, as days since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Day(pub u64);

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
    Ok(calendar::day_number(date))
}

/// Reads a time in UTC, or in Unix milliseconds.
///
/// # Errors
/// If the text is neither.
pub fn moment(text: &str) -> Result<Timestamp, &'static str> {
    const FORM: &str = "give a time as 2012-03-01, 2012-03-01T06:00, or in Unix milliseconds";
    if let Ok(milliseconds) = text.parse::<u64>() {
        return milliseconds.checked_mul(1000).map(Timestamp).ok_or(FORM);
    }
    let (day, clock) = text.trim_end_matches('Z').split_once('T').unwrap_or((text, "0:0"));
    let parts = |text: &str, between: char| -> Option<Vec<u8>> {
        text.split(between).map(|part| part.parse().ok()).collect()
    };
    let read = || {
        let (year, rest) = day.split_once('-')?;
        let [month, day]: [u8; 2] = parts(rest, '-')?.try_into().ok()?;
        let clock = parts(clock, ':')?;
        let (hour, minute) = (*clock.first()?, *clock.get(1)?);
        let second = clock.get(2).copied().unwrap_or(0);
        let month = Month::try_from(month).ok()?;
        let date = Date::from_calendar_date(year.parse().ok()?, month, day).ok()?;
        let at = date.with_hms(hour, minute, second).ok()?.assume_utc();
        let seconds = u64::try_from(at.unix_timestamp()).ok()?;
        (clock.len() <= 3).then_some(Timestamp(seconds.checked_mul(1_000_000)?))
    };
    read().ok_or(FORM)
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

    #[test]
    fn times_are_parsed_and_invalid_ones_rejected() {
        let seconds = |text| moment(text).map(|time| time.0 / 1_000_000);
        assert_eq!(seconds("2012-03-01"), Ok(1_330_560_000));
        assert_eq!(seconds("2012-03-01T06:00"), Ok(1_330_581_600));
        assert_eq!(seconds("2012-03-01T06:00:05Z"), Ok(1_330_581_605));
        assert_eq!(moment("1330581600000"), moment("2012-03-01T06:00"));
        for bad in ["", "2012-13-01", "2012-02-30", "2012-03-01T24:00", "06:00", "-5"] {
            assert!(moment(bad).is_err(), "{bad}");
        }
    }
}
