//! JSON Schema, as a Confluent registry holds it.

use super::{MAX_COLUMNS, hulls, odcs, pointer, unread};
use crate::contract::{Column, Limits, Table};
use crate::cursor::{Clause, Cursor};
use crate::kinds;
use crate::sensitivity::{Label, labels, texts};
use crate::tree::Tree;

/// Keys that hold definitions.
const DEFINITIONS: &[&str] = &["$defs", "definitions"];
/// Keys of parts that hold for some values.
const CONDITIONS: &[&str] = &["if", "then", "else"];
/// Keys of references that are not followed.
const UNFOLLOWED: &[&str] = &["$dynamicRef", "$recursiveRef"];
/// The most parts that one property is put together from.
const MAX_SOURCES: usize = 64;

pub(super) fn is_one(root: &Cursor<'_>) -> bool {
    let refers =
        root.text("$ref").is_some() && DEFINITIONS.iter().any(|key| root.get(key).is_some());
    let is_list = |key: &&str| matches!(root.tree().get(key), Some(Tree::List(_)));
    let says = root.text("$schema").is_some_and(|noted| noted.value.contains("json-schema.org"));
    matches!(root.tree().get("properties"), Some(Tree::Map(_)))
        || refers
        || says
        || ["allOf", "oneOf", "anyOf"].iter().any(is_list)
}

/// The schema as one table.
pub(super) fn tables(root: &Cursor<'_>) -> Vec<Table> {
    let parts = Parts::of(root, root);
    let named = parts.all().find_map(|part| part.first(&["title", "$id"])?.noted());
    let mut table = Table {
        at: root.path().to_owned(),
        name: named.unwrap_or_default(),
        labels: parts.labels(),
        tags: parts
            .all()
            .filter_map(|part| part.get("confluent:tags"))
            .flat_map(|t| texts(&t))
            .collect(),
        ..Table::default()
    };
    let above =
        Above { root, name: "", many: false, optional: false, labels: &[], within: &[], depth: 0 };
    object(&parts, &above, &mut table.columns);
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
    /// Definitions that it stands in.
    within: &'b [String],
    depth: usize,
}

/// What a property is put together from: itself, what it refers to, and parts of which all, or
/// one, must hold.
#[derive(Default)]
struct Parts<'a> {
    /// All of these hold.
    whole: Vec<Cursor<'a>>,
    /// One of these holds.
    either: Vec<Cursor<'a>>,
    links: Vec<Clause<String>>,
    /// Definitions that are among them.
    targets: Vec<String>,
    /// What is said about what the definitions are part of, or what cannot be followed.
    said: Vec<Label>,
    may_be_null: bool,
}

