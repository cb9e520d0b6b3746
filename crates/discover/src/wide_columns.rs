//! Columns side by side that are one measurement: of several moments, or of several owners.

use crate::attribute::Attribute;
use crate::hints::Hints;
use crate::number::Decimal;
use crate::owner_words::owner_score;
use crate::plural::counted;
use crate::profile::{Column, Profile};
use crate::quantities::QUANTITIES;
use crate::tally::CountedColumn;
use crate::time_across;
use crate::totals::{TOTALS, seems_total};
use crate::unnamed_kinds;
use crate::words::{CODES, MONEY, READINGS, has, worded};
use std::collections::BTreeSet;

/// Columns of one name with different numbers that may each be somebody's.
const MIN_OWNERS: usize = 8;

/// The greatest number of each is at most so many times that of another, if they are alike.
const WITHIN: i128 = 10;

/// What columns side by side are.
pub(crate) enum Look {
    /// Each is one owner's.
    Alike,
    /// Each is one owner's but for these, which may be the sums of the others: that is asked.
    AlikeButTotals(Vec<String>, String),
    /// That is asked.
    Open(String),
}

/// Looks at columns side by side.
pub(crate) fn look(
    (attributes, wanted): (&[Attribute], &[CountedColumn]),
    profile: &Profile,
    owner: Option<usize>,
    hints: &Hints,
) -> Option<Look> {
    let said = |name: &str| hints.measure.iter().any(|own| own == name);
    let names: Vec<&str> = attributes.iter().map(|own| &*own.column).collect();
    if let Some((first, last)) = time_across::parts_of_day(&names) {
        let word = worded(first);
        return (!said(first)).then(|| Look::Open(format!(
            "The columns `{first}` to `{last}` seem to be times within one row, such as the hours of a day; each is taken as a separate measurement. If they are times, describe them as `wide` in source.yaml; otherwise use `--measure {word}`."
        )));
    }
    let run = time_across::run(&names).filter(|_| hints.wide.is_none());
    if let Some((first, last)) = run {
        let word = worded(first);
        return (!said(first)).then(|| Look::Open(format!(
            "The columns `{first}` to `{last}` seem to be times, such as the months of a year, so each row has several readings. If they are times, write a row for each of them, with its time; use `--wide NAME` if each belongs to one owner, or `--measure {word}` if each is a measurement of its own."
        )));
    }
    let first = attributes.first()?;
    let is_nobodys = owner.is_none() && hints.owner.is_none();
    let is_open = is_nobodys && !said(&first.column);
    let own_columns: Vec<&Column> =
        wanted.iter().map(|wanted| &profile.columns[wanted.column]).collect();
    if hints.wide.is_some() {
        return sums_beside(&own_columns, hints);
    }
    if is_open && let Some(look) = of_owners(&own_columns) {
        return Some(look);
    }
    if is_open && have_ids(&own_columns) {
        let are = "have long numbers in their names, such as those of stations";
        return Some(Look::Open(each(attributes, are)));
    }
    if is_open && let Some(look) = numbered(attributes, &common_unit(&own_columns)) {
        return Some(look);
    }
    if !is_nobodys {
        return None;
    }
    of_no_kind(attributes, &bare(&own_columns), hints)
}

/// Asks about most columns if they have one name with different numbers.
fn numbered(attributes: &[Attribute], unit: &str) -> Option<Look> {
    let stem =
        |own: &'_ Attribute| stem(own.column.strip_suffix(unit)?.trim_end()).map(str::to_owned);
    let own = stem(attributes.first()?)?;
    let alike: Vec<&Attribute> =
        attributes.iter().filter(|other| stem(other).as_ref() == Some(&own)).collect();
    let several = if names_owners(&own) { 2 } else { MIN_OWNERS };
    let most = alike.len() >= several && alike.len() * 5 >= attributes.len() * 4;
    most.then(|| Look::Open(each(alike, "have the same name with different numbers")))
}

