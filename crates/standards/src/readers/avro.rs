//! Avro schemas, with the tags of a Confluent registry.

use super::{MAX_DEPTH, odcs};
use crate::contract::{Column, Limits, Table};
use crate::cursor::{Cursor, Noted};
use crate::sensitivity::{Label, labels, of_tags, texts};
use crate::tree::Tree;

/// The key of tags in a Confluent registry.
const TAGS: &str = "confluent:tags";

pub(super) fn is_one(root: &Cursor<'_>) -> bool {
    !records(root).is_empty()
}

/// A table for each record: the schema itself, or the members of a union.
pub(super) fn tables(root: &Cursor<'_>) -> Vec<Table> {
    let mut names = Vec::new();
    define(root, &mut names, 0);
    records(root).iter().map(|record| table(record, &names)).collect()
}

fn records<'a>(root: &Cursor<'a>) -> Vec<Cursor<'a>> {
    let is_record = |at: &Cursor<'_>| {
        at.text("type").is_some_and(|kind| matches!(kind.value.as_str(), "record" | "error"))
            && matches!(at.tree().get("fields"), Some(Tree::List(_)))
    };
    root.one_or_items().into_iter().filter(is_record).collect()
}

/// Named types, under their name with and without namespace.
type Definitions<'a> = Vec<(String, Cursor<'a>)>;

fn define<'a>(at: &Cursor<'a>, names: &mut Definitions<'a>, depth: usize) {
    if depth > 2 * MAX_DEPTH {
        return;
    }
    if let (Some(name), Some(_)) = (at.text("name"), at.text("type")) {
        let namespace = at.text("namespace").map(|own| format!("{}.{}", own.value, name.value));
        names.extend(namespace.map(|full| (full, at.clone())));
        names.push((name.value, at.clone()));
    }
    for item in at.items() {
        define(&item, names, depth + 1);
    }
    for key in ["type", "fields", "items", "values"] {
        if let Some(inner) = at.get(key) {
            define(&inner, names, depth + 1);
        }
    }
}

fn table(record: &Cursor<'_>, names: &Definitions<'_>) -> Table {
    let mut table = Table {
        at: record.path().to_owned(),
        name: record.text("name").unwrap_or_default(),
        labels: labels(record),
        ..Table::default()
    };
    let above = Above { names, name: "", many: false, optional: None, labels: &[], depth: 0 };
    for field in record.get("fields").iter().flat_map(Cursor::items) {
        columns(&field, &above, &mut table.columns);
    }
    table
}

/// What a field of an inner record inherits.
#[derive(Clone, Copy)]
struct Above<'a, 'b> {
    names: &'b Definitions<'a>,
    name: &'b str,
    many: bool,
    optional: Option<&'b Noted<bool>>,
    labels: &'b [Label],
    depth: usize,
}

/// What the type of a field comes down to.
#[derive(Default)]
struct Resolved<'a> {
    types: Vec<Noted<String>>,
    limits: Limits,
    optional: Option<Noted<bool>>,
    record: Option<Cursor<'a>>,
    many: bool,
    tags: Vec<Noted<String>>,
}