impl<'a> Parts<'a> {
    fn of(root: &Cursor<'a>, property: &Cursor<'a>) -> Parts<'a> {
        let mut parts = Parts::default();
        let mut waiting = vec![(property.clone(), false)];
        while let Some((part, is_either)) = waiting.pop() {
            if parts.all().any(|other| other.path() == part.path()) {
                continue;
            }
            if parts.whole.len() + parts.either.len() >= MAX_SOURCES {
                parts.said.push(pointer::unknown(&part));
                continue;
            }
            parts.follow(root, &part, is_either, &mut waiting);
            let conditions = CONDITIONS.iter().filter_map(|key| part.get(key));
            waiting.extend(conditions.map(|part| (part, true)));
            let dependent = part.get("dependentSchemas").map(|all| all.entries());
            waiting.extend(dependent.into_iter().flatten().map(|(_, part)| (part, true)));
            let all = part.get("allOf").map(|all| all.items()).unwrap_or_default();
            waiting.extend(all.into_iter().map(|part| (part, is_either)));
            for key in ["oneOf", "anyOf"] {
                let mut any = part.get(key).map(|any| any.items()).unwrap_or_default();
                let before = any.len();
                any.retain(|part| !is_type_null(part));
                parts.may_be_null |= any.len() < before;
                let is_only = any.len() == 1;
                waiting.extend(any.into_iter().map(|part| (part, is_either || !is_only)));
            }
            if is_either { parts.either.push(part) } else { parts.whole.push(part) }
        }
        parts
    }

    /// What a part refers to.
    fn follow(
        &mut self,
        root: &Cursor<'a>,
        part: &Cursor<'a>,
        is_either: bool,
        waiting: &mut Vec<(Cursor<'a>, bool)>,
    ) {
        self.said.extend(
            UNFOLLOWED.iter().filter_map(|key| part.get(key)).map(|at| pointer::unknown(&at)),
        );
        let Some(at) = part.get("$ref") else { return };
        match target(root, &at) {
            Ok((target, around)) => {
                self.targets.push(target.path().to_owned());
                self.links.extend(at.noted());
                self.said.extend(around);
                waiting.push((target, is_either));
            }
            Err(unknown) => self.said.push(unknown),
        }
    }

    fn all(&self) -> impl Iterator<Item = &Cursor<'a>> {
        self.whole.iter().chain(&self.either)
    }

    fn labels(&self) -> Vec<Label> {
        let mut found: Vec<Label> = Vec::new();
        for label in self.all().flat_map(labels).chain(self.said.iter().cloned()) {
            if !found.contains(&label) {
                found.push(label);
            }
        }
        found
    }

    /// A format such as `date-time`, then the types. Values of several kinds are of none.
    fn types(&mut self) -> Vec<Clause<String>> {
        let format = self.all().find_map(|part| {
            part.text("format")
                .filter(|f| matches!(f.value.as_str(), "date" | "date-time" | "time"))
        });
        let stated = self.all().filter_map(|part| part.get("type"));
        let mut types: Vec<_> = stated.flat_map(|kind| texts(&kind)).collect();
        let before = types.len();
        types.retain(|word| word.value != "null");
        self.may_be_null |= types.len() < before;
        let mut kinds: Vec<_> = types.iter().map(|word| kinds::of(&[&word.value])).collect();
        kinds.dedup();
        let are_numbers =
            types.iter().all(|word| matches!(word.value.as_str(), "integer" | "number"));
        if kinds.len() > 1 && !are_numbers {
            types.iter_mut().for_each(|word| "union".clone_into(&mut word.value));
            return types;
        }
        let lists = |part: &Cursor<'_>| part.get("type").is_some_and(|kind| kind.items().len() > 1);
        if !self.either.is_empty() || self.whole.iter().any(lists) {
            // One of them holds, so `number` allows any.
            let is_wide = types.iter().any(|word| word.value == "number");
            types.retain(|word| !is_wide || word.value == "number");
        }
        format.into_iter().chain(types).collect()
    }

    /// The limits of all parts of which all hold, and those that every one of several alternatives has.
    fn limits(&self, root: &Cursor<'a>, left: &mut usize) -> Limits {
        let own = self.whole.iter().map(odcs::limits);
        let mut found = own.fold(Limits::default(), Limits::and);
        for any in self.whole.iter().flat_map(alternatives) {
            let mut each = Vec::new();
            for part in &any {
                // Alternatives within alternatives end somewhere.
                let Some(rest) = left.checked_sub(1) else { return found };
                *left = rest;
                each.push(Parts::of(root, part).limits(root, left));
            }
            found = found.and(hulls::of(each));
        }
        found
    }
}

/// The most alternatives of one property whose limits are read.
const MAX_ALTERNATIVES: usize = 256;

fn is_type_null(part: &Cursor<'_>) -> bool {
    part.text("type").is_some_and(|kind| kind.value == "null")
}

/// The lists of two or more parts of which one must hold, without those that are null.
fn alternatives<'a>(part: &Cursor<'a>) -> Vec<Vec<Cursor<'a>>> {
    let is_null =
        |own: &Cursor<'a>| is_type_null(own) || own.tree().get("const") == Some(&Tree::Null);
    let lists = ["oneOf", "anyOf"].iter().filter_map(|key| part.get(key));
    let lists = lists.map(|any| any.items());
    lists
        // A single part beside null is one that always holds.
        .filter(|any| any.iter().filter(|own| !is_type_null(own)).count() > 1)
        .map(|any| any.into_iter().filter(|own| !is_null(own)).collect())
        .collect()
}

