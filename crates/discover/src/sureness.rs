//! How sure each finding is, in one word.

use crate::clock::Clock;
use crate::times::Zone;
use crate::understanding::Understanding;
use serde::Serialize;

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sureness {
    /// The file could be read otherwise just as well, or a question about it is open.
    Guess,
    /// Names and values suggest it, and nothing speaks against it.
    Likely,
    /// The file states it, or a person did.
    Certain,
}

impl Sureness {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Sureness::Guess => "guess",
            Sureness::Likely => "likely",
            Sureness::Certain => "certain",
        }
    }
}

impl Understanding {
    /// How sure it is whose a reading is. A name alone proves nothing.
    #[must_use]
    pub fn sure_of_owner(&self) -> Sureness {
        let nobody = self.owner.is_none() && self.wide.is_none();
        if self.asks_whose() {
            Sureness::Guess
        } else if self.hints.owner.is_some() || self.hints.wide.is_some() {
            Sureness::Certain
        } else if nobody {
            Sureness::Guess
        } else {
            Sureness::Likely
        }
    }

    /// How sure it is which columns are the time, and how they are read.
    #[must_use]
    pub fn sure_of_time(&self) -> Sureness {
        const OPTIONS: &[&str] = &["`--time", "`--date", "`--day-first", "`--keep-far-days"];
        let stated = self.hints.time_format.is_some() || self.hints.day_first.is_some();
        let mut columns = self.time.columns.iter().filter_map(|at| self.names.get(*at));
        if self.asks(OPTIONS) || columns.any(|own| self.asks_of(own)) {
            Sureness::Guess
        } else if stated || (self.time.notes.is_empty() && is_plain(&self.time.clock)) {
            Sureness::Certain
        } else {
            Sureness::Likely
        }
    }

    /// How sure the zone of the times is.
    #[must_use]
    pub fn sure_of_zone(&self) -> Sureness {
        match &self.time.zone {
            _ if self.asks(&["`--zone"]) => Sureness::Guess,
            Zone::InValue | Zone::Fixed(..) => Sureness::Certain,
            Zone::Unstated if self.hints.zone.is_some() => Sureness::Certain,
            // No zone shifts whole days.
            Zone::Unstated if self.time.days => Sureness::Likely,
            Zone::Unstated => Sureness::Guess,
        }
    }

    /// How sure it is what a column of the file is.
    #[must_use]
    pub fn sure_of(&self, column: &str) -> Sureness {
        let is = |name: &String| name == column;
        if self.time.columns.iter().filter_map(|at| self.names.get(*at)).any(is) {
            return self.sure_of_time();
        }
        if self.wide.is_some() || self.owner.as_ref().is_some_and(is) {
            return self.sure_of_owner();
        }
        self.sure_of_attribute(column)
    }

    /// How sure it is what is measured, and whether it is.
    #[must_use]
    pub fn sure_of_attribute(&self, column: &str) -> Sureness {
        let unit = self.attributes.iter().any(|own| own.column == column && own.unit.is_some());
        let mut stated = self.hints.measure.iter().chain(&self.hints.leave_out);
        let noted = self.notes.iter().any(|note| names(note, column));
        if self.asks_of(column) {
            Sureness::Guess
        } else if stated.any(|name| name == column) || (unit && !noted) {
            Sureness::Certain
        } else {
            Sureness::Likely
        }
    }

    /// Whether a question names one of these options.
    fn asks(&self, options: &[&str]) -> bool {
        self.questions.iter().any(|asked| options.iter().any(|option| asked.contains(option)))
    }

    /// Whether a question is about a column.
    fn asks_of(&self, column: &str) -> bool {
        self.questions.iter().any(|asked| names(asked, column))
    }
}

/// Whether a sentence is about a column.
fn names(sentence: &str, column: &str) -> bool {
    sentence.contains(&format!("`{column}`"))
}

/// Whether a format has one reading: the year comes first, or the month has a name.
fn is_plain(clock: &Clock) -> bool {
    let Clock::Formats(formats, _) = clock else { return false };
    let [format] = formats.as_slice() else { return false };
    let text = format.text();
    text.starts_with("%Y") || text.contains("%b")
}
