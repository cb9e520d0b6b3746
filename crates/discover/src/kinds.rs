//! Rows that must not be added up as one: readings of several kinds or units in one column, and
//! sums among what they are sums of.

use crate::attribute::Attribute;
use crate::hints::Hints;
use crate::profile::{Column, Profile};
use crate::tally::Values;
use crate::totals::{is_total, seems_total};
use crate::words::{CURRENCIES, KINDS, MONEY, READINGS, has, is, worded, words};
use std::collections::BTreeSet;

/// Words of quantities: a column of several of them names kinds of readings.
const QUANTITIES: &[&str] = &[
    "temperature",
    "temp",
    "temperatur",
    "humidity",
    "feuchte",
    "luftfeuchte",
    "luftfeuchtigkeit",
    "pressure",
    "druck",
    "luftdruck",
    "co2",
    "co",
    "no2",
    "nox",
    "o3",
    "so2",
    "pm1",
    "pm10",
    "pm25",
    "pm2",
    "voc",
    "noise",
    "illuminance",
    "lux",
    "brightness",
    "rain",
    "rainfall",
    "precipitation",
    "niederschlag",
    "windspeed",
    "wind",
    "voltage",
    "spannung",
    "current",
    "strom",
    "power",
    "leistung",
    "energy",
    "energie",
    "frequency",
    "gas",
    "water",
    "wasser",
    "heartrate",
    "pulse",
    "puls",
    "steps",
    "schritte",
    "distance",
    "calories",
    "weight",
    "gewicht",
    "glucose",
    "spo2",
    "oxygen",
    "systolic",
    "diastolic",
    "sleep",
    "battery",
    "rssi",
    "speed",
    "acceleration",
    "level",
    "flow",
    "ph",
    "turbidity",
    "conductivity",
    "moisture",
    "import",
    "export",
    "consumption",
    "production",
    "generation",
    "verbrauch",
    "erzeugung",
    "einspeisung",
    "bezug",
    "debit",
    "credit",
];

/// Different texts of a column that names kinds, at most.
pub(crate) const MAX_KINDS: u64 = 60;

/// What to ask.
pub(crate) fn questions(
    (attributes, categories): (&[Attribute], &[(String, u64)]),
    profile: &Profile,
    (owner, kinds): (Option<usize>, &[usize]),
    hints: &Hints,
) -> Vec<String> {
    let is_category =
        |column: &Column| categories.iter().any(|(name, count)| *name == column.name && *count > 1);
    let own = owner.map(|at| &profile.columns[at]);
    let said = hints.owner.is_some();
    let named = || {
        let open =
            |column: &&Column| is_category(column) && !hints.leave_out.contains(&column.name);
        profile.columns.iter().filter(open)
    };
    let all = || named().chain(own.filter(|_| !said));
    let mut found = Vec::new();
    if let Some(value) = readings(attributes, hints) {
        let kind = named()
            .find(|column| is(&column.name, KINDS))
            .or_else(|| all().find(|column| names_quantities(column)));
        let unit = named().find(|column| names_units(column));
        found.extend(kind.or(unit).map(|column| mixed(value, column)));
    }
    if found.is_empty()
        && let Some(value) = money(attributes, hints)
    {
        found.extend(named().find(|column| names_units(column)).map(|unit| mixed(value, unit)));
    }
    let signs = || named().find(|column| names_signs(column));
    if found.is_empty()
        && let Some((value, signs)) = money(attributes, hints).zip(signs())
    {
        found.push(unsigned(value, signs));
    }
    let apart = kinds.iter().map(|at| &profile.columns[*at]).filter(|own| is_category(own));
    let first = attributes.iter().find(|own| own.values == Values::Number);
    if found.is_empty()
        && let Some(value) = first.filter(|own| !hints.measure.contains(&own.column))
    {
        let open = apart.filter(|own| !hints.leave_out.contains(&own.name));
        found.extend(open.take(1).map(|kind| beside(&value.column, kind)));
    }
    found.extend(all().find_map(totals));
    found
}