/// Asks about columns whose names do not say what they measure, whatever is beside them.
fn of_no_kind(attributes: &[Attribute], bare: &[Column], hints: &Hints) -> Option<Look> {
    let found = unnamed_kinds::find(bare)?;
    let (columns, others): (Vec<_>, Vec<_>) =
        attributes.iter().enumerate().partition(|(at, _)| found.contains(at));
    if columns.iter().any(|(_, own)| hints.measure.contains(&own.column)) {
        return None;
    }
    let asked = each(
        columns.into_iter().map(|(_, own)| own),
        "have numbers of similar size, and their names do not say what they measure",
    );
    let out = others.iter().map(|(_, own)| format!("--leave-out {}", worded(&own.column)));
    let out: Vec<String> = out.collect();
    Some(Look::Open(match &out[..] {
        [] => asked,
        _ => format!(
            "{asked} `--wide` takes all columns of numbers; add `{}` to leave out what belongs to no owner.",
            out.join(" ")
        ),
    }))
}

/// The question whether each of some columns is another owner's.
fn each<'a>(columns: impl IntoIterator<Item = &'a Attribute>, are: &str) -> String {
    let mut columns = columns.into_iter().map(|own| &own.column);
    let name = columns.next().map_or("", |own| own);
    let (word, others) = (worded(name), counted(columns.count() as u64, "other column"));
    format!(
        "`{name}` and {others} {are}. Each may belong to a different person or device, and results would show each of them alone. Use `--wide NAME`, with a name for what they measure, if each belongs to one owner; use `--measure {word}` if they are measurements of one."
    )
}

/// Whether all names have long numbers behind letters, and not the same, and are equal but for numbers
/// or are codes of one form.
fn have_ids(columns: &[&Column]) -> bool {
    const LONG: usize = 6;
    let longest = |own: &&Column| {
        let number = own.name.split(|c: char| !c.is_ascii_digit()).max_by_key(|own| own.len())?;
        let letters = own.name.starts_with(char::is_alphabetic);
        (letters && number.len() >= LONG).then(|| number.to_owned())
    };
    let same = |form: fn(&str) -> String| {
        columns.iter().map(|own| form(&own.name)).collect::<BTreeSet<_>>().len() == 1
    };
    let is_code =
        |own: &&Column| !own.name.contains(char::is_whitespace) && !has(&own.name, QUANTITIES);
    let numbers: Option<BTreeSet<String>> = columns.iter().map(longest).collect();
    let alike = same(without_digits) || (columns.iter().all(is_code) && same(code_form));
    alike && numbers.is_some_and(|numbers| numbers.len() > 1)
}

