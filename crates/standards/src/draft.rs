//! What a table becomes: attributes, each with what may be known of it, and nothing more.

use crate::bounds::{self, Bounds, ScaleOrigin};
use crate::contract::{Column, Contract, Demand, Table};
use crate::inventory::Inventory;
use crate::kinds::{self, Kind};
use crate::names::Names;
use crate::roles::{self, Choice};
use crate::sensitivity::{Label, Level};
use std::collections::HashSet;

/// The most attributes of a schema.
const MAX_ATTRIBUTES: usize = 1000;
/// The greatest length of a text in bytes.
const MAX_TEXT: u64 = 65_535;
/// The most bytes of a character.
const CHARACTER: u64 = 4;

const NO_TYPE: &str =
    "its type is not stated, so it does not become an attribute; state one and import again";
const MANY: &str = "it is in a list, but an event has one value of an attribute";
const MEASURE: &str =
    "computed from many rows, so no event has it; a query computes it from the columns";
const OBJECT: &str = "an object; its parts stand for themselves";
const MOMENT: &str = "a moment other than the event's own; no statistic here is of dates";
const FULL: &str = "a schema has at most 1000 attributes";
const NOT_HERE: &str = "its property is not carried, so nobody learns it";

/// What a table becomes.
#[derive(Debug)]
pub struct Draft {
    /// The schema's name.
    pub name: String,
    /// The table's name, for people.
    pub table: String,
    /// Its attributes.
    pub attributes: Vec<Attribute>,
    /// The column that names an event's owner.
    pub owner: Option<String>,
    /// The column with an event's time.
    pub time: Option<String>,
    /// Questions that the contract leaves open.
    pub unsure: Vec<String>,
}

/// An attribute of a schema.
#[derive(Debug)]
pub struct Attribute {
    /// Its name in the schema.
    pub name: String,
    /// The column's name in the contract.
    pub column: String,
    /// Its values.
    pub values: Values,
    /// Whether an event may lack it.
    pub optional: bool,
    /// Its unit.
    pub unit: Option<String>,
    /// Whether only its values are counted.
    pub counted_only: bool,
    /// Who may learn it.
    pub audience: Audience,
}

/// Who may learn an attribute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audience {
    /// The strictest of all statements; `None` if there are none.
    pub level: Option<Level>,
    /// Whether it is declared internal, perhaps beside something stricter.
    pub is_internal: bool,
}

/// The values of an attribute.
#[derive(Debug)]
pub enum Values {
    /// Numbers.
    Number(Bounds),
    /// True or false.
    Boolean,
    /// Text of so many bytes at most.
    Text(Option<u64>),
}

/// Drafts a schema for a table, and notes what became of each part.
pub fn of(
    table: &Table,
    contract: &Contract,
    names: &mut Names,
    inventory: &mut Inventory,
) -> Draft {
    let named = if table.name.value.is_empty() { &contract.name } else { &table.name.value };
    let name = names.give(named, "Events");
    // For people, a table without a name has that of its schema.
    let shown = if named.trim().is_empty() { name.clone() } else { named.clone() };
    let mut draft = Draft {
        name,
        table: shown.clone(),
        attributes: Vec::new(),
        owner: None,
        time: None,
        unsure: Vec::new(),
    };
    inventory.name(&table.at, shown.clone());
    let (owner, time) = (roles::owner(table), roles::time(table, contract));
    let (mut attributes, objects) = (Names::default(), objects(table));
    for (position, column) in table.columns.iter().enumerate() {
        for at in std::iter::once(&column.at).chain(&column.also) {
            inventory.name(at, format!("{shown}.{}", column.name.value));
        }
        let is = |choice: &Choice| choice.column() == Some(position);
        let read = if is(&owner) {
            Err(
                "names an event's owner: not data, but whose data; write it as `owner` or `stream` into the source file",
            )
        } else if is(&time) {
            Err("an event's time: name it as `time` in the source file")
        } else {
            attribute(table, column, &objects, &mut attributes, inventory)
        };
        match read {
            Ok(_) if draft.attributes.len() >= MAX_ATTRIBUTES => leave(column, FULL, inventory),
            Ok(attribute) => {
                carry(column, &attribute, table, inventory);
                draft.unsure.extend(rounding(&attribute, &shown));
                draft.attributes.push(attribute);
            }
            Err(why) => leave(column, why, inventory),
        }
    }
    close(&mut draft, table, inventory);
    draft.owner = decide(&owner, table, OWNER, &mut draft.unsure, &shown);
    draft.time = decide(&time, table, TIME, &mut draft.unsure, &shown);
    draft
}

