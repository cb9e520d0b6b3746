//! What became of each part of a contract. Every leaf is listed before anything is read, so a
//! part that no reader knows is listed as not carried and never lost.

use crate::cursor::Cursor;
use crate::reasons;
use crate::tree::Tree;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// Keys of lists whose items are properties, tables or rules.
const IN_LISTS: &[&str] = &[
    "properties",
    "fields",
    "columns",
    "tables",
    "models",
    "seeds",
    "snapshots",
    "quality",
    "tests",
    "data_tests",
    "constraints",
    "domainRules",
    "migrationRules",
    "encodingRules",
    "measures",
    "dimensions",
    "entities",
    "metrics",
];
/// Keys of maps whose entries are.
const IN_MAPS: &[&str] = &["properties", "patternProperties", "fields", "models"];

/// One part of a contract and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Keys and item numbers (from 0) from the root, as `schema[0].properties[1].tags[0]`.
    pub path: String,
    /// The table and the property that it belongs to, as the contract names them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub of: String,
    /// What it became, or why nothing.
    pub why: String,
}

/// Every part of a contract, with a verdict or none yet.
#[derive(Debug, Default)]
pub struct Inventory {
    parts: Vec<Part>,
    places: HashMap<String, usize>,
    names: HashMap<String, String>,
}

/// What a part is of the part that it stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PartKind {
    /// A property, a table or a rule.
    Whole,
    /// Any other item of a list.
    Item,
    /// Any other value of a key.
    Entry,
}

#[derive(Debug)]
struct Part {
    path: String,
    /// Whether it is listed even if nobody judges it: a leaf, a property, a rule.
    is_listed: bool,
    carried: Reasons,
    left: Reasons,
    otherwise: String,
}

/// Distinct reasons in their order. A part that counts for many properties has many.
#[derive(Debug, Default)]
struct Reasons {
    list: Vec<String>,
    known: HashSet<String>,
}

impl Reasons {
    fn add(&mut self, why: String) {
        if self.known.insert(why.clone()) {
            self.list.push(why);
        }
    }

    fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl Inventory {
    /// All parts of a contract, in its order, without verdicts.
    #[must_use]
    pub fn of(root: &Tree) -> Inventory {
        let mut inventory = Inventory::default();
        inventory.list(&Cursor::root(root), &mut Vec::new(), PartKind::Entry);
        inventory
    }

    fn list<'a>(&mut self, at: &Cursor<'a>, keys: &mut Vec<&'a str>, kind: PartKind) {
        self.places.insert(at.path().to_owned(), self.parts.len());
        self.parts.push(Part {
            path: at.path().to_owned(),
            is_listed: kind == PartKind::Whole || at.tree().is_leaf(),
            carried: Reasons::default(),
            left: Reasons::default(),
            otherwise: reasons::of(keys).to_owned(),
        });
        let holds = |wholes: &[&str]| keys.last().is_some_and(|key| wholes.contains(key));
        let item = if holds(IN_LISTS) { PartKind::Whole } else { PartKind::Item };
        // The entries of an item are its own parts, and not those of the list's key.
        let is_map = holds(IN_MAPS) && kind == PartKind::Entry;
        let entry = if is_map { PartKind::Whole } else { PartKind::Entry };
        for item_at in at.items() {
            self.list(&item_at, keys, item);
        }
        for (key, value) in at.entries() {
            keys.push(key);
            self.list(&value, keys, entry);
            keys.pop();
        }
    }

    /// Whether a part at or below `path` became something.
    #[must_use]
    pub fn carries_below(&self, path: &str) -> bool {
        let Some(first) = self.places.get(path).copied() else { return false };
        let mut below = self.parts.iter().skip(first).take_while(|part| holds(path, &part.path));
        below.any(|part| !part.carried.is_empty() && part.left.is_empty())
    }

    /// The part at `path` became something in the written files.
    pub fn carry(&mut self, path: &str, why: impl Into<String>) {
        self.note(path, why.into(), true);
    }

    /// The part at `path` became nothing, or not in all places where it counts.
    pub fn leave(&mut self, path: &str, why: impl Into<String>) {
        self.note(path, why.into(), false);
    }

    /// The part at `path`, if it has no verdict by the end, became nothing for this reason.
    pub fn leave_unless_carried(&mut self, path: &str, why: &str) {
        let part = self.places.get(path).and_then(|place| self.parts.get_mut(*place));
        if let Some(part) = part {
            why.clone_into(&mut part.otherwise);
        }
    }

    /// The same for every part at and below `path`, which stand behind each other.
    pub fn leave_rest(&mut self, path: &str, why: &str) {
        let Some(first) = self.places.get(path).copied() else { return };
        let below = self.parts.iter_mut().skip(first).take_while(|part| holds(path, &part.path));
        below.for_each(|part| why.clone_into(&mut part.otherwise));
    }

    fn note(&mut self, path: &str, why: String, carried: bool) {
        let part = self.places.get(path).and_then(|place| self.parts.get_mut(*place));
        if let Some(part) = part {
            let list = if carried { &mut part.carried } else { &mut part.left };
            list.add(why);
        }
    }

