//! Columns side by side that are one measurement: of several moments, or of several owners.

use crate::attribute::Attribute;
use crate::hints::Hints;
use crate::kinds::QUANTITIES;
use crate::number::Decimal;
use crate::profile::{Column, Profile};
use crate::tally::CountedColumn;
use crate::words::{has, owner_score, worded};

/// Columns of one name with different numbers that may each be somebody's.
const MIN_OWNERS: usize = 8;

/// What to ask.
pub(crate) fn question(
    (attributes, wanted): (&[Attribute], &[CountedColumn]),
    profile: &Profile,
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
    let is_open = owner.is_none() && hints.owner.is_none() && !said(&first.column);
    let own_columns: Vec<&Column> =
        wanted.iter().map(|wanted| &profile.columns[wanted.column]).collect();
    if is_open && are_names(&own_columns) {
        let (name, word) = (&first.column, worded(&first.column));
        return Some(format!(
            "`{name}` and {} other columns are alike and have names such as those of people or places, so that each may be of another owner; the whole file is taken as one owner's. If each is one owner's, describe them as `wide` in source.yaml; say `--measure {word}` if they are measurements of one.",
            attributes.len() - 1
        ));
    }
    let own = stem(first)?;
    let count = attributes.iter().filter(|other| stem(other) == Some(own)).count();
    let most = count >= MIN_OWNERS && count * 5 >= attributes.len() * 4;
    (is_open && most).then(|| {
        let (name, word) = (&first.column, worded(&first.column));
        format!(
            "`{name}` and {} other columns have one name with different numbers, so that each may be of another person or device; the whole file is taken as one owner's. If each is one owner's, describe them as `wide` in source.yaml; say `--measure {word}` if they are measurements of one.",
            count - 1
        )
    })
}

/// Whether columns have names of one word each with a capital letter, none of which names a
/// quantity, and numbers of one size.
fn are_names(columns: &[&Column]) -> bool {
    const WITHIN: i128 = 10;
    let name = |column: &&&Column| {
        let (mut chars, name) = (column.name.chars(), &column.name);
        let plain = |c: char| c.is_lowercase() || c == '-' || c == '\'';
        name.chars().count() > 1
            && chars.next().is_some_and(char::is_uppercase)
            && chars.all(plain)
            && !has(name, QUANTITIES)
            && owner_score(name) == 0
            && !crate::units::is_unit(name)
    };
    let names = columns.iter().filter(name).count();
    if columns.len() < MIN_OWNERS || names < columns.len() {
        return false;
    }
    let most = |column: &&&Column| column.whole_range().map(|(_, most)| most);
    let Some(sizes) = columns.iter().map(|own| most(&own)).collect::<Option<Vec<Decimal>>>() else {
        return false;
    };
    let whole = columns.iter().filter(|column| !column.fractional).count();
    let (Some(least), Some(most)) = (sizes.iter().min(), sizes.iter().max()) else { return false };
    (whole == 0 || whole == columns.len()) && *least > Decimal::ZERO && least.times(WITHIN) >= *most
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
