//! Rows that must not be added up as one: readings of several kinds or units in one column, and
//! sums among what they are sums of.

use crate::attribute::Attribute;
use crate::form::Form;
use crate::hash::{Hashes, Map, Set};
use crate::hints::Hints;
use crate::kind_names;
use crate::number::Decimal;
use crate::profile::{Column, Profile};
use crate::quantities::QUANTITIES;
use crate::scan::{SAMPLE, ScannedRow, scan};
use crate::tally::Values;
use crate::times::{TimePlan, join};
use crate::totals::{is_total, seems_total};
use crate::units;
use crate::words::{CURRENCIES, KINDS, MONEY, READINGS, has, is, worded, words};
use std::collections::BTreeSet;

/// Different texts of a column that names kinds, at most.
pub(crate) const MAX_KINDS: u64 = 60;

/// What to ask of them.
pub(crate) struct Kinds {
    /// In sentences.
    pub questions: Vec<String>,
    /// Whether a person has said what to do with the column that tells apart rows of one owner at
    /// one time.
    pub answered: bool,
}

/// What to ask.
pub(crate) fn questions(
    (attributes, categories): (&[Attribute], &[(String, u64)]),
    (text, form, profile): (&str, &Form, &Profile),
    (owner, kinds, parts): (Option<usize>, &[usize], &[usize]),
    hints: &Hints,
) -> Kinds {
    let is_category =
        |column: &Column| categories.iter().any(|(name, count)| *name == column.name && *count > 1);
    let own = owner.map(|at| &profile.columns[at]).filter(|_| hints.owner.is_none());
    let left_out = |column: &Column| hints.leave_out.contains(&column.name);
    let open = |column: &&Column| is_category(column) && !left_out(column);
    let named: Vec<&Column> = profile.columns.iter().filter(open).collect();
    let pairs = pairs((attributes, profile, (text, form)), &named, own);
    let said = |pair: &Pair<'_>| hints.measure.iter().any(|own| own == pair.value);
    let asked = pairs.iter().find(|pair| !said(pair));
    let mut found: Vec<String> =
        asked.map(|pair| (pair.asks)(pair.value, pair.kind)).into_iter().collect();
    // What was said of the kinds in a column holds for rows of one time too.
    let known = |column: &Column| {
        left_out(column) || pairs.iter().any(|pair| said(pair) && pair.kind.name == column.name)
    };
    let mut apart = kinds.iter().map(|at| &profile.columns[*at]);
    let first = attributes.iter().find(|own| own.values == Values::Number);
    if found.is_empty()
        && let Some(value) = first
    {
        let open = apart.clone().find(|own| is_category(own) && !known(own));
        found.extend(open.map(|kind| beside(&value.column, kind)));
    }
    found.extend(named.into_iter().chain(own).find_map(totals));
    let mut parts = parts.iter().map(|at| &profile.columns[*at]);
    let of_parts = |own: &Column| left_out(own) || hints.measure.contains(&own.name);
    Kinds { questions: found, answered: apart.any(known) || parts.any(of_parts) }
}

/// Numbers that must not be added up as they are, and the column that says of what kind each is.
struct Pair<'a> {
    value: &'a str,
    kind: &'a Column,
    asks: fn(&str, &Column) -> String,
}

/// All that there may be, the likeliest first.
fn pairs<'a>(
    (attributes, profile, rows): (&'a [Attribute], &'a Profile, (&str, &Form)),
    named: &[&'a Column],
    owner: Option<&'a Column>,
) -> Vec<Pair<'a>> {
    let value = money(attributes);
    let amounts = value.or_else(|| readings(attributes));
    let place = |name: &str| profile.columns.iter().position(|own| own.name == name);
    let amounts = amounts.and_then(place);
    let signed = |own: &Column| {
        let columns = amounts.zip(place(&own.name)).filter(|_| names_signs(own));
        columns.is_some_and(|columns| have_signs(columns, profile, rows))
    };
    let unsigned_kinds: Vec<&Column> = named.iter().copied().filter(|own| !signed(own)).collect();
    let named = || unsigned_kinds.iter().copied();
    let quantities = || named().chain(owner).find(|column| names_quantities(column));
    let unit = || named().find(|column| names_units(column));
    let kind = named().find(|column| is(&column.name, KINDS)).or_else(quantities).or_else(unit);
    let signs = named().find(|column| names_signs(column));
    let pair = |value: Option<&'a str>, kind: Option<&'a Column>, asks| {
        value.zip(kind).map(|(value, kind)| Pair { value, kind, asks })
    };
    let all = [
        pair(readings(attributes), kind, mixed as fn(&str, &Column) -> String),
        pair(value, unit(), mixed),
        pair(value, signs, unsigned),
        beside_units(attributes, profile, &named().collect::<Vec<_>>()),
        of_kinds(attributes, profile, rows, named().chain(owner)),
    ];
    all.into_iter().flatten().collect()
}

