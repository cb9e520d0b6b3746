//! Which column names the owner of an event, and which one its time.

use crate::contract::{Column, Contract, Table};
use crate::cursor::Clause;
use crate::kinds::{self, Kind};
use crate::words::words;

/// Nouns for the people whose data a table holds.
const PEOPLE: &[&str] = &[
    "account",
    "buyer",
    "child",
    "citizen",
    "client",
    "consumer",
    "contact",
    "contributor",
    "customer",
    "cyclist",
    "donor",
    "driver",
    "employee",
    "guest",
    "holder",
    "household",
    "lead",
    "member",
    "owner",
    "participant",
    "passenger",
    "patient",
    "person",
    "player",
    "profile",
    "resident",
    "respondent",
    "rider",
    "staff",
    "student",
    "subject",
    "subscriber",
    "tenant",
    "user",
    "visitor",
    "worker",
];
/// Nouns for the devices that stand for people.
const DEVICES: &[&str] =
    &["device", "machine", "meter", "sensor", "vehicle", "car", "phone", "tracker"];
/// Words of names whose person need not be the one whose data a row holds.
const OTHERS: &[&str] = &[
    "agent",
    "approved",
    "approver",
    "assigned",
    "assignee",
    "author",
    "by",
    "creator",
    "manager",
    "new",
    "old",
    "parent",
    "previous",
    "referred",
    "referrer",
    "referring",
    "rep",
    "representative",
    "supervisor",
];
/// Words at the end of a table's name that say nothing about what it holds.
const OF_TABLES: &[&str] =
    &["data", "dim", "dimension", "fact", "history", "info", "list", "raw", "stg", "table", "v"];
/// What an identifier's name ends in.
const IDENTIFIERS: &[&str] = &[
    "id",
    "uuid",
    "guid",
    "key",
    "number",
    "no",
    "nr",
    "code",
    "ref",
    "identifier",
    "hash",
    "uid",
    "sk",
    "pk",
    "token",
    "ids",
];
/// Words for the moment at which something happened.
const EVENTS: &[&str] =
    &["event", "occurred", "measured", "recorded", "observed", "reading", "happened"];
const TIMES: &[&str] = &["timestamp", "ts", "time", "datetime", "at", "date", "on"];
/// Words for other moments: of storing, of people, of validity.
const STORED: &[&str] = &[
    "created",
    "updated",
    "update",
    "modified",
    "changed",
    "change",
    "processed",
    "loaded",
    "ingested",
    "inserted",
    "deleted",
    "last",
    "parsed",
    "synced",
    "extracted",
];
/// Words for moments before or after the event.
const APART: &[&str] =
    &["deleted", "last", "next", "planned", "previous", "prior", "scheduled", "upcoming"];
/// The score of a column that may only be asked about.
const DOUBTFUL: u8 = 0;
const NEVER: &[&str] = &[
    "birth",
    "dob",
    "birthday",
    "birthdate",
    "expiry",
    "expires",
    "expiration",
    "valid",
    "until",
    "closed",
    "opened",
    "end",
    "start",
    "from",
    "to",
    "due",
    "hire",
    "launch",
];

/// A column that was found, or why none was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The column at this position.
    Column(usize),
    /// The column at this position, although the one with this name may be meant too.
    Likely(usize, String),
    /// Columns of which one may be meant: several that would do as well, or none for certain.
    Several(Vec<String>),
    /// No column would do.
    None,
}

impl Choice {
    /// The position of the column, if one was found.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        match self {
            Choice::Column(position) | Choice::Likely(position, _) => Some(*position),
            _ => None,
        }
    }
}

fn has(words: &[String], list: &[&str]) -> bool {
    words.iter().any(|word| is(word, list))
}

/// Whether a column's values identify something, so that their sum means nothing.
#[must_use]
pub fn is_identifier(column: &Column) -> bool {
    let words = words(&column.name.value);
    let ends = words.last().is_some_and(|word| IDENTIFIERS.contains(&word.as_str()));
    let tagged = column.tags.iter().any(|tag| {
        let lower = tag.value.to_ascii_lowercase();
        ["identifier", "uid", "businesskey", "business-key", "primary-key"]
            .iter()
            .any(|w| lower.ends_with(w))
    });
    // `order_number` identifies, `number_of_orders` counts.
    let is_key = column.key.as_ref().is_some_and(|key| key.value);
    is_key || ends || tagged
}

