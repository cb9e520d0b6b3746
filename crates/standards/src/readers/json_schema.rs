//! JSON Schema, as a Confluent registry holds it.

use super::{MAX_DEPTH, odcs};
use crate::contract::{Column, Table};
use crate::cursor::{Cursor, Noted};
use crate::sensitivity::{Label, labels, texts};
use crate::tree::Tree;

pub(super) fn is_one(root: &Cursor<'_>) -> bool {
    matches!(root.tree().get("properties"), Some(Tree::Map(_)))
}

/// The schema as one table.
pub(super) fn tables(root: &Cursor<'_>) -> Vec<Table> {
    let mut table = Table {
        at: root.path().to_owned(),
        name: root.first(&["title", "$id"]).and_then(|name| name.noted()).unwrap_or_default(),
        labels: labels(root),
        ..Table::default()
    };
    let above = Above { root, name: "", many: false, optional: false, labels: &[], depth: 0 };
    object(root, &above, &mut table.columns);
    vec![table]
}

/// What a part of an object inherits, and the schema with the definitions.
#[derive(Clone, Copy)]
struct Above<'a, 'b> {
    root: &'b Cursor<'a>,
    name: &'b str,
    many: bool,
    optional: bool,
    labels: &'b [Label],
    depth: usize,
}

fn object<'a>(at: &Cursor<'a>, above: &Above<'a, '_>, found: &mut Vec<Column>) {
    let listed = at.get("required").map(|list| texts(&list)).unwrap_or_default();
    for (name, property) in at.get("properties").iter().flat_map(Cursor::entries) {
        let required = listed.iter().find(|noted| noted.value == name);
        column(name, &property, required, above, found);
    }
}

fn column<'a>(
    name: &str,
    property: &Cursor<'a>,
    required: Option<&Noted<String>>,
    above: &Above<'a, '_>,
    found: &mut Vec<Column>,
) {
    let name =
        if above.name.is_empty() { name.to_owned() } else { format!("{}.{name}", above.name) };
    let property = defined(above.root, property);
    let mut own = labels(&property);
    own.extend_from_slice(above.labels);
    let types = types(&property);
    let is_list = types.iter().any(|word| word.value == "array");
    let mandatory =
        required.filter(|_| !above.optional && !types.iter().any(|t| t.value == "null"));
    found.push(Column {
        at: property.path().to_owned(),
        name: Noted { value: name.clone(), at: String::new() },
        types: types.into_iter().filter(|word| word.value != "null").collect(),
        limits: odcs::limits(&property),
        required: mandatory.map(|noted| Noted { value: true, at: noted.at.clone() }),
        unit: odcs::unit(&property),
        labels: own.clone(),
        tags: property
            .first(&["confluent:tags", "tags"])
            .map(|tags| texts(&tags))
            .unwrap_or_default(),
        many: above.many,
        ..Column::default()
    });
    if above.depth >= MAX_DEPTH {
        return;
    }
    let optional = above.optional || mandatory.is_none();
    let below = Above { name: &name, optional, labels: &own, depth: above.depth + 1, ..*above };
    object(&property, &below, found);
    if let Some(items) = property.get("items").filter(|_| is_list) {
        object(&defined(above.root, &items), &Above { many: true, ..below }, found);
    }
}

/// A property, or what it refers to within the schema.
fn defined<'a>(root: &Cursor<'a>, property: &Cursor<'a>) -> Cursor<'a> {
    let mut at = property.clone();
    for _ in 0..MAX_DEPTH {
        let Some(next) = at.text("$ref") else { break };
        let path = next.value.strip_prefix("#/").map(str::to_owned);
        let target = path.and_then(|path| root.reach(&path.split('/').collect::<Vec<_>>()));
        let Some(target) = target else { break };
        at = target;
    }
    at
}

/// A format such as `date-time`, then the types; of alternatives, all.
fn types(property: &Cursor<'_>) -> Vec<Noted<String>> {
    let format = property
        .text("format")
        .filter(|f| matches!(f.value.as_str(), "date" | "date-time" | "time"));
    let mut found: Vec<_> = format.into_iter().collect();
    found.extend(property.get("type").map(|kind| texts(&kind)).unwrap_or_default());
    for alternative in property.first(&["oneOf", "anyOf"]).iter().flat_map(Cursor::items) {
        found.extend(alternative.text("type"));
    }
    found
}
