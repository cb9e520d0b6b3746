//! Times in texts: formats in the manner of strftime, and reading with them.
//!
//! Letters after `%`, as in strftime: `Y y m d H I M S f p j b B a A z Z G V u`. Reading is lenient
//! where no doubt arises: leading zeros may lack (a lone `%H%M` reads `5` as 00:05), `%b` and
//! `%B` take a month's name in seven languages, `%z` takes `Z`, `+01`, `+0100` and `+01:00`, a
//! space stands for any number of spaces, and hour 24 is the midnight at the end of the day.
//! A field that stands twice has its last value. `%*` at the end passes over the rest, such as the
//! end of an interval.

mod format;
mod interval;
mod moment;
mod region;
pub mod shape;
mod unit;
pub mod words;

pub use format::{Format, FormatError};
pub use moment::Moment;
pub use region::{Local, Region};
pub use unit::Unit;

use crate::windows::{DAY, SECOND};
use alpheus_time::calendar::day_text;

/// How the texts of a time become microseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The first format that fits decides. The region is that of times without a zone.
    Formats(Vec<Format>, Region),
    /// A number that counts from a start. A spreadsheet's days are local, in this region; all
    /// others are UTC.
    Count(Unit, Region),
    /// Days since a date, which is so many microseconds after 1970 in UTC.
    DaysSince(i64),
}

impl Clock {
    /// Counts days from a date such as 2024-03-01, which is day 0. Numbers below 0 are earlier days.
    ///
    /// # Errors
    /// [`FormatError::BadDate`] if the date cannot be read.
    pub fn days_since(date: &str) -> Result<Clock, FormatError> {
        let bad = || FormatError::BadDate(date.to_owned());
        format::date(date)?.micros(0).map(Clock::DaysSince).ok_or_else(bad)
    }

    /// Its formats for people: strftime's, or what its numbers count.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        match self {
            Clock::Formats(formats, _) => {
                formats.iter().map(|format| format.text().to_owned()).collect()
            }
            Clock::Count(unit, _) => vec![unit.says().to_owned()],
            Clock::DaysSince(start) => {
                vec![format!("days since {}", day_text(start.div_euclid(DAY * SECOND)))]
            }
        }
    }

    /// The microseconds since 1970 of a text; none if it is no time in this form.
    #[must_use]
    pub fn micros(&self, text: &str) -> Option<i64> {
        self.read(text).map(|(micros, _)| micros)
    }

    /// The same, and how often this local time occurs.
    #[must_use]
    pub fn read(&self, text: &str) -> Option<(i64, Local)> {
        match self {
            Clock::Formats(formats, region) => {
                formats.iter().find_map(|format| format.read(text)?.instant(region))
            }
            Clock::Count(unit, region) => {
                let micros = unit.micros(text)?;
                let local = *unit == Unit::SpreadsheetDays;
                Some(if local { region.micros(micros) } else { (micros, Local::Once) })
            }
            Clock::DaysSince(start) => {
                Some((Unit::Days.micros(text)?.checked_add(*start)?, Local::Once))
            }
        }
    }

    /// Whether a text at midnight is hour 24 of the day before; none if it is no midnight.
    pub(crate) fn ends_day(&self, text: &str) -> Option<bool> {
        let Clock::Formats(formats, _) = self else { return None };
        formats.iter().find_map(|format| format.read(text))?.ends_day()
    }
}

/// Reads the times of many rows. Rows below one another often have the same.
pub(crate) struct TimeReader<'c> {
    clock: &'c Clock,
    text: String,
    /// What `text` says; none before the first.
    last: Option<Option<(i64, Local)>>,
}

impl<'c> TimeReader<'c> {
    pub(crate) fn of(clock: &'c Clock) -> TimeReader<'c> {
        TimeReader { clock, text: String::new(), last: None }
    }

    /// Reads a text as [`Clock::read`] does.
    pub(crate) fn read(&mut self, text: &str) -> Option<(i64, Local)> {
        match self.last {
            Some(last) if self.text == text => last,
            _ => {
                text.clone_into(&mut self.text);
                *self.last.insert(self.clock.read(text))
            }
        }
    }
}