fn kind(column: &Column) -> Option<Kind> {
    let types: Vec<&str> = column.types.iter().map(|word| word.value.as_str()).collect();
    kinds::of(&types).filter(|_| !column.many)
}

/// What a column says about the owner of a row; the greatest says most.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    /// It names a person who need not be the owner.
    Doubtful,
    /// It identifies a row of a table of people or devices, and may be of a row only.
    Row,
    /// It names a person or a device.
    Named,
    /// The same, and it identifies a row.
    Key,
}

/// The column that names the owner of a row.
#[must_use]
pub fn owner(table: &Table) -> Choice {
    let of_table = holds_owners(&table.name.value);
    let claims: Vec<_> = table.columns.iter().map(|column| claim(column, of_table)).collect();
    let choice = best(table, &claims, Claim::Doubtful);
    let Choice::Column(chosen) = choice else { return choice };
    let Some(claim) = claims.get(chosen).copied().flatten() else { return choice };
    let name = |at: usize| table.columns.get(at).map(|column| column.name.value.clone());
    let is_device =
        |at: usize| name(at).is_some_and(|name| words(&name).iter().any(|word| is(word, DEVICES)));
    let others = || claims.iter().enumerate().filter(|(at, _)| *at != chosen);
    // A device's own row beside a person's name: the person is the owner of both.
    let mut people = others().filter(|(at, own)| **own >= Some(Claim::Named) && !is_device(*at));
    if claim == Claim::Key && is_device(chosen) {
        return match (people.next(), people.next(), name(chosen)) {
            (Some((person, _)), None, Some(device)) => Choice::Likely(person, device),
            _ => choice,
        };
    }
    // A row's own key beside a person's name, as in a table of a person's contacts.
    let row = others().find(|(_, own)| **own == Some(Claim::Row) && claim == Claim::Named);
    match row.and_then(|(at, _)| Some((at, name(at)?))) {
        Some((at, _)) if is_device(chosen) => {
            let both = [at.min(chosen), at.max(chosen)];
            Choice::Several(both.into_iter().filter_map(name).collect())
        }
        Some((_, row)) => Choice::Likely(chosen, row),
        None => choice,
    }
}

fn is(word: &str, list: &[&str]) -> bool {
    list.contains(&word) || list.contains(&word.strip_suffix('s').unwrap_or(word))
}

/// Whether a word is for those whose data a table holds.
fn is_owner(word: &str) -> bool {
    is(word, PEOPLE) || is(word, DEVICES)
}

fn claim(column: &Column, of_table: bool) -> Option<Claim> {
    let kind = kind(column)?;
    if !matches!(
        kind,
        Kind::Text { .. } | Kind::Integer { .. } | Kind::Float | Kind::Decimal { scale: 0, .. }
    ) {
        return None;
    }
    let words = words(&column.name.value);
    let (last, before) = words.split_last()?;
    let identifies = IDENTIFIERS.contains(&last.as_str());
    let is_key = column.key.as_ref().is_some_and(|key| key.value);
    // `user_type_id` is of a type: the person stands directly before.
    let noun = before.last().filter(|_| identifies);
    let is_alone = |list: &[&str]| words.len() == 1 && list.contains(&last.as_str());
    let names_one = noun.is_some_and(|noun| is_owner(noun))
        || [PEOPLE, DEVICES, &["userid"]].into_iter().any(is_alone);
    let is_other = names_one && has(before, OTHERS)
        || noun.is_some_and(|noun| is(noun, OTHERS))
        || noun.is_some_and(|noun| is(noun, &["owner"])) && before.len() > 1
        || is_alone(OTHERS);
    if is_other && !is_key {
        return Some(Claim::Doubtful);
    }
    let is_of_row = match is_key {
        true => identifies || words.iter().any(|word| is_owner(word)),
        false => words.len() == 1 && identifies,
    };
    match (names_one, is_key) {
        (true, true) => Some(Claim::Key),
        (true, false) => Some(Claim::Named),
        _ => (of_table && is_of_row).then_some(Claim::Row),
    }
}

