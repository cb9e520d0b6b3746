//! Days since 1970, and the dates that they are.

use time::Date;

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

#[cfg(test)]
mod tests {
    use super::*;
    use time::Month;

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
}