/// Numbers whose name says nothing, and a column that says what each measures.
fn of_kinds<'a>(
    attributes: &'a [Attribute],
    profile: &Profile,
    rows: (&str, &Form),
    mut columns: impl Iterator<Item = &'a Column>,
) -> Option<Pair<'a>> {
    let value = kind_names::values(attributes)?;
    let differ = |kind: &&Column| {
        let named = kind.name != value && kind_names::names_kinds(&kind.name);
        named && !kind_names::are_alike(rows, profile, (value, &kind.name))
    };
    Some(Pair { value, kind: columns.find(differ)?, asks: mixed })
}

/// Whether rows of one owner at one time have the same texts of a column again and again, as
/// kinds of readings have, or most of all that there are. Purchases differ each time.
/// Where times do not repeat often, they are the same nearly always.
pub(crate) fn recur(
    (text, form): (&str, &Form),
    time: &TimePlan,
    owner: Option<usize>,
    column: usize,
    often: bool,
) -> bool {
    let (hashes, mut joined) = (Hashes::default(), String::new());
    // The texts of each time, as their number and the sum of their hashes.
    let mut times: Map<(u64, i64), (u64, u64)> = Map::default();
    let (mut texts, mut rows) = (Set::<u64>::default(), 0);
    scan(text, form, |_, scanned| {
        let ScannedRow::Row(row) = scanned else { return true };
        let at = join(row, &time.columns, form, &mut joined).then(|| time.clock.micros(&joined));
        let Some(at) = at.flatten() else { return true };
        let cell = |column: usize| row.get(column).map_or("", AsRef::as_ref);
        rows += 1;
        let own = hashes.of(cell(column));
        texts.insert(own);
        let known = times.entry((hashes.of(owner.map_or("", cell)), at)).or_default();
        *known = (known.0 + 1, known.1.wrapping_add(own));
        rows < SAMPLE
    });
    let mut sets: Map<u64, u64> = Map::default();
    let (mut several, mut all) = (0u64, 0u64);
    for (count, set) in times.into_values().filter(|(count, _)| *count > 1) {
        *sets.entry(set).or_default() += 1;
        several += 1;
        all += count;
    }
    let most = sets.into_values().max().unwrap_or(0);
    if !often {
        return several > 0 && most * 10 >= several * 9;
    }
    several > 0 && (most * 2 >= several || all * 2 >= several * texts.len() as u64)
}

/// The column whose numbers may be of several kinds: by its name, or since it is the only one.
fn readings(attributes: &[Attribute]) -> Option<&str> {
    let numbers = || attributes.iter().filter(|own| own.values == Values::Number);
    let only = || numbers().next().filter(|_| numbers().count() == 1);
    let value = numbers().find(|own| is(&own.column, READINGS)).or_else(only)?;
    Some(&value.column)
}

/// The first column of money.
fn money(attributes: &[Attribute]) -> Option<&str> {
    let value = attributes.iter().find(|own| has(&own.column, MONEY))?;
    Some(&value.column)
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

/// A column of several units, and the numbers beside it: those before it, else behind it, else the
/// first of the file.
fn beside_units<'a>(
    attributes: &'a [Attribute],
    profile: &'a Profile,
    named: &[&'a Column],
) -> Option<Pair<'a>> {
    let numbers = || attributes.iter().filter(|own| own.values == Values::Number);
    let measured = |column: &Column| numbers().find(|own| own.column == column.name);
    let kind = *named.iter().find(|column| holds_units(column))?;
    let at = profile.columns.iter().position(|column| column.name == kind.name)?;
    let (before, behind) = (profile.columns.get(at.wrapping_sub(1)), profile.columns.get(at + 1));
    let near = before.and_then(measured).or_else(|| behind.and_then(measured));
    let value = near.or_else(|| numbers().next())?;
    Some(Pair { value: &value.column, kind, asks: several_units })
}

