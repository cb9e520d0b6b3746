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
    let of_table = holds_owners(&table.name.value);
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
        // `user_type_id` is of a type: the person stands directly before.
        let noun = before.last().filter(|_| identifies);
        let is_one = |list: &[&str]| noun.is_some_and(|noun| has(std::slice::from_ref(noun), list));
        let names_one = is_one(OWNERS)
            || words.len() == 1 && (OWNERS.contains(&last.as_str()) || last == "userid");
        let is_other = names_one && has(before, OTHERS)
            || is_one(OTHERS)
            || is_one(&["owner"]) && before.len() > 1
            || words.len() == 1 && OTHERS.contains(&last.as_str());
        if is_other && !is_key {
            return Some(DOUBTFUL);
        }
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
        let (is_time, words) = (kind(column) == Some(Kind::Time), words(&column.name.value));
        let score = if has(&words, APART) { DOUBTFUL } else { 1 };
        (is_time && !has(&words, NEVER)).then_some(score)
    })
}

/// Whether a table's rows are persons or devices themselves.
fn holds_owners(table: &str) -> bool {
    let words = words(table);
    let is_filling = |word: &&String| {
        let version = word.trim_end_matches(|c: char| c.is_ascii_digit());
        version.is_empty() || OF_TABLES.contains(&version)
    };
    let last = words.iter().rev().find(|word| !is_filling(word));
    last.is_some_and(|word| has(std::slice::from_ref(word), OWNERS))
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
    if has(&words, NEVER) || has(&words, STORED) || has(&words, APART) {
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
        [only] if *top != DOUBTFUL => Choice::Column(*only),
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
            Choice::Several(names) if names.len() == 1 => format!("({})", names.join("")),
            Choice::Several(names) => names.join("|"),
            Choice::None => "-".to_owned(),
        }
    }

    #[test]
    fn the_id_of_something_else_names_no_owner() {
        for (columns, expected) in [
            ("order_id customer_id customer_type_id", "customer_id"),
            ("user_type_id amount", "-"),
            ("customer_address_id zip", "-"),
            ("customer_order_id qty", "-"),
            ("device_type_id reading", "-"),
            ("order_id account_manager_id", "(account_manager_id)"),
            ("sale_id created_by_user_id", "(created_by_user_id)"),
            ("x parent_account_id", "(parent_account_id)"),
            ("x product_owner_id", "(product_owner_id)"),
            ("x referrer", "(referrer)"),
            ("x owner_id", "owner_id"),
            ("billing_customer_id created_by_user_id", "billing_customer_id"),
            ("user_id device_id", "user_id|device_id"),
        ] {
            let all: Vec<_> = columns.split(' ').map(|name| (name, "string")).collect();
            let table = table("sales", &all);
            assert_eq!(found(owner(&table), &table), expected, "{columns}");
        }
        let keyed = [("id", "string key"), ("x", "string")];
        for (name, expected) in [
            ("users", "id"),
            ("dim_customers_v2", "id"),
            ("user_types", "-"),
            ("customer_orders", "-"),
        ] {
            let table = table(name, &keyed);
            assert_eq!(found(owner(&table), &table), expected, "{name}");
        }
    }

    #[test]
    fn a_moment_before_or_after_the_event_is_only_asked_about() {
        for (columns, expected) in [
            ("deleted_at", "(deleted_at)"),
            ("last_login", "(last_login)"),
            ("next_sale_at", "(next_sale_at)"),
            ("created_at", "created_at"),
            ("created_at deleted_at", "created_at"),
            ("last_login sold_at", "sold_at"),
        ] {
            let all: Vec<_> = columns.split(' ').map(|name| (name, "timestamp")).collect();
            let table = table("sales", &all);
            assert_eq!(found(time(&table, &Contract::default()), &table), expected, "{columns}");
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
                "(last_login)",
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
