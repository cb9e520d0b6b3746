//! Names of owners with the number of a day or a visit behind them.

use crate::profile::Column;
use crate::words::worded;
use std::collections::BTreeSet;

/// Words of what one person has several of.
const PARTS: &[&str] = &[
    "day", "tag", "jour", "dia", "día", "giorno", "dag", "visit", "visite", "visita", "besuch",
    "session", "sitzung", "sesión", "night", "nacht", "nuit", "noche", "week", "woche", "semaine",
    "semana",
];

/// Asks about a column whose texts end so, as `P1 day 02`: one person then counts as several owners.
pub(crate) fn asked(column: &Column) -> Option<String> {
    let stems: Option<BTreeSet<&str>> = column.texts.keys().map(|text| stem(text)).collect();
    let persons = stems.filter(|_| column.numbers == 0)?.len();
    let (name, word, values) = (&column.name, worded(&column.name), column.distinct());
    (persons < column.texts.len()).then(|| {
        format!(
            "The {values} values of `{name}` end with the number of a day, a visit or the like, so one person may count as several owners. Write what stands before it in a column of its own and name that with `--owner COLUMN`; use `--owner {word}` if each value is another owner, or `--owner none` if all rows belong to one owner."
        )
    })
}

/// What stands before the number of a day or a visit.
fn stem(text: &str) -> Option<&str> {
    let sign = |c: char| !c.is_alphanumeric();
    let before = text.trim_end_matches(|c: char| c.is_ascii_digit());
    let word = before.trim_end_matches(sign);
    let stem = word.trim_end_matches(char::is_alphabetic);
    let part = word.strip_prefix(stem)?.to_lowercase();
    let numbered = before.len() < text.len() && PARTS.contains(&part.as_str());
    numbered.then(|| stem.trim_end_matches(sign))
}