/// A number that loses places, since 64 bits do not hold all digits of its type.
fn rounding(own: &Attribute, shown: &str) -> Option<String> {
    let Values::Number(bounds) = &own.values else { return None };
    let places = bounds.scale.filter(|_| bounds.places == ScaleOrigin::Fewer)?;
    Some(format!(
        "{shown}: {} has more digits than 64 bits hold, so `{}` has {places} decimal places, from {} to {}; state narrower limits or fewer places",
        own.column,
        own.name,
        bounds.min_text(),
        bounds.max_text()
    ))
}

const OWNER: (&str, &str) = ("whose data an event is", "owner");
const TIME: (&str, &str) = ("when an event happened", "time");

fn decide(
    choice: &Choice,
    table: &Table,
    (question, key): (&str, &str),
    unsure: &mut Vec<String>,
    shown: &str,
) -> Option<String> {
    match choice {
        Choice::Column(at) => table.columns.get(*at).map(|column| column.name.value.clone()),
        Choice::Likely(at, other) => {
            let name = table.columns.get(*at).map(|column| column.name.value.clone())?;
            unsure.push(format!(
                "{shown}: {name} seems to say {question}, but {other} may say it too; name the right column as `{key}` in the source file"
            ));
            Some(name)
        }
        Choice::Several(names) => {
            let (all, may) = (names.join(", "), if names.len() > 1 { "may each" } else { "may" });
            unsure.push(format!(
                "{shown}: {all} {may} say {question}, or not; name the right column as `{key}` in the source file"
            ));
            None
        }
        Choice::None => {
            unsure.push(format!(
                "{shown}: no column says {question}; name one as `{key}` in the source file"
            ));
            None
        }
    }
}

/// The names of objects that have parts with one value.
fn objects(table: &Table) -> HashSet<&str> {
    let mut found = HashSet::new();
    for column in table.columns.iter().filter(|column| !column.many) {
        let name = column.name.value.as_str();
        found.extend(name.match_indices('.').filter_map(|(at, _)| name.get(..at)));
    }
    found
}

/// The table itself: carried if it has an attribute.
fn close(draft: &mut Draft, table: &Table, inventory: &mut Inventory) {
    if draft.attributes.is_empty() {
        inventory.leave(&table.at, "none of its properties can be an attribute");
        for label in &table.labels {
            inventory
                .leave_unless_carried(&label.at, "there is no attribute that it could hold for");
        }
        draft.unsure.push(format!(
            "{}: the contract names nothing that can be an attribute; the schema counts events and nothing else, and releases nothing",
            draft.table
        ));
        return;
    }
    let why = format!("the schema `{}`", draft.name);
    inventory.carry(&table.at, why.clone());
    inventory.carry(&table.name.at, why);
}

/// The attribute that a column becomes, or why none.
fn attribute(
    table: &Table,
    column: &Column,
    objects: &HashSet<&str>,
    names: &mut Names,
    inventory: &mut Inventory,
) -> Result<Attribute, &'static str> {
    let types: Vec<&str> = column.types.iter().map(|word| word.value.as_str()).collect();
    let has_parts = || objects.contains(column.name.value.as_str());
    if column.many {
        return Err(MANY);
    }
    if column.is_measure {
        return Err(MEASURE);
    }
    let Some(kind) = kinds::of(&types) else {
        return Err(if has_parts() { OBJECT } else { column.unread.unwrap_or(NO_TYPE) });
    };
    let values = match kind {
        Kind::Boolean => Values::Boolean,
        Kind::Text { length } => Values::Text(text_length(length, column, inventory)),
        Kind::Time => return Err(MOMENT),
        Kind::Other(_) if has_parts() => return Err(OBJECT),
        Kind::Other(why) => return Err(column.unread.unwrap_or(why)),
        number => {
            let (bounds, uses) = bounds::of(number, &column.limits)?;
            for own in uses {
                match own.problem {
                    Some(problem) => inventory.leave(&own.at, problem),
                    None => inventory.carry(&own.at, "a bound of the attribute"),
                }
            }
            Values::Number(bounds)
        }
    };
    let is_number = matches!(values, Values::Number(_));
    let unit = column.unit.as_ref().map(|unit| unit.value.clone());
    Ok(Attribute {
        name: names.give(&column.name.value, "column"),
        column: column.name.value.clone(),
        optional: column.in_optional
            || column.required.as_ref().is_none_or(|required| !required.value),
        unit: unit.filter(|unit| unit.len() <= 256 && !unit.contains(char::is_control)),
        counted_only: !is_number || roles::is_identifier(column),
        audience: audience(column, table),
        values,
    })
}