/// What a reference within the schema leads to, and what is said on the way.
fn target<'a>(root: &Cursor<'a>, at: &Cursor<'_>) -> Result<(Cursor<'a>, Vec<Label>), Label> {
    let link = at.tree().text().unwrap_or_default();
    match link.strip_prefix('#') {
        Some("") => Ok((root.clone(), Vec::new())),
        Some(path) if !path.starts_with('/') => {
            let found = anchored(root, path);
            found.map(|found| (found, Vec::new())).ok_or_else(|| pointer::unknown(at))
        }
        _ => pointer::follow(root, at),
    }
}

/// A definition that is called by its anchor.
fn anchored<'a>(root: &Cursor<'a>, name: &str) -> Option<Cursor<'a>> {
    let all = DEFINITIONS.iter().filter_map(|key| root.get(key));
    let mut all = all.flat_map(|own| own.entries());
    let is_called = |own: &Cursor<'_>| {
        let id = own.text("$id").is_some_and(|id| id.value.strip_prefix('#') == Some(name));
        id || own.text("$anchor").is_some_and(|anchor| anchor.value == name)
    };
    all.find(|(_, own)| is_called(own)).map(|(_, own)| own)
}

fn object<'a>(parts: &Parts<'a>, above: &Above<'a, '_>, found: &mut Vec<Column>) {
    let whole = parts.whole.iter().filter_map(|part| part.get("required"));
    let listed: Vec<_> = whole.flat_map(|list| texts(&list)).collect();
    for part in parts.all() {
        let optional = above.optional || parts.either.iter().any(|own| own.path() == part.path());
        let above = Above { optional, ..*above };
        for (name, property) in part.get("properties").iter().flat_map(Cursor::entries) {
            let required = listed.iter().find(|noted| noted.value == name);
            column(name, &property, required, &above, found);
        }
    }
}

fn column<'a>(
    name: &str,
    property: &Cursor<'a>,
    required: Option<&Clause<String>>,
    above: &Above<'a, '_>,
    found: &mut Vec<Column>,
) {
    if found.len() >= MAX_COLUMNS {
        return;
    }
    let name =
        if above.name.is_empty() { name.to_owned() } else { format!("{}.{name}", above.name) };
    let mut parts = Parts::of(above.root, property);
    // What is part of itself has no end.
    let is_endless = parts.targets.iter().any(|target| above.within.contains(target));
    let unread = unread(is_endless, above.depth);
    let has_parts = parts.all().any(|part| part.first(&["properties", "items"]).is_some());
    let mut own = parts.labels();
    own.extend_from_slice(above.labels);
    let types = parts.types();
    let is_list = types.iter().any(|word| word.value == "array");
    let mandatory = required.filter(|_| !above.optional && !parts.may_be_null);
    let tags = parts.all().filter_map(|part| part.first(&["confluent:tags", "tags"]));
    found.push(Column {
        at: property.path().to_owned(),
        name: Clause { value: name.clone(), at: "?".to_owned() },
        types,
        limits: parts.limits(above.root, &mut { MAX_ALTERNATIVES }),
        required: mandatory.map(|noted| Clause { value: true, at: noted.at.clone() }),
        unit: parts.all().find_map(odcs::unit),
        labels: own.clone(),
        tags: tags.flat_map(|tags| texts(&tags)).collect(),
        links: parts.links.clone(),
        unread: unread.filter(|_| has_parts),
        many: above.many,
        ..Column::default()
    });
    if unread.is_some() {
        return;
    }
    let optional = above.optional || mandatory.is_none();
    let within: Vec<String> = above.within.iter().chain(&parts.targets).cloned().collect();
    let depth = above.depth + 1;
    let below = Above { name: &name, optional, labels: &own, within: &within, depth, ..*above };
    object(&parts, &below, found);
    if is_list {
        items(&parts, &below, found);
    }
}

/// Columns of the objects in a list.
fn items<'a>(parts: &Parts<'a>, above: &Above<'a, '_>, found: &mut Vec<Column>) {
    for items in parts.all().filter_map(|part| part.get("items")) {
        let items = Parts::of(above.root, &items);
        if items.targets.iter().all(|target| !above.within.contains(target)) {
            let within: Vec<String> = above.within.iter().chain(&items.targets).cloned().collect();
            let labels: Vec<Label> = above.labels.iter().cloned().chain(items.labels()).collect();
            object(
                &items,
                &Above { many: true, within: &within, labels: &labels, ..*above },
                found,
            );
        }
    }
}