/// Whether all texts of a column are units, or most if its name says so.
fn holds_units(column: &Column) -> bool {
    const MAX: usize = 10;
    let known = column.texts.keys().filter(|text| units::is_written_out(text)).count();
    let all = column.texts.len();
    // One letter each may be sexes or grades.
    let long = column.texts.keys().any(|text| text.chars().count() > 1);
    let texts = column.numbers == 0 && !column.many_texts && (2..=MAX).contains(&all);
    texts && if names_units(column) { known * 2 >= all } else { known == all && long }
}

/// Asks about numbers with several units in the column beside them.
fn several_units(value: &str, kind: &Column) -> String {
    const SHOWN: usize = 4;
    let mut units: Vec<&str> = kind.texts.keys().map(String::as_str).collect();
    units.sort_unstable();
    let more = if units.len() > SHOWN { " and others" } else { "" };
    units.truncate(SHOWN);
    let (name, word) = (&kind.name, worded(value));
    format!(
        "`{name}` has several units beside `{value}`: {}{more}. A sum would mix these. Convert the numbers to one unit, or use `--measure {word}` if they may be added up.",
        units.join(", ")
    )
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

/// Whether amounts have signs of their own: those below zero are all in rows of one of the texts, and
/// no others are.
fn have_signs(
    (amounts, signs): (usize, usize),
    profile: &Profile,
    (text, form): (&str, &Form),
) -> bool {
    let (own, kinds) = (&profile.columns[amounts], &profile.columns[signs]);
    let all = own.filled == kinds.filled && own.numbers == own.filled;
    if !all || own.written.negative == 0 {
        return false;
    }
    // Whether a text has amounts below zero, and above.
    let mut found: Map<String, (bool, bool)> = Map::default();
    let marks = form.marks();
    scan(text, form, |_, scanned| {
        let ScannedRow::Row(row) = scanned else { return true };
        let cell = |column: usize| row.get(column).map_or("", AsRef::as_ref);
        let number = marks.plain(cell(amounts)).and_then(|plain| Decimal::read(&plain));
        if let Some(number) = number {
            if !found.contains_key(cell(signs)) {
                found.insert(cell(signs).to_owned(), (false, false));
            }
            if let Some(known) = found.get_mut(cell(signs)) {
                known.0 |= number < Decimal::ZERO;
                known.1 |= number > Decimal::ZERO;
            }
        }
        found.values().all(|known| *known != (true, true))
    });
    let mixed = found.values().any(|known| *known == (true, true));
    !mixed && found.values().filter(|known| known.0).count() == 1
}

/// Asks about amounts whose sign stands in another column.
fn unsigned(value: &str, signs: &Column) -> String {
    let (name, word) = (&signs.name, worded(value));
    format!(
        "`{name}` seems to say which numbers of `{value}` are added and which are subtracted, so a sum without signs has no meaning. Give the numbers their signs, or use `--measure {word}` if they may be added up as they are."
    )
}

/// Asks about rows of one owner at one time.
fn beside(value: &str, kind: &Column) -> String {
    let (name, leave) = (&kind.name, worded(&kind.name));
    format!(
        "An owner has several rows at one time, which `{name}` tells apart ({} different values), such as kinds of readings, or a forecast beside a measurement. A sum of `{value}` over them may mix them or count twice. Use `--owner {leave}` if it names the owner of a row. Else keep only one of them in the file, or use `--leave-out {leave}` if they may be added up.",
        kind.distinct()
    )
}

fn mixed(value: &str, kind: &Column) -> String {
    let (name, word) = (&kind.name, worded(value));
    format!(
        "`{value}` seems to hold {} kinds of readings, which `{name}` names; a sum would mix them. Keep only one kind in the file, or use `--measure {word}` if they may be added up.",
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
        "`{name}` has `{text}` beside other values, so its rows may be sums of the others, and all would count twice. Remove these rows from the file. If they are not sums, use `--owner {word}` or `--leave-out {word}`, whichever applies."
    ))
}