/// The length of a text in bytes, from its length in characters.
fn text_length(of_type: Option<u64>, column: &Column, inventory: &mut Inventory) -> Option<u64> {
    let stated = column.limits.length.as_ref();
    let length = stated.and_then(|noted| noted.value.parse().ok());
    if let (Some(_), Some(noted)) = (length, stated) {
        inventory.carry(&noted.at, "the greatest length of the text, four bytes a character");
    }
    let characters: u64 = [of_type, length].into_iter().flatten().min()?;
    Some(characters.saturating_mul(CHARACTER).clamp(1, MAX_TEXT))
}

fn labels<'a>(column: &'a Column, table: &'a Table) -> impl Iterator<Item = &'a Label> {
    column.labels.iter().chain(&table.labels)
}

fn audience(column: &Column, table: &Table) -> Audience {
    let levels = || labels(column, table).map(|label| label.level);
    Audience { level: levels().max(), is_internal: levels().any(|level| level == Level::Internal) }
}

/// A column that is no attribute: neither it nor what is said about it alone.
fn leave(column: &Column, why: &str, inventory: &mut Inventory) {
    for at in std::iter::once(&column.at).chain(&column.also) {
        inventory.leave_rest(at, why);
        inventory.leave(at, why);
    }
    for label in &column.labels {
        inventory.leave_unless_carried(&label.at, NOT_HERE);
    }
    for rule in &column.rules {
        inventory.leave(&rule.at, NOT_HERE);
    }
}

/// A column that is an attribute.
fn carry(column: &Column, attribute: &Attribute, table: &Table, inventory: &mut Inventory) {
    let name = &attribute.name;
    let became = format!("the attribute `{name}`");
    for at in [&column.at, &column.name.at].into_iter().chain(&column.also) {
        inventory.carry(at, became.clone());
    }
    for word in &column.types {
        inventory.carry(&word.at, format!("the type of `{name}`"));
    }
    for link in &column.links {
        inventory.carry(&link.at, format!("what it leads to is read for `{name}`"));
    }
    match &column.required {
        Some(required) if required.value && attribute.optional => {
            inventory.leave(&required.at, "the object that it is part of may be missing");
        }
        Some(required) if required.value => inventory.carry(&required.at, "each event has a value"),
        Some(required) => inventory.carry(&required.at, "an event may lack a value"),
        None => {}
    }
    if let (Some(noted), Some(_)) = (&column.unit, &attribute.unit) {
        inventory.carry(&noted.at, "the unit of the attribute");
    }
    if let Some(key) = column.key.as_ref().filter(|key| key.value) {
        inventory
            .carry(&key.at, format!("`{name}` is an identifier, so its values are only counted"));
    }
    for label in &column.labels {
        carry_label(label, attribute, name, inventory);
    }
    for label in &table.labels {
        carry_label(label, attribute, "", inventory);
    }
    for rule in &column.rules {
        if rule.demand == Demand::Mandatory && !attribute.optional {
            let why = format!("an event without `{name}` is refused");
            inventory.carry(&rule.at, why.clone());
            rule.kind.iter().for_each(|kind| inventory.carry(kind, why.clone()));
        }
    }
}

const PART: &str = "part of a statement that keeps its property back";

/// A label of the attribute called `name`; without a name, of all of a table.
fn carry_label(label: &Label, attribute: &Attribute, name: &str, inventory: &mut Inventory) {
    let strictest = attribute.audience.level;
    let holds = match label.level {
        Level::Public if strictest == Some(Level::Public) => {
            "released for crowds of at least 10, to the readers if the contract names any; narrower than public"
        }
        Level::Public => {
            let why = "something stricter is said about the same property";
            return inventory.leave_unless_carried(&label.at, why);
        }
        Level::Internal => {
            "released for crowds, to the readers if the contract names any, else to the house"
        }
        Level::Personal => "offered for crowds of at least 1000, and only by owners who choose so",
        Level::Restricted if label.unknown => {
            "not released; it is not understood here and counts as the strictest"
        }
        Level::Restricted => "not released",
    };
    if label.unknown {
        inventory.leave_rest(&label.at, PART);
    }
    let more =
        if Some(label.level) < strictest { ", and something stricter is said too" } else { "" };
    if name.is_empty() {
        inventory.carry(
            &label.at,
            format!("for each property: {holds}, or less if the contract says more about it"),
        );
    } else {
        inventory.carry(&label.at, format!("`{name}`: {holds}{more}"));
    }
}