    /// Names what the part at `path` and those below it belong to.
    pub fn name(&mut self, path: &str, name: String) {
        self.names.insert(path.to_owned(), name);
    }

    /// The parts that are carried, and those that are not, in the contract's order. Each leaf
    /// is in exactly one list. So is each other part with a verdict. A part that counts in
    /// several places, and is not carried in one of them, is not carried.
    #[must_use]
    pub fn close(self) -> (Vec<Entry>, Vec<Entry>) {
        let Inventory { parts, names, .. } = self;
        let holders = holders(&parts);
        let (mut carried, mut left) = (Vec::new(), Vec::new());
        for part in &parts {
            let judged = !part.carried.is_empty() || !part.left.is_empty();
            if !part.is_listed && !judged {
                continue;
            }
            let is_carried = judged && part.left.is_empty();
            let why = match (judged, is_carried) {
                (false, _) if holders.contains(part.path.as_str()) => PARTS.to_owned(),
                (false, _) => part.otherwise.clone(),
                (true, true) => part.carried.list.join("; "),
                (true, false) => part.left.list.join("; "),
            };
            let of = owner(&names, &part.path);
            let path = if part.path.is_empty() { "$".to_owned() } else { part.path.clone() };
            let entry = Entry { path, of, why };
            if is_carried { carried.push(entry) } else { left.push(entry) }
        }
        (carried, left)
    }
}

const PARTS: &str = "not carried as a whole, but parts of it are";

/// The paths of all parts that hold a carried one.
fn holders(parts: &[Part]) -> HashSet<&str> {
    let mut found = HashSet::new();
    for part in parts.iter().filter(|part| !part.carried.is_empty() && part.left.is_empty()) {
        let mut path = part.path.as_str();
        while let Some(outer) = path.rfind(['.', '[']).and_then(|end| path.get(..end)) {
            if !found.insert(outer) {
                break;
            }
            path = outer;
        }
    }
    found
}

/// Whether the part at `outer` is or holds the one at `path`.
fn holds(outer: &str, path: &str) -> bool {
    let rest = path.strip_prefix(outer);
    rest.is_some_and(|rest| outer.is_empty() || rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The name of the innermost named part that holds `path`.
fn owner(names: &HashMap<String, String>, path: &str) -> String {
    let mut outer = Some(path);
    while let Some(at) = outer {
        if let Some(name) = names.get(at) {
            return name.clone();
        }
        outer = at.rfind(['.', '[']).and_then(|end| at.get(..end));
    }
    names.get("").cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_properties_tables_and_rules_are_listed_as_wholes() {
        let paths = |yaml: &str| {
            let (_, left) = Inventory::of(&Tree::parse(yaml).unwrap()).close();
            left.into_iter().map(|entry| entry.path).collect::<Vec<_>>()
        };
        let yaml = "models: [{columns: [{meta: {x: 1}}]}]";
        let wholes = ["models[0]", "models[0].columns[0]", "models[0].columns[0].meta.x"];
        assert_eq!(paths(yaml), wholes);
        let yaml = "models: {t: {fields: {a: {x: 1}}}}";
        assert_eq!(paths(yaml), ["models.t", "models.t.fields.a", "models.t.fields.a.x"]);
    }

    #[test]
    fn every_leaf_is_in_exactly_one_list() {
        let tree =
            Tree::parse("a: {b: 1, c: [2, {d: 3}], e: [], f: }\ng: x\nquality: [{x: 1}, {y: 1}]\n")
                .unwrap();
        let mut inventory = Inventory::of(&tree);
        inventory.carry("a.b", "kept");
        inventory.leave("a.c[1]", "a thing with parts");
        inventory.carry("a.c[0]", "kept here");
        inventory.leave("a.c[0]", "but not there");
        inventory.carry("a.nowhere", "ignored");
        inventory.carry("quality[0].x", "kept");
        inventory.name("a.c", "inner".into());
        inventory.name("a", "outer".into());
        inventory.leave_rest("a.c[1]", "rest");
        let (carried, left) = inventory.close();
        let paths = |list: &[Entry]| list.iter().map(|e| e.path.clone()).collect::<Vec<_>>();
        assert_eq!(paths(&carried), ["a.b", "quality[0].x"]);
        let rules = ["quality[0]", "quality[1]", "quality[1].y"];
        let rest = ["a.c[0]", "a.c[1]", "a.c[1].d", "a.e", "a.f", "g"];
        assert_eq!(paths(&left), [&rest[..], &rules].concat());
        assert!(left[6].why.ends_with("but parts of it are"));
        assert_eq!((left[0].why.as_str(), left[0].of.as_str()), ("but not there", "inner"));
        assert_eq!((left[2].why.as_str(), left[2].of.as_str()), ("rest", "inner"));
        assert_eq!((left[3].why == "rest", left[3].of.as_str()), (false, "outer"));
    }
}
