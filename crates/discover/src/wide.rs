//! Columns side by side that are one measurement: of several moments, or of several owners.

use crate::attribute::Attribute;
use crate::hints::Hints;
use crate::words::worded;

/// Columns of one name with different numbers that may each be somebody's.
const MIN_OWNERS: usize = 8;

/// What to ask.
pub(crate) fn question(
    attributes: &[Attribute],
    owner: Option<usize>,
    hints: &Hints,
) -> Option<String> {
    let said = |name: &str| hints.measure.iter().any(|own| own == name);
    if let Some((first, last)) = moments(attributes) {
        let word = worded(first);
        return (!said(first)).then(|| format!(
            "The columns `{first}` to `{last}` seem to be moments of one row, such as the hours of a day; each is taken as a measurement of its own. If they are moments, describe them as `wide` in source.yaml; else say `--measure {word}`."
        ));
    }
    let first = attributes.first()?;
    let own = stem(first)?;
    let count = attributes.iter().filter(|other| stem(other) == Some(own)).count();
    let open = owner.is_none() && hints.owner.is_none() && !said(&first.column);
    let most = count >= MIN_OWNERS && count * 5 >= attributes.len() * 4;
    (open && most).then(|| {
        let (name, word) = (&first.column, worded(&first.column));
        format!(
            "`{name}` and {} other columns have one name with different numbers, so that each may be of another person or device; the whole file is taken as one owner's. If each is one owner's, describe them as `wide` in source.yaml; say `--measure {word}` if they are measurements of one.",
            count - 1
        )
    })
}

/// A name's number at its end, and what stands before it.
fn parts(own: &Attribute) -> (&str, &str) {
    let stem = own.column.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    own.column.split_at(stem)
}

/// What a name has before its number, if that is a word.
fn stem(own: &Attribute) -> Option<&str> {
    let (stem, number) = parts(own);
    (stem.starts_with(char::is_alphabetic) && !number.is_empty()).then_some(stem)
}

/// Counts of columns that are moments of one row: the hours of a day, the minutes of an hour, and
/// parts of them.
const MOMENTS: [usize; 7] = [24, 48, 60, 96, 144, 288, 1440];

/// The first and the last of as many columns of one name and running numbers as a day or an hour
/// has parts.
fn moments(attributes: &[Attribute]) -> Option<(&str, &str)> {
    let clocks = || attributes.iter().filter(|own| is_clock(&own.column));
    if clocks().count() >= MOMENTS[0] {
        return clocks().next().zip(clocks().next_back()).map(|(a, b)| (&*a.column, &*b.column));
    }
    let numbered = |(stem, number): (_, &str)| Some((stem, number.parse::<u32>().ok()?));
    let names: Vec<Option<(&str, u32)>> = attributes.iter().map(parts).map(numbered).collect();
    let follows = |at: &usize| match (&names[*at - 1], &names[*at]) {
        (Some((stem, number)), Some((same, next))) => stem == same && number + 1 == *next,
        _ => false,
    };
    let mut start = 0;
    for at in 1..=names.len() {
        if at < names.len() && follows(&at) {
            continue;
        }
        if MOMENTS.contains(&(at - start)) {
            return Some((&attributes[start].column, &attributes[at - 1].column));
        }
        start = at;
    }
    None
}

/// Whether a name ends with a time of day, such as `00:30`.
fn is_clock(name: &str) -> bool {
    let last = name.rsplit([' ', '_']).next().unwrap_or(name);
    let parts: Vec<&str> = last.split(':').collect();
    let digits =
        |part: &&str| part.len() <= 2 && part.parse::<u8>().is_ok_and(|number| number < 60);
    parts.len() > 1 && parts.iter().all(digits)
}
