//! The files that an understanding becomes: schema, source, policies, query, and a page that
//! explains them.

mod policies;
mod report;
mod schema;
mod source;

pub use report::{Understood, UnderstoodAttribute};

use crate::Understanding;
use crate::tally::Values;
use crate::windows::{WINDOWS, Window};
use crate::words::schema_name;

/// Attributes that the first query asks for.
const ASKED: usize = 6;
const SECOND: i64 = 1_000_000;
/// Windows of a query at most, if a longer window is to be had.
const MAX_WINDOWS: i64 = 100;

/// The texts of all files.
#[derive(Clone, Debug)]
pub struct Files {
    /// `schema.yaml`.
    pub schema: String,
    /// `source.yaml`.
    pub source: String,
    /// `policies.yaml`.
    pub policies: String,
    /// `query.sql`.
    pub query: String,
    /// `README.md`.
    pub readme: String,
    /// The length of a tick, if it is not the window's.
    pub tick: Option<&'static str>,
}

/// What the files have in common.
struct Draft<'u> {
    found: &'u Understanding,
    /// The file's name, for people.
    file: &'u str,
    /// The schema's name.
    name: String,
    window: Window,
    /// The least population that owners ask for.
    least: u64,
    /// Streams in a window, and events of one, at most.
    population: u64,
    events: u64,
}

/// Writes all files for a file of this name.
#[must_use]
pub fn files(found: &Understanding, file: &str) -> Files {
    let draft = Draft::of(found, file);
    Files {
        schema: schema::schema(&draft),
        source: source::source(&draft),
        policies: policies::policies(&draft),
        query: policies::query(&draft),
        readme: report::readme(&draft),
        tick: draft.tick(),
    }
}

impl<'u> Draft<'u> {
    fn of(found: &'u Understanding, file: &'u str) -> Draft<'u> {
        let span = found.tally.span.map_or(0, |(first, last)| last - first);
        let owners = found.tally.owners.max(1);
        let least = owners.min(10);
        let share = |at: usize| found.tally.share_of_crowds(at, least);
        let fits = |at: &usize| span / (WINDOWS[*at].seconds * SECOND) < MAX_WINDOWS;
        let long: Vec<usize> = (0..WINDOWS.len()).filter(fits).collect();
        // The shortest in most of which there are enough owners, else the one with the most.
        let best = long.iter().copied().max_by_key(|at| (share(*at), std::cmp::Reverse(*at)));
        let at = long.iter().copied().find(|at| share(*at) >= 50).or(best);
        let window = at.map_or(WINDOWS[WINDOWS.len() - 1], |at| WINDOWS[at]);
        Draft {
            found,
            file,
            name: title(file),
            window,
            least,
            population: round_up(owners * 10),
            events: round_up(found.tally.most_rows * 2),
        }
    }

    fn tick(&self) -> Option<&'static str> {
        (self.window.seconds > 86_400).then_some("1d")
    }

    fn asked(&self) -> impl Iterator<Item = &crate::Attribute> {
        let numbers = self.found.attributes.iter().filter(|a| a.values == Values::Number);
        let others = self.found.attributes.iter().filter(|a| a.values != Values::Number);
        numbers.chain(others).take(ASKED)
    }
}

/// The next power of ten.
fn round_up(count: u64) -> u64 {
    let mut round = 10;
    while round < count {
        round *= 10;
    }
    round
}

/// A name for a schema from that of a file: `StepsHourly` from `steps-hourly.csv`.
fn title(file: &str) -> String {
    let stem = file.split('.').next().unwrap_or(file);
    let plain = schema_name(stem, &mut Vec::new());
    let word = |word: &str| {
        let mut chars = word.chars();
        chars
            .next()
            .map(|first| first.to_ascii_uppercase())
            .into_iter()
            .chain(chars)
            .collect::<String>()
    };
    let joined: String = plain.split('_').map(word).collect();
    format!("{joined}Readings")
}

/// A text in double quotes, as YAML and JSON read it.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A text on one line of a comment.
fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_are_safe() {
        assert_eq!(title("steps-hourly.csv"), "StepsHourlyReadings");
        assert_eq!(title("2024 data.csv.gz"), "C2024DataReadings");
        assert_eq!(quoted("a\"b\\c\td\n"), "\"a\\\"b\\\\c\\td\\u000a\"");
        assert_eq!(round_up(101), 1000);
    }
}
