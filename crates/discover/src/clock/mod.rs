//! Times in texts: formats in the manner of strftime, and reading with them.
//!
//! Letters after `%`, as in strftime: `Y y m d H I M S f p j b B a A z Z`. Reading is lenient
//! where no doubt arises: leading zeros may lack (a lone `%H%M` reads `5` as 00:05), `%b` and
//! `%B` take a month's name in seven languages, `%z` takes `Z`, `+01`, `+0100` and `+01:00`, a
//! space stands for any number of spaces, and hour 24 is the midnight at the end of the day.
//! A field that stands twice has its last value.

mod format;
pub mod shape;
mod unit;
pub mod words;

pub use format::{Format, FormatError, Moment};
pub use unit::Unit;

/// How the texts of a time become microseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The first format that fits decides. The number is the zone of times without one, in
    /// seconds east of Greenwich.
    Formats(Vec<Format>, i32),
    /// A number that counts from a start.
    Count(Unit),
}

impl Clock {
    /// The microseconds since 1970 of a text; none if it is no time in this form.
    #[must_use]
    pub fn micros(&self, text: &str) -> Option<i64> {
        match self {
            Clock::Formats(formats, zone) => formats.iter().find_map(|f| f.micros(text, *zone)),
            Clock::Count(unit) => unit.micros(text),
        }
    }
}