fn columns<'a>(field: &Cursor<'a>, above: &Above<'a, '_>, found: &mut Vec<Column>) {
    let mut name = field.text("name").unwrap_or_default();
    if !above.name.is_empty() {
        name.value = format!("{}.{}", above.name, name.value);
    }
    let mut resolved = Resolved::default();
    if let Some(kind) = field.get("type") {
        resolve(&kind, above.names, &mut resolved, 0);
    }
    let mut labels = labels(field);
    labels.extend(of_tags(&resolved.tags));
    labels.extend_from_slice(above.labels);
    let mut tags = field.get(TAGS).map(|tags| texts(&tags)).unwrap_or_default();
    tags.append(&mut resolved.tags);
    let optional = resolved.optional.or_else(|| above.optional.cloned());
    let required = optional.as_ref().map(|noted| Noted { value: false, at: noted.at.clone() });
    let (wide, inner) = (resolved.many || above.many, resolved.record.clone());
    found.push(Column {
        at: field.path().to_owned(),
        name: name.clone(),
        types: resolved.types,
        limits: resolved.limits,
        required: required.or(Some(Noted { value: true, at: String::new() })),
        unit: odcs::unit(field),
        labels: labels.clone(),
        tags,
        many: wide,
        ..Column::default()
    });
    let Some(record) = inner.filter(|_| above.depth < MAX_DEPTH) else { return };
    let (name, optional) = (name.value.as_str(), optional.as_ref());
    let below =
        Above { name, many: wide, optional, labels: &labels, depth: above.depth + 1, ..*above };
    for part in record.get("fields").iter().flat_map(Cursor::items) {
        columns(&part, &below, found);
    }
}

fn resolve<'a>(kind: &Cursor<'a>, names: &Definitions<'a>, found: &mut Resolved<'a>, depth: usize) {
    match kind.tree() {
        Tree::List(_) => union(kind, names, found, depth),
        Tree::Map(_) => complex(kind, names, found, depth),
        _ => {
            let Some(word) = kind.noted() else { return };
            let named = names.iter().find(|(name, _)| *name == word.value);
            match named.filter(|_| depth < MAX_DEPTH) {
                Some((_, definition)) => complex(definition, names, found, depth + 1),
                None => found.types.push(Noted { value: avro_word(&word.value), at: word.at }),
            }
        }
    }
}

/// A 32-bit number is one here, which it need not be elsewhere.
fn avro_word(word: &str) -> String {
    if word == "int" { "avro:int".to_owned() } else { word.to_owned() }
}

fn union<'a>(kind: &Cursor<'a>, names: &Definitions<'a>, found: &mut Resolved<'a>, depth: usize) {
    let mut others = Vec::new();
    for member in kind.items() {
        match member.noted() {
            Some(word) if word.value == "null" => {
                found.optional = Some(Noted { value: true, at: word.at });
            }
            _ if *member.tree() == Tree::Null => {}
            _ => others.push(member),
        }
    }
    match others.as_slice() {
        [other] => resolve(other, names, found, depth),
        _ => {
            // Values of several types: none of them can be relied on.
            let members = others.iter().filter_map(Cursor::noted);
            found.types.extend(members.map(|n| Noted { value: "union".to_owned(), at: n.at }));
        }
    }
}

fn complex<'a>(kind: &Cursor<'a>, names: &Definitions<'a>, found: &mut Resolved<'a>, depth: usize) {
    found.tags.extend(kind.get(TAGS).map(|tags| texts(&tags)).unwrap_or_default());
    let logical = kind.text("logicalType");
    if logical.as_ref().is_some_and(|logical| logical.value == "decimal") {
        found.limits.precision = kind.text("precision");
        found.limits.scale = kind.text("scale");
    }
    found.types.extend(logical);
    let Some(inner) = kind.get("type") else { return };
    let Some(word) = inner.noted() else { return resolve(&inner, names, found, depth + 1) };
    match word.value.as_str() {
        "record" | "error" => found.record = Some(kind.clone()),
        "array" | "map" => {
            found.many = true;
            found.types.push(Noted { value: "array".to_owned(), at: word.at });
            let items = kind.first(&["items", "values"]).filter(|_| depth < MAX_DEPTH);
            if let Some(items) = items {
                let mut inside = Resolved::default();
                resolve(&items, names, &mut inside, depth + 1);
                found.record = inside.record;
                found.tags.extend(inside.tags);
            }
            return;
        }
        "fixed" => return found.types.push(Noted { value: "bytes".to_owned(), at: word.at }),
        _ => {}
    }
    found.types.push(Noted { value: avro_word(&word.value), at: word.at });
}
