//! Avro schemas, with the tags of a Confluent registry.

use super::{MAX_COLUMNS, MAX_DEPTH, odcs, pointer};
use crate::contract::{Column, Limits, Table};
use crate::cursor::{Clause, Cursor};
use crate::sensitivity::{Label, labels, of_tags, texts};
use crate::tree::Tree;
use std::collections::HashMap;

/// The key of tags in a Confluent registry.
const TAGS: &str = "confluent:tags";

pub(super) fn is_one(root: &Cursor<'_>) -> bool {
    !records(root).is_empty()
}

/// A table for each record: the schema itself, or the members of a union.
pub(super) fn tables(root: &Cursor<'_>) -> Vec<Table> {
    let mut names = Definitions::default();
    define(root, "", &mut names, 0);
    records(root).iter().map(|record| table(record, &names)).collect()
}

fn records<'a>(root: &Cursor<'a>) -> Vec<Cursor<'a>> {
    let is_record = |at: &Cursor<'_>| {
        at.text("type").is_some_and(|kind| matches!(kind.value.as_str(), "record" | "error"))
            && matches!(at.tree().get("fields"), Some(Tree::List(_)))
    };
    root.one_or_items().into_iter().filter(is_record).collect()
}

/// Named types.
#[derive(Default)]
struct Definitions<'a> {
    /// Under their full names. A name that is defined twice has several.
    types: HashMap<String, Vec<Cursor<'a>>>,
    /// The full names, by the places of the types.
    names: HashMap<String, String>,
}

/// Named types, and the namespace of the type in which a name stands.
#[derive(Clone, Copy)]
struct Scope<'a, 'b> {
    names: &'b Definitions<'a>,
    namespace: &'b str,
}

impl<'a> Scope<'a, '_> {
    /// The types that a word names. A name without namespace is first looked for in that of the type
    /// around it: elsewhere it names another type, which may be released more widely.
    fn types(&self, word: &str) -> &[Cursor<'a>] {
        let around = format!("{}.{word}", self.namespace);
        let is_bare = !word.contains('.') && !self.namespace.is_empty();
        let near = self.names.types.get(&around).filter(|_| is_bare);
        near.or_else(|| self.names.types.get(word)).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Collects named types. A name without namespace is in that of the type around it.
fn define<'a>(at: &Cursor<'a>, namespace: &str, names: &mut Definitions<'a>, depth: usize) {
    if depth > 2 * MAX_DEPTH {
        return;
    }
    let mut inner = namespace.to_owned();
    let kind = at.text("type").map(|kind| kind.value).unwrap_or_default();
    if let Some(name) = at.text("name").filter(|_| NAMED.contains(&kind.as_str())) {
        let full = full_name(at, &name.value, namespace);
        namespace_of(&full).clone_into(&mut inner);
        names.types.entry(full.clone()).or_default().push(at.clone());
        names.names.insert(at.path().to_owned(), full);
    }
    for item in at.items() {
        define(&item, &inner, names, depth + 1);
    }
    for key in ["type", "fields", "items", "values"] {
        if let Some(part) = at.get(key) {
            define(&part, &inner, names, depth + 1);
        }
    }
}

/// Types that have names.
const NAMED: &[&str] = &["record", "error", "enum", "fixed"];
/// Types whose names no other type can have.
const PRIMITIVE: &[&str] =
    &["null", "boolean", "int", "long", "float", "double", "bytes", "string"];

fn namespace_of(full: &str) -> &str {
    full.rsplit_once('.').map(|(space, _)| space).unwrap_or_default()
}

fn full_name(at: &Cursor<'_>, name: &str, around: &str) -> String {
    let stated = at.text("namespace").map(|own| own.value);
    let namespace = stated.unwrap_or_else(|| around.to_owned());
    if name.contains('.') || namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}.{name}")
    }
}

fn table(record: &Cursor<'_>, names: &Definitions<'_>) -> Table {
    let mut table = Table {
        at: record.path().to_owned(),
        name: record.text("name").unwrap_or_default(),
        labels: labels(record),
        tags: record.get(TAGS).map(|tags| texts(&tags)).unwrap_or_default(),
        ..Table::default()
    };
    let full = full_name(record, &table.name.value, "");
    let above = Above {
        names,
        name: "",
        record: &full,
        many: false,
        optional: None,
        labels: &[],
        within: &[],
        depth: 0,
    };
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
    /// The full name of the record that it is a field of.
    record: &'b str,
    many: bool,
    optional: Option<&'b Clause<bool>>,
    labels: &'b [Label],
    /// Records that it stands in.
    within: &'b [String],
    depth: usize,
}

/// What the type of a field comes down to.
#[derive(Default)]
struct FieldType<'a> {
    types: Vec<Clause<String>>,
    limits: Limits,
    optional: Option<Clause<bool>>,
    record: Option<Cursor<'a>>,
    /// The full name of its record.
    record_name: String,
    many: bool,
    tags: Vec<Clause<String>>,
    /// What is said about a named type.
    labels: Vec<Label>,
}