fn without_digits(name: &str) -> String {
    name.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// A name with one sign for each run of letters or of digits.
fn code_form(name: &str) -> String {
    let kind = |c: char| match c {
        c if c.is_alphabetic() => 'a',
        c if c.is_ascii_digit() => '0',
        c => c,
    };
    let mut signs: Vec<char> = name.chars().map(kind).collect();
    signs.dedup();
    signs.into_iter().collect()
}

/// Whether what stands before numbers names people, homes or stations, rather than the channels of a device.
fn names_owners(stem: &str) -> bool {
    const HOMES: &[&str] = &[
        "meter",
        "zähler",
        "compteur",
        "house",
        "home",
        "apartment",
        "dwelling",
        "wohnung",
        "building",
        "station",
        "gauge",
        "pegel",
        "messstelle",
        "estacion",
        "estación",
    ];
    owner_score(stem) == 100 || has(stem, HOMES)
}

/// Columns that may be the sums of those that a person says to be one owner's each.
fn sums_beside(columns: &[&Column], hints: &Hints) -> Option<Look> {
    let open = |own: &Column| !hints.measure.contains(&own.name);
    let sums = columns.iter().zip(bare(columns)).filter(|(own, bare)| is_sum(bare) && open(own));
    let sums: Vec<String> = sums.map(|(own, _)| own.name.clone()).collect();
    let first = sums.first().filter(|_| sums.len() < columns.len())?;
    let word = worded(first);
    let asked = format!(
        "`{first}` may be the sum of the columns beside it; it is left out, since all would count twice. Use `--leave-out {word}` if that is right, or `--measure {word}` if it belongs to one owner too."
    );
    Some(Look::AlikeButTotals(sums, asked))
}

/// Columns under their names without the unit that all have.
fn bare(columns: &[&Column]) -> Vec<Column> {
    let unit = common_unit(columns);
    let bare = |column: &&Column| {
        let name = column.name.strip_suffix(unit.as_str()).unwrap_or(&column.name).trim();
        Column { name: name.to_owned(), ..(*column).clone() }
    };
    columns.iter().map(bare).collect()
}

fn is_sum(column: &Column) -> bool {
    seems_total(&column.name) || has(&column.name, TOTALS)
}

/// Whether columns are each one owner's by their names, without a unit that all have, and by their
/// numbers.
fn of_owners(columns: &[&Column]) -> Option<Look> {
    let bare = bare(columns);
    let others: Vec<&Column> = bare.iter().filter(|column| !is_sum(column)).collect();
    if !are_names(&others) && !are_alike(&others) {
        return None;
    }
    let sums = columns.iter().zip(&bare).filter(|(_, bare)| is_sum(bare));
    let sums: Vec<String> = sums.map(|(column, _)| column.name.clone()).collect();
    let Some(first) = sums.first() else { return Some(Look::Alike) };
    let asked = format!(
        "`{first}` may be the sum of the columns beside it, each of which seems to be one owner's; it is left out, since all would count twice. Use `--leave-out {}` if that is right, or `--owner none` if all columns are measurements of one owner.",
        worded(first)
    );
    Some(Look::AlikeButTotals(sums, asked))
}

/// The unit in brackets that all names end with; empty if they have none or several.
fn common_unit(columns: &[&Column]) -> String {
    let unit = |column: &&Column| {
        let open = column.name.rfind(['[', '('])?;
        let closed = column.name.ends_with([']', ')']) && open > 0;
        closed.then(|| column.name[open..].to_owned())
    };
    let first = columns.first().and_then(unit).unwrap_or_default();
    let same = columns.iter().all(|own| unit(own).as_deref() == Some(first.as_str()));
    if same { first } else { String::new() }
}

/// Whether columns have names of one word each with a capital letter, none of which names a
/// quantity, and numbers of one size.
fn are_names(columns: &[&Column]) -> bool {
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

/// Whether columns have names without any word of a quantity, a unit or a statistic, and numbers
/// in ranges near one another: readings of one kind, of several.
fn are_alike(columns: &[&Column]) -> bool {
    const OTHERS: &[&str] = &[
        "open", "high", "low", "close", "adj", "min", "max", "mean", "avg", "sum", "count",
        "total", "std", "median", "x", "y", "z", "lat", "lon", "roll", "pitch", "yaw",
    ];
    const READERS: usize = 6;
    let name = |column: &&&Column| {
        let name = &column.name;
        let stem = |own: &str| own.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
        let alone = columns.iter().filter(|own| stem(&own.name) == stem(name)).count() == 1;
        // `Pier 39` among other names, and not `channel 1` to `channel 8`.
        let plain = |c: char| {
            let digit = c.is_ascii_digit() && alone && name.contains(' ');
            c.is_alphabetic() || matches!(c, ' ' | '-' | '\'' | '.') || digit
        };
        let known = |list: &[&str]| has(name, list);
        name.chars().count() > 1
            && name.chars().all(plain)
            && !known(QUANTITIES)
            && !known(READINGS)
            && !known(MONEY)
            && !known(CODES)
            && !known(OTHERS)
            && !crate::units::is_unit(name)
            && crate::units::of_name(name).is_none()
    };
    if columns.len() < READERS || !columns.iter().all(|column| name(&column)) {
        return false;
    }
    let ranges = columns.iter().map(|column| column.whole_range());
    let Some(ranges) = ranges.collect::<Option<Vec<(Decimal, Decimal)>>>() else { return false };
    let highs = || ranges.iter().map(|own| own.1);
    let (Some(least), Some(most)) = (highs().min(), highs().max()) else { return false };
    let (low, high) = (middle(ranges.iter().map(|own| own.0)), middle(highs()));
    // Persons differ, but none is farther from the others than the numbers of each are apart.
    let near = |(from, to): &(Decimal, Decimal)| {
        from.times(2).minus(*to) <= high && to.times(2).minus(*from) >= low
    };
    let truths = columns.iter().any(|column| column.distinct() <= 2);
    ranges.iter().all(near) && least > Decimal::ZERO && least.times(WITHIN) >= most && !truths
}

/// The middle one of some numbers.
fn middle(numbers: impl Iterator<Item = Decimal>) -> Decimal {
    let mut numbers: Vec<Decimal> = numbers.collect();
    numbers.sort_unstable();
    numbers.get(numbers.len() / 2).copied().unwrap_or(Decimal::ZERO)
}

/// What a name has before its number, if that is a word.
fn stem(name: &str) -> Option<&str> {
    let (stem, number) = time_across::number_at_end(name);
    (stem.starts_with(char::is_alphabetic) && !number.is_empty()).then_some(stem)
}
