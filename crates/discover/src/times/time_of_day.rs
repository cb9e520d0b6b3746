//! Rows that have only the time of day: a line above the table has the date, or a person says it.

use super::{Candidate, parts};
use crate::clock::{Format, Unit, shape};
use crate::hints::Hints;
use crate::profile::Profile;
use crate::table::Table;
use alpheus_time::calendar;
use std::collections::BTreeSet;

/// Words that a date in a line has at most, such as `1 March 2024`.
const WORDS: usize = 3;

/// The column of times of day, if its date is known.
pub(super) fn clock(profile: &Profile, table: &Table, hints: &Hints) -> Option<Candidate> {
    let at = super::pairing::lone_clock(profile)?;
    hints.date.clone().or_else(|| above(&table.above))?;
    let formats = parts::of_named(profile, at).ok()?;
    Some(Candidate::text(vec![at], vec![formats]))
}

/// Gives a date to times without one, and day 0 to numbers of days. A date above the table may be of
/// something else, such as of the export, so it is asked about.
pub(super) fn add(found: &mut Candidate, profile: &Profile, table: &Table, hints: &Hints) {
    if let Some(unit) = hints.time_format.as_deref().and_then(Unit::parse) {
        match unit {
            Unit::Days => found.date.clone_from(&hints.date),
            _ => found.notes.extend(hints.date.as_ref().map(|_| OWN_DATES.to_owned())),
        }
        return;
    }
    let has_date = |format: &String| ["%Y", "%y", "%G"].iter().any(|year| format.contains(year));
    let formats = hints.time_format.iter().chain(found.formats.iter().flatten());
    if found.unit.is_some() || found.columns.is_empty() || formats.clone().any(has_date) {
        let said = hints.date.as_ref().map(|_| OWN_DATES.to_owned());
        found.notes.extend(said);
        return;
    }
    if let Some(date) = &hints.date {
        found.date = Some(date.clone());
        return;
    }
    let Some(date) = above(&table.above) else { return };
    let names: Vec<&str> =
        found.columns.iter().map(|at| profile.columns[*at].name.as_str()).collect();
    found.questions.push(format!(
        "`{}` has times of day without a date, and a line above the table has the date {date}. All rows are read as of that day. Use `--date {date}` if that is right, or another date; if rows are of several days, add a column with the date of each.",
        names.join("` and `")
    ));
    found.date = Some(date);
}

/// Says that a date is not needed.
const OWN_DATES: &str = "Rows have dates of their own, so `--date` changes nothing.";

/// Each way to read times of day of several columns, on one date.
pub(super) fn formats(formats: &[Vec<String>], date: &str) -> Vec<Format> {
    let texts = super::order::joined_formats(formats);
    texts.iter().filter_map(|text| Format::on_date(text, date).ok()).collect()
}

/// The only date that the lines above a table have, if it can be read in one way.
fn above(lines: &[String]) -> Option<String> {
    let mut found = BTreeSet::new();
    for line in lines {
        let words: Vec<&str> = line
            .split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '"' | '(' | ')'))
            .map(|word| word.trim_end_matches([':', '.']))
            .filter(|word| !word.is_empty())
            .collect();
        for from in 0..words.len() {
            let dates = (1..=WORDS).filter_map(|count| words.get(from..from + count));
            found.extend(dates.flat_map(|words| days(&words.join(" "))));
        }
    }
    let day = found.pop_first().filter(|_| found.is_empty())?;
    calendar::date_of(day).map(|date| date.to_string())
}

/// The days that a text may be, in all orders of its fields; none if it has a time of day.
fn days(text: &str) -> Vec<i64> {
    let whole = |format: &String| {
        let has = |letters: [&str; 2]| letters.iter().any(|own| format.contains(own));
        // `1.3.2024` has the day first wherever dates are written so.
        let dotted = format.contains("%m.%d.");
        has(["%Y", "%y"]) && has(["%m", "%b"]) && has(["%d", "%j"]) && !has(["%H", "%I"]) && !dotted
    };
    let formats = shape::formats(text).into_iter().filter(whole);
    let day = |format: String| Format::new(&format).ok()?.read(text)?.day_number();
    formats.filter_map(day).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::FormatError;

    /// A date of all times and one of each would contradict each other.
    #[test]
    fn a_format_with_a_date_is_refused_beside_a_date() {
        for text in ["%Y-%m-%d %H:%M", "%d %H:%M", "%b %H:%M", "%H:%M %j", "%H:%M%d"] {
            let refused = Format::on_date(text, "2024-03-01");
            assert_eq!(refused, Err(FormatError::TwoDates(text.to_owned())));
        }
        for text in ["%H:%M", "%a %I:%M:%S.%f %p %z", "%H%M"] {
            assert!(Format::on_date(text, "2024-03-01").is_ok(), "{text}");
        }
    }

    #[test]
    fn the_only_date_above_a_table_is_found() {
        let date =
            |lines: &[&str]| above(&lines.iter().map(ToString::to_string).collect::<Vec<_>>());
        for line in [
            "Report of 2024-03-01",
            "Datum: 01.03.2024;;",
            "# Recorded on 1 March 2024, station 7",
            "Date,2024/03/01",
        ] {
            assert_eq!(date(&[line]).as_deref(), Some("2024-03-01"), "{line}");
        }
        assert_eq!(date(&["Report of 2024-03-01", "printed 2024-03-05"]), None, "two dates");
        assert_eq!(date(&["Date: 03/04/2024"]), None, "of March or April");
        assert_eq!(date(&["Station 7, 12 sensors"]), None);
    }
}