fn columns<'a>(field: &Cursor<'a>, above: &Above<'a, '_>, found: &mut Vec<Column>) {
    if found.len() >= MAX_COLUMNS {
        return;
    }
    let mut name = field.text("name").unwrap_or_default();
    let path = format!("{}.{}", above.record, name.value);
    if !above.name.is_empty() {
        name.value.insert_str(0, &format!("{}.", above.name));
    }
    let mut resolved = FieldType::default();
    if let Some(kind) = field.get("type") {
        let scope = Scope { names: above.names, namespace: namespace_of(above.record) };
        resolve(&kind, scope, &mut resolved, 0);
    }
    let (labels, unread) = (said(field, &resolved, above), unread(&resolved, above));
    let mut tags = field.get(TAGS).map(|tags| texts(&tags)).unwrap_or_default();
    tags.append(&mut resolved.tags);
    let optional = resolved.optional.or_else(|| above.optional.cloned());
    let required = optional.as_ref().map(|noted| Clause { value: false, at: noted.at.clone() });
    let wide = resolved.many || above.many;
    found.push(Column {
        at: field.path().to_owned(),
        name: name.clone(),
        types: resolved.types,
        limits: resolved.limits,
        required: required.or(Some(Clause { value: true, at: "?".to_owned() })),
        unit: odcs::unit(field),
        labels: labels.clone(),
        tags,
        paths: vec![path],
        many: wide,
        unread,
        ..Column::default()
    });
    let Some(record) = resolved.record.filter(|_| unread.is_none()) else { return };
    let within: Vec<String> = above.within.iter().chain([&resolved.record_name]).cloned().collect();
    let below = Above {
        name: &name.value,
        record: &resolved.record_name,
        many: wide,
        optional: optional.as_ref(),
        labels: &labels,
        within: &within,
        depth: above.depth + 1,
        ..*above
    };
    for part in record.get("fields").iter().flat_map(Cursor::items) {
        columns(&part, &below, found);
    }
}

/// Why the parts of a record are not read: one that is part of itself has no end.
fn unread(resolved: &FieldType<'_>, above: &Above<'_, '_>) -> Option<&'static str> {
    let is_endless = above.within.contains(&resolved.record_name);
    super::unread(is_endless, above.depth).filter(|_| resolved.record.is_some())
}

/// What is said about a field, its type and all that it is part of.
fn said(field: &Cursor<'_>, resolved: &FieldType<'_>, above: &Above<'_, '_>) -> Vec<Label> {
    let own = labels(field).into_iter().chain(of_tags(&resolved.tags));
    own.chain(resolved.labels.iter().chain(above.labels).cloned()).collect()
}

fn resolve<'a>(kind: &Cursor<'a>, scope: Scope<'a, '_>, found: &mut FieldType<'a>, depth: usize) {
    match kind.tree() {
        Tree::List(_) => union(kind, scope, found, depth),
        Tree::Map(_) => complex(kind, scope, found, depth),
        _ => {
            let Some(word) = kind.noted() else { return };
            let is_own = !PRIMITIVE.contains(&word.value.as_str());
            let named = if is_own && depth < MAX_DEPTH {
                scope.types(&word.value)
            } else {
                Default::default()
            };
            match named.split_first() {
                Some((named, others)) => {
                    found.labels.extend(labels(named));
                    // Nobody knows which of several types of one name is meant.
                    found.labels.extend(others.first().map(|_| pointer::unknown(kind)));
                    complex(named, scope, found, depth + 1);
                }
                None => found.types.push(Clause { value: avro_word(&word.value), at: word.at }),
            }
        }
    }
}

/// A 32-bit number is one here, which it need not be elsewhere.
fn avro_word(word: &str) -> String {
    if word == "int" { "avro:int".to_owned() } else { word.to_owned() }
}

fn union<'a>(kind: &Cursor<'a>, scope: Scope<'a, '_>, found: &mut FieldType<'a>, depth: usize) {
    let mut others = Vec::new();
    for member in kind.items() {
        match member.noted() {
            Some(word) if word.value == "null" => {
                found.optional = Some(Clause { value: true, at: word.at });
            }
            _ if *member.tree() == Tree::Null => {}
            _ => others.push(member),
        }
    }
    match others.as_slice() {
        [other] => resolve(other, scope, found, depth),
        _ => {
            // Values of several types: none of them can be relied on.
            let members = others.iter().filter_map(Cursor::noted);
            found.types.extend(members.map(|n| Clause { value: "union".to_owned(), at: n.at }));
        }
    }
}

fn complex<'a>(kind: &Cursor<'a>, scope: Scope<'a, '_>, found: &mut FieldType<'a>, depth: usize) {
    found.tags.extend(kind.get(TAGS).map(|tags| texts(&tags)).unwrap_or_default());
    let logical = kind.text("logicalType");
    if logical.as_ref().is_some_and(|logical| logical.value == "decimal") {
        found.limits.precision = kind.text("precision");
        found.limits.scale = kind.text("scale");
    }
    found.types.extend(logical);
    let Some(inner) = kind.get("type") else { return };
    let Some(word) = inner.noted() else { return resolve(&inner, scope, found, depth + 1) };
    match word.value.as_str() {
        "record" | "error" => {
            found.record_name = scope.names.names.get(kind.path()).cloned().unwrap_or_default();
            found.record = Some(kind.clone());
        }
        "array" | "map" => {
            found.many = true;
            found.types.push(Clause { value: "array".to_owned(), at: word.at });
            let items = kind.first(&["items", "values"]).filter(|_| depth < MAX_DEPTH);
            if let Some(items) = items {
                let mut inside = FieldType::default();
                resolve(&items, scope, &mut inside, depth + 1);
                (found.record, found.record_name) = (inside.record, inside.record_name);
                found.tags.extend(inside.tags);
                found.labels.extend(inside.labels);
            }
            return;
        }
        "fixed" => return found.types.push(Clause { value: "bytes".to_owned(), at: word.at }),
        _ => {}
    }
    found.types.push(Clause { value: avro_word(&word.value), at: word.at });
}
