//! Which column names the owner of an event, and which one its time.

use crate::contract::{Column, Contract, Table};
use crate::kinds::{self, Kind};
use crate::words::words;

/// Nouns for those whose data a table holds: people, and the devices that stand for them.
const OWNERS: &[&str] = &[
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
    "device",
    "donor",
    "driver",
    "employee",
    "guest",
    "holder",
    "household",
    "lead",
    "machine",
    "member",
    "meter",
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
    "sensor",
    "staff",
    "student",
    "subject",
    "subscriber",
    "tenant",
    "user",
    "vehicle",
    "visitor",
    "worker",
    "car",
    "phone",
    "tracker",
];
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
    /// Several columns that would do as well.
    Several(Vec<String>),
    /// No column would do.
    None,
}

impl Choice {
    /// The position of the column, if one was found.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        match self {
            Choice::Column(position) => Some(*position),
            _ => None,
        }
    }
}

fn has(words: &[String], list: &[&str]) -> bool {
    let known = |word: &String| {
        let single = word.strip_suffix('s').unwrap_or(word);
        list.contains(&word.as_str()) || list.contains(&single)
    };
    words.iter().any(known)
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

/// The column that names the owner of a row.
#[must_use]
pub fn owner(table: &Table) -> Choice {
    let of_table = has(&words(&table.name.value), OWNERS);
    best(table, |column| {
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
        let names_one = identifies && has(before, OWNERS)
            || words.len() == 1 && (OWNERS.contains(&last.as_str()) || last == "userid");
        match (names_one, is_key) {
            (true, true) => Some(3),
            (true, false) => Some(2),
            (false, true) if of_table && (identifies || has(&words, OWNERS)) => Some(3),
            (false, false) if of_table && words.len() == 1 && identifies => Some(2),
            _ => None,
        }
    })
}

/// The column with the time of a row.
#[must_use]
pub fn time(table: &Table, contract: &Contract) -> Choice {
    let of_table = words(&table.name.value);
    let choice = best(table, |column| time_score(column, table, contract, &of_table));
    if choice != Choice::None {
        return choice;
    }
    // A single time that may be one of storing.
    best(table, |column| {
        let is_time = kind(column) == Some(Kind::Time);
        (is_time && !has(&words(&column.name.value), NEVER)).then_some(1)
    })
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
    let full = format!("{}.{}", table.name.value, column.name.value);
    let clock =
        contract.clocks.iter().any(|clock| clock.value == full || clock.value == column.name.value);
    let tagged = column.tags.iter().any(|tag| {
        let lower = tag.value.to_ascii_lowercase().replace(['_', '-'], "");
        lower.contains("businesstime") || lower.contains("eventtime")
    });
    if clock || tagged {
        return Some(3);
    }
    if has(&words, NEVER) || has(&words, STORED) {
        return None;
    }
    let is_time = words.last().is_some_and(|last| TIMES.contains(&last.as_str()));
    let single = |word: &String| word.strip_suffix('s').unwrap_or(word).to_owned();
    let of_rows = words.iter().any(|word| of_table.iter().any(|own| single(own) == single(word)));
    let happens = has(&words, EVENTS) || words.len() == 1 && is_time || of_rows && is_time;
    Some(if happens { 2 } else { 1 })
}

/// The one column with the highest score.
fn best(table: &Table, score: impl Fn(&Column) -> Option<u8>) -> Choice {
    let scores: Vec<_> = table.columns.iter().map(score).collect();
    let Some(top) = scores.iter().flatten().max() else { return Choice::None };
    let all: Vec<_> = scores
        .iter()
        .enumerate()
        .filter(|(_, own)| own.as_ref() == Some(top))
        .map(|(at, _)| at)
        .collect();
    match all.as_slice() {
        [only] => Choice::Column(*only),
        several => {
            let named = several.iter().filter_map(|at| table.columns.get(*at));
            Choice::Several(named.map(|column| column.name.value.clone()).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::Clause;

    fn noted<T>(value: T) -> Clause<T> {
        Clause { value, at: String::new() }
    }

    fn table(name: &str, columns: &[(&str, &str)]) -> Table {
        let column = |(name, kind): &(&str, &str)| Column {
            name: noted((*name).to_owned()),
            types: vec![noted(kind.trim_end_matches(" key").to_owned())],
            key: kind.ends_with(" key").then(|| noted(true)),
            ..Column::default()
        };
        let columns = columns.iter().map(column).collect();
        Table { name: noted(name.to_owned()), columns, ..Table::default() }
    }

    fn found(choice: Choice, table: &Table) -> String {
        match choice {
            Choice::Column(at) => table.columns[at].name.value.clone(),
            Choice::Several(names) => names.join("|"),
            Choice::None => "-".to_owned(),
        }
    }

    #[test]
    fn owner_and_time_are_found_where_they_can_be() {
        let text = "string";
        for (table, owner_is, time_is) in [
            (
                table(
                    "orders",
                    &[
                        ("order_id", "string key"),
                        ("order_timestamp", "timestamp"),
                        ("customer_id", text),
                        ("processed_timestamp", "timestamp"),
                    ],
                ),
                "customer_id",
                "order_timestamp",
            ),
            (
                table("users", &[("id", "string key"), ("last_login", "timestamp")]),
                "id",
                "last_login",
            ),
            (table("User", &[("firstName", text), ("age", "int")]), "-", "-"),
            (table("Client", &[("id", text), ("countryCode", text)]), "id", "-"),
            (
                table("trips", &[("driverId", text), ("riderId", text), ("ts", "long")]),
                "driverId|riderId",
                "ts",
            ),
            (table("line_items", &[("order_id", text), ("number_of_users", "int")]), "-", "-"),
            (table("people", &[("person_id", text), ("date_of_birth", "date")]), "person_id", "-"),
            (
                table("a", &[("created_at", "timestamp"), ("updated_at", "timestamp")]),
                "-",
                "created_at|updated_at",
            ),
        ] {
            assert_eq!(found(owner(&table), &table), owner_is, "{}", table.name.value);
            assert_eq!(
                found(time(&table, &Contract::default()), &table),
                time_is,
                "{}",
                table.name.value
            );
        }
    }
}
