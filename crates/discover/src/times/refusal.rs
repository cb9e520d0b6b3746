//! Why a file has no time, as far as its columns show it.

use super::{pairing, parts};
use crate::clock::Format;
use crate::profile::{Column, Profile};
use crate::time_parts;
use crate::words::{DAY, MONTH, TIMES, has, worded};

/// What is counted from a start where the days do not matter.
const ROUNDS: &[&str] = &[
    "wave", "visit", "visite", "visita", "besuch", "week", "woche", "semaine", "semana", "month",
    "monat", "mois", "mes", "session", "round", "occasion", "year", "jahr",
];

/// What may be the time, and what is missing.
pub(super) fn why(profile: &Profile) -> String {
    since_1970(profile)
        .or_else(|| quarters(profile))
        .or_else(|| months(profile))
        .or_else(|| year(profile))
        .or_else(|| date(profile))
        .or_else(|| short_years(profile))
        .or_else(|| start(profile))
        .unwrap_or_default()
}

fn since_1970(profile: &Profile) -> Option<String> {
    let column = profile.columns.iter().find(|column| column.may_be_times())?;
    let (name, word) = (&column.name, worded(&column.name));
    Some(format!(": the numbers of `{name}` may count from 1970; if they do, use `--time {word}`"))
}

/// A column of texts such as `1970 Q1`.
fn quarters(profile: &Profile) -> Option<String> {
    let all = |column: &&Column| {
        let quarters = column.texts.iter().filter(|(text, _)| is_quarter(text));
        !column.texts.is_empty() && quarters.count() == column.texts.len()
    };
    let name = &profile.columns.iter().find(all)?.name;
    Some(format!(
        ": `{name}` has quarters of years; write each as its first day, such as 2024-04-01 for the second quarter of 2024"
    ))
}

fn is_quarter(text: &str) -> bool {
    let text = text.to_ascii_uppercase();
    let Some((before, behind)) = text.split_once('Q') else { return false };
    let marks = [' ', '-', '/', '_', ':', '.'];
    let (before, behind) = (before.trim_end_matches(marks), behind.trim_start_matches(marks));
    let is_year = |text: &str| text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = |text: &str| matches!(text, "1" | "2" | "3" | "4");
    let (first, rest) = behind.split_at_checked(1).unwrap_or_default();
    (is_year(before) && number(behind))
        || (before.is_empty() && number(first) && is_year(rest.trim_start_matches(marks)))
}

/// A column of texts such as `Jan 16`, which may be a month of 2016 or a day.
fn months(profile: &Profile) -> Option<String> {
    const FORMATS: [&str; 3] = ["%b %y", "%b-%y", "%b/%y"];
    let known = |text: &str| Format::new(text).ok().map(|format| (text.to_owned(), format));
    let formats: Vec<(String, Format)> = FORMATS.into_iter().filter_map(known).collect();
    let format_of = |column: &Column| {
        let all = |(_, format): &&(String, Format)| {
            column.texts.keys().all(|text| format.read(text).is_some())
        };
        let texts = column.numbers == 0 && !column.texts.is_empty() && !column.many_texts;
        formats.iter().filter(|_| texts).find(all)
    };
    let found = profile.columns.iter().find_map(|own| Some((own, format_of(own)?)));
    let (column, (format, _)) = found?;
    let (name, word) = (&column.name, worded(&column.name));
    Some(format!(
        ": `{name}` may have months and years of two digits; if it does, use `--time {word} --time-format {}`",
        worded(format)
    ))
}

/// Months and days without a year.
fn year(profile: &Profile) -> Option<String> {
    let month = parts::part(profile, MONTH, 1, 12, &[])?;
    let day = parts::part(profile, DAY, 1, 31, &[month])?;
    let [month, day] = [month, day].map(|at| &profile.columns[at].name);
    Some(format!(": `{month}` and `{day}` have no year; add a column `Year` that says it"))
}

/// Times of day without a date.
fn date(profile: &Profile) -> Option<String> {
    let at = pairing::lone_clock(profile)?;
    Some(format!(
        ": `{}` has times of day without a date; if all rows are of one day, say it with `--date`, such as `--date 2024-03-01`",
        profile.columns[at].name
    ))
}

/// Years without their century, with nothing that says so but the column's name.
fn short_years(profile: &Profile) -> Option<String> {
    let column = profile.columns.iter().find(|column| time_parts::is_short_year(column))?;
    let (name, word) = (&column.name, worded(&column.name));
    Some(format!(
        ": `{name}` may hold years without their century; if it does, use `--time {word} --time-format %y`"
    ))
}

/// Numbers that are days or rounds since a start.
fn start(profile: &Profile) -> Option<String> {
    let column = profile.columns.iter().find(|column| may_count(column))?;
    let (name, word) = (&column.name, worded(&column.name));
    let counted = format!(": `{name}` may count from a start that the file does not say");
    if !column.is_integer() {
        return Some(counted);
    }
    Some(format!(
        "{counted}; if it counts days, weeks, visits or the like, use `--time {word} --time-format days`, and each of them is then one day; `--date` says which date is 0"
    ))
}

/// The column of whole numbers of days or rounds since a start, if there is one such column alone.
pub(super) fn counted(profile: &Profile) -> Option<usize> {
    let columns = profile.columns.iter().enumerate();
    let mut all = columns.filter(|(_, own)| may_count(own) && own.is_integer());
    let (at, _) = all.next()?;
    all.next().is_none().then_some(at)
}

fn may_count(column: &Column) -> bool {
    column.is_number() && (has(&column.name, TIMES) || has(&column.name, ROUNDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarters_are_known() {
        for text in ["1970 Q1", "1970Q4", "2024-q3", "Q2 1970", "Q2/2024"] {
            assert!(is_quarter(text), "{text}");
        }
        for text in ["1970 Q5", "70 Q1", "Q1", "FAQ 1970", "1970 Q12", "Q", ""] {
            assert!(!is_quarter(text), "{text}");
        }
    }
}