/// The column whose numbers may be of several kinds: by its name, or since it is the only one.
fn readings<'a>(attributes: &'a [Attribute], hints: &Hints) -> Option<&'a str> {
    let numbers = || attributes.iter().filter(|own| own.values == Values::Number);
    let only = || numbers().next().filter(|_| numbers().count() == 1);
    let value = numbers().find(|own| is(&own.column, READINGS)).or_else(only)?;
    (!hints.measure.contains(&value.column)).then_some(value.column.as_str())
}

/// The first column of money.
fn money<'a>(attributes: &'a [Attribute], hints: &Hints) -> Option<&'a str> {
    let value = attributes.iter().find(|own| has(&own.column, MONEY))?;
    (!hints.measure.contains(&value.column)).then_some(value.column.as_str())
}

/// Whether most texts of a column name quantities, and not the same.
pub(crate) fn names_quantities(column: &Column) -> bool {
    if column.many_texts || column.distinct() < 2 || column.distinct() > MAX_KINDS {
        return false;
    }
    let quantity = |text: &String| {
        let all = words(text);
        all.iter().find_map(|word| QUANTITIES.iter().find(|known| *known == word))
    };
    let named: Vec<&&str> = column.texts.keys().filter_map(quantity).collect();
    let different: BTreeSet<&&str> = named.iter().copied().collect();
    different.len() > 1 && named.len() * 2 >= column.texts.len()
}

fn names_units(column: &Column) -> bool {
    let name = column.name.to_lowercase();
    let named = name.starts_with("unit") || name.starts_with("einheit") || name.ends_with("unit");
    let named = named || has(&column.name, CURRENCIES);
    named && column.distinct() <= MAX_KINDS
}

/// Whether a column has two texts, which say whether an amount comes or goes.
fn names_signs(column: &Column) -> bool {
    const PAIRS: [[&str; 2]; 9] = [
        ["h", "s"],
        ["c", "d"],
        ["cr", "dr"],
        ["haben", "soll"],
        ["credit", "debit"],
        ["in", "out"],
        ["buy", "sell"],
        ["deposit", "withdrawal"],
        ["income", "expense"],
    ];
    let mut texts: Vec<String> = column.texts.keys().map(|text| text.to_lowercase()).collect();
    texts.sort_unstable();
    PAIRS.iter().any(|pair| texts == *pair)
}

/// Asks about amounts whose sign stands in another column.
fn unsigned(value: &str, signs: &Column) -> String {
    let (name, word) = (&signs.name, worded(value));
    format!(
        "`{name}` seems to say which numbers of `{value}` come and which go, so that a sum without signs says nothing. Give the numbers their signs, or say `--measure {word}` if they may be added up as they are."
    )
}

/// Asks about rows of one owner at one time.
fn beside(value: &str, kind: &Column) -> String {
    let (name, word, leave) = (&kind.name, worded(value), worded(&kind.name));
    format!(
        "An owner has several rows at one time, which `{name}` tells apart ({} different values), such as kinds of readings, or a forecast beside what was measured. A sum of `{value}` over them may mix them or count twice. Give a file with one of them; say `--measure {word}` or `--leave-out {leave}` if they may be added up.",
        kind.distinct()
    )
}

fn mixed(value: &str, kind: &Column) -> String {
    let (name, word) = (&kind.name, worded(value));
    format!(
        "`{value}` seems to hold {} kinds of readings, which `{name}` names; a sum over them mixes them. Give a file with one kind, or say `--measure {word}` if they may be added up.",
        kind.distinct()
    )
}

/// Asks about a text that says that its rows are sums of the others.
fn totals(column: &Column) -> Option<String> {
    let others = column.texts.len() > 2;
    // A word such as `all` in one of many names.
    let mut alike = column.texts.keys().filter(|text| seems_total(text));
    let only = alike.next().filter(|_| alike.next().is_none());
    let text = column.texts.keys().find(|text| is_total(text)).or(only).filter(|_| others)?;
    let (name, word) = (&column.name, worded(&column.name));
    Some(format!(
        "`{name}` has `{text}` beside other values, so that its rows may be sums of the others, and all would count twice. Take these rows out of the file; or say `--owner {word}` or `--leave-out {word}`, as it is, if they are no sums."
    ))
}