/// The column with the time of a row.
#[must_use]
pub fn time(table: &Table, contract: &Contract) -> Choice {
    let of_table = words(&table.name.value);
    let score = |column| time_score(column, table, contract, &of_table);
    let scores: Vec<_> = table.columns.iter().map(score).collect();
    let choice = best(table, &scores, DOUBTFUL);
    if let Choice::Column(chosen) = choice {
        // A service level may measure age by the moment of storing, which is not the event's.
        let is_other =
            |at: usize, column: &Column| at != chosen && is_clock(column, table, &contract.clocks);
        let other = table.columns.iter().enumerate().find(|(at, column)| is_other(*at, column));
        let name = other.map(|(_, column)| column.name.value.clone());
        return name.map_or(choice, |name| Choice::Likely(chosen, name));
    }
    if choice != Choice::None {
        return choice;
    }
    // A single time that may be one of storing.
    let score = |column: &Column| {
        let (is_time, words) = (kind(column) == Some(Kind::Time), words(&column.name.value));
        let score = if has(&words, APART) { DOUBTFUL } else { 1 };
        (is_time && !has(&words, NEVER)).then_some(score)
    };
    best(table, &table.columns.iter().map(score).collect::<Vec<_>>(), DOUBTFUL)
}

fn is_clock(column: &Column, table: &Table, clocks: &[Clause<String>]) -> bool {
    let full = format!("{}.{}", table.name.value, column.name.value);
    clocks.iter().any(|clock| clock.value == full || clock.value == column.name.value)
}

/// Whether a table's rows are persons or devices themselves.
fn holds_owners(table: &str) -> bool {
    let words = words(table);
    let is_filling = |word: &&String| {
        let version = word.trim_end_matches(|c: char| c.is_ascii_digit());
        version.is_empty() || OF_TABLES.contains(&version)
    };
    let last = words.iter().rev().find(|word| !is_filling(word));
    last.is_some_and(|word| is_owner(word))
}

fn time_score(
    column: &Column,
    table: &Table,
    contract: &Contract,
    of_table: &[String],
) -> Option<u8> {
    let words = words(&column.name.value);
    let counted = matches!(kind(column), Some(Kind::Integer { .. }))
        && words.last().is_some_and(|word| matches!(word.as_str(), "timestamp" | "ts"));
    if kind(column) != Some(Kind::Time) && !counted {
        return None;
    }
    let tagged = column.tags.iter().any(|tag| {
        let lower = tag.value.to_ascii_lowercase().replace(['_', '-'], "");
        lower.contains("businesstime") || lower.contains("eventtime")
    });
    let measures_age = is_clock(column, table, &contract.clocks);
    let is_stored = has(&words, STORED);
    if measures_age && !is_stored || tagged || is_clock(column, table, &contract.event_times) {
        return Some(3);
    }
    if measures_age {
        return Some(1);
    }
    if has(&words, NEVER) || is_stored || has(&words, APART) {
        return None;
    }
    let is_time = words.last().is_some_and(|last| TIMES.contains(&last.as_str()));
    let single = |word: &String| word.strip_suffix('s').unwrap_or(word).to_owned();
    let of_rows = words.iter().any(|word| of_table.iter().any(|own| single(own) == single(word)));
    let happens = has(&words, EVENTS) || words.len() == 1 && is_time || of_rows && is_time;
    Some(if happens { 2 } else { 1 })
}

/// The one column with the highest score; the lowest is only asked about.
fn best<T: Copy + Ord>(table: &Table, scores: &[Option<T>], doubtful: T) -> Choice {
    let Some(top) = scores.iter().flatten().max() else { return Choice::None };
    let all: Vec<_> = scores
        .iter()
        .enumerate()
        .filter(|(_, own)| own.as_ref() == Some(top))
        .map(|(at, _)| at)
        .collect();
    match all.as_slice() {
        [only] if *top != doubtful => Choice::Column(*only),
        several => {
            let named = several.iter().filter_map(|at| table.columns.get(*at));
            Choice::Several(named.map(|column| column.name.value.clone()).collect())
        }
    }
}

#[cfg(test)]
mod tests;
