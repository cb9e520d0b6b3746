//! The parts of a time, and the instant that they give.

use super::region::{Local, Region};
use alpheus_time::calendar;
use time::{Date, Month, Weekday};

/// Microseconds of a second.
const SECOND: i64 = 1_000_000;

/// A part of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Year,
    ShortYear,
    Month,
    Day,
    Hour,
    Hour12,
    Minute,
    Second,
    Ordinal,
    WeekYear,
    Week,
    WeekDay,
}

impl Field {
    pub(super) fn width(self) -> usize {
        match self {
            Field::Year | Field::WeekYear => 4,
            Field::Ordinal => 3,
            Field::WeekDay => 1,
            _ => 2,
        }
    }
}

/// The parts of a time that a text gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    pub(super) year: Option<i32>,
    pub(super) month: Option<u8>,
    pub(super) day: Option<u8>,
    pub(super) ordinal: Option<u16>,
    /// The ISO week and the day in it, from Monday.
    pub(super) week: Option<u8>,
    pub(super) week_day: Option<u8>,
    pub(super) hour: u8,
    pub(super) minute: u8,
    pub(super) second: u8,
    pub(super) micros: i64,
    /// Whether it is after noon, of a clock of twelve hours.
    pub(super) noon: Option<bool>,
    /// Seconds east of Greenwich.
    pub(super) offset: Option<i32>,
}

impl Moment {
    pub(super) fn set(&mut self, field: Field, value: u16) -> Option<()> {
        let small = u8::try_from(value).ok();
        let within = |lo: u8, hi: u8| small.filter(|value| (lo..=hi).contains(value));
        match field {
            Field::Year | Field::WeekYear => self.year = Some(i32::from(value)),
            Field::Week => self.week = Some(within(1, 53)?),
            Field::WeekDay => self.week_day = Some(within(1, 7)?),
            Field::ShortYear => {
                let century = if value < 69 { 2000 } else { 1900 };
                self.year = Some(century + i32::from(value));
            }
            Field::Month => self.month = Some(within(1, 12)?),
            Field::Day => self.day = Some(within(1, 31)?),
            Field::Hour => self.hour = within(0, 24)?,
            Field::Hour12 => self.hour = within(1, 12)?,
            Field::Minute => self.minute = within(0, 59)?,
            Field::Second => self.second = within(0, 60)?,
            Field::Ordinal => self.ordinal = Some(value).filter(|day| (1..=366).contains(day)),
        }
        Some(())
    }

    pub(super) fn is_possible(&self) -> bool {
        let end_of_day = self.hour == 24 && (self.minute > 0 || self.second > 0 || self.micros > 0);
        let noon = self.noon.is_some() && !(1..=12).contains(&self.hour);
        !end_of_day && !noon
    }

    /// Whether it is written as hour 24, and not as hour 0; none if it is no midnight.
    pub(crate) fn ends_day(&self) -> Option<bool> {
        const DAY: i64 = 86_400 * SECOND;
        match self.time_of_day() {
            0 => Some(false),
            time => (time == DAY).then_some(true),
        }
    }

    /// The same with day and month exchanged; none if that is no date, or the same.
    #[must_use]
    pub fn exchanged(&self) -> Option<Moment> {
        let (month, day) = (self.month?, self.day?);
        (day <= 12 && day != month).then_some(Moment {
            month: Some(day),
            day: Some(month),
            ..*self
        })
    }

    /// Days since 1970 of its date.
    #[must_use]
    pub fn day_number(&self) -> Option<i64> {
        let year = self.year?;
        if let Some(week) = self.week {
            let day = Weekday::Monday.nth_next(self.week_day.unwrap_or(1) - 1);
            let date = Date::from_iso_week_date(year, week, day).ok()?;
            return Some(calendar::day_number(date));
        }
        let first = Date::from_calendar_date(year, Month::January, 1).ok()?;
        let date = match self.ordinal {
            Some(day) => Date::from_ordinal_date(year, day).ok()?,
            None => {
                let month = self.month.map_or(Some(Month::January), |m| Month::try_from(m).ok())?;
                Date::from_calendar_date(first.year(), month, self.day.unwrap_or(1)).ok()?
            }
        };
        Some(calendar::day_number(date))
    }

    /// Microseconds since midnight.
    #[must_use]
    pub fn time_of_day(&self) -> i64 {
        let hour = match self.noon {
            Some(after) => i64::from(self.hour % 12) + if after { 12 } else { 0 },
            None => i64::from(self.hour),
        };
        (hour * 3600 + i64::from(self.minute) * 60 + i64::from(self.second)) * SECOND + self.micros
    }

    /// Microseconds since 1970, in a region unless it has its own zone; and how often the local
    /// time occurs there.
    #[must_use]
    pub fn instant(&self, region: &Region) -> Option<(i64, Local)> {
        let local = self.day_number()? * 86_400 * SECOND + self.time_of_day();
        Some(match self.offset {
            Some(offset) => (local - i64::from(offset) * SECOND, Local::Once),
            None => region.micros(local),
        })
    }

    /// Microseconds since 1970, in a zone so many seconds east of Greenwich unless it has its
    /// own.
    #[must_use]
    pub fn micros(&self, zone: i32) -> Option<i64> {
        let local = self.day_number()? * 86_400 * SECOND + self.time_of_day();
        Some(local - i64::from(self.offset.unwrap_or(zone)) * SECOND)
    }
}
