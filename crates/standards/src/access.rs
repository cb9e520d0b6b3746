//! Lists of those who may read, under the names that many tools have for them.

use crate::cursor::{Clause, Cursor};
use crate::tree::Tree;
use crate::words::words;

/// Those who may read what a list stands at. An empty list names nobody who can be named here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReaderList {
    /// Where it stands.
    pub at: String,
    /// Their names.
    pub names: Vec<Clause<String>>,
}

/// Keys of such lists, without what joins their words.
const LISTS: &[&str] = &[
    "roles",
    "grants",
    "permissions",
    "readers",
    "viewers",
    "acl",
    "accesscontrol",
    "accesscontrols",
    "accesslist",
    "accessroles",
    "accessgroups",
    "accessusers",
    "readroles",
    "readgroups",
    "readaccess",
    "allowedreaders",
    "allowedgroups",
    "allowedroles",
    "allowedteams",
    "allowedusers",
    "permittedgroups",
    "permittedroles",
    "permittedusers",
    "authorizedgroups",
    "authorizedroles",
    "authorizedusers",
];
/// Parts that are read on their own, or are no statements.
const APART: &[&str] = &[
    "properties",
    "fields",
    "items",
    "columns",
    "tables",
    "schema",
    "models",
    "sources",
    "seeds",
    "snapshots",
    "servers",
    "team",
    "stakeholders",
    "quality",
    "tests",
    "data_tests",
    "definitions",
    "$defs",
    "example",
    "examples",
    "enum",
];
/// Keys that name one reader, the most telling first.
const NAMES: &[&str] = &["role", "group", "user", "username", "principal", "team", "name"];
/// Keys that say what a reader may do.
const ACCESS: &[&str] = &["access", "permission", "permissions", "privilege", "privileges"];
/// Keys that name nobody.
const NOTES: &[&str] = &["description", "comment", "reason", "owner", "type", "id"];
/// Words for what is no reading; all others count as reading.
const NOT_READING: &[&str] = &[
    "write", "writer", "writers", "w", "insert", "append", "none", "denied", "deny", "no", "false",
];
/// Words that say nothing beside them.
const FILLING: &[&str] = &["access", "only"];
/// Words that name an access and nobody.
const READING: &[&str] = &["read", "reader", "select", "rw", "r", "readwrite", "all", "true"];

/// The lists below a part.
#[must_use]
pub fn lists(at: &Cursor<'_>) -> Vec<ReaderList> {
    let mut found = Vec::new();
    walk(at, &mut found);
    found
}

fn walk(at: &Cursor<'_>, found: &mut Vec<ReaderList>) {
    for item in at.items() {
        walk(&item, found);
    }
    for (key, value) in at.entries().into_iter().filter(|(key, _)| !APART.contains(key)) {
        if is_list(key) {
            found.extend(of(&[value]));
        } else {
            walk(&value, found);
        }
    }
}

fn is_list(key: &str) -> bool {
    let letters = key.chars().filter(|c| c.is_alphanumeric());
    LISTS.contains(&letters.flat_map(char::to_lowercase).collect::<String>().as_str())
}

/// One list of several parts, such as the roles of each server; none if all are empty.
#[must_use]
pub fn of(parts: &[Cursor<'_>]) -> Option<ReaderList> {
    let says = |part: &&Cursor<'_>| *part.tree() != Tree::Null && !is_empty(part.tree());
    let mut parts = parts.iter().filter(says).peekable();
    let mut list = ReaderList { at: parts.peek()?.path().to_owned(), names: Vec::new() };
    parts.for_each(|part| names(part, &mut list.names));
    Some(list)
}

fn is_empty(tree: &Tree) -> bool {
    matches!(tree, Tree::List(_) | Tree::Map(_)) && tree.is_leaf()
}

fn names(at: &Cursor<'_>, found: &mut Vec<Clause<String>>) {
    found.extend(at.noted().filter(|_| !matches!(at.tree(), Tree::Boolean(_))));
    at.items().iter().for_each(|item| names(item, found));
    if let Some(name) = NAMES.iter().find(|key| at.tree().get(key).is_some()) {
        let access = at.first(ACCESS);
        found.extend(at.text(name).filter(|_| access.is_none_or(|access| reads(&access))));
        return;
    }
    for (key, value) in at.entries() {
        let word = words(key).join(" ");
        let says = value.tree().text().filter(|text| {
            let said = words(text).concat();
            READING.contains(&said.as_str()) || !is_reading(text)
        });
        match says {
            // `hr: read`
            Some(access) if is_reading(access) => {
                found.push(Clause { value: key.to_owned(), at: value.path().to_owned() });
            }
            Some(_) => {}
            None if is_reading(&word) && !NOTES.contains(&word.as_str()) => names(&value, found),
            None => {}
        }
    }
}

fn reads(access: &Cursor<'_>) -> bool {
    match access.tree() {
        Tree::List(items) if !items.is_empty() => access.items().iter().any(reads),
        tree => tree.text().is_none_or(is_reading),
    }
}

/// Whether an access is more than writing, or nothing.
fn is_reading(text: &str) -> bool {
    let words = words(text);
    let is = |list: &[&str], word: &String| list.contains(&word.as_str());
    !words.iter().any(|word| is(NOT_READING, word))
        || words.iter().any(|word| !is(NOT_READING, word) && !is(FILLING, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(yaml: &str) -> Vec<Vec<String>> {
        let tree = Tree::parse(yaml).unwrap();
        let names = |list: ReaderList| list.names.into_iter().map(|name| name.value).collect();
        lists(&Cursor::root(&tree)).into_iter().map(names).collect()
    }

    #[test]
    fn each_access_but_writing_reads() {
        for access in [
            "SELECT",
            "READ_ONLY",
            "admin",
            "full",
            "ReadWrite",
            "rw",
            "'Read, Write'",
            "[write, query]",
            "lesen",
            "'no idea'",
            "null",
            "{}",
        ] {
            let yaml = format!("roles: [{{ role: x, access: {access} }}]");
            assert_eq!(found(&yaml), [["x"]], "{access}");
        }
        for access in ["write", "WRITE_ONLY", "insert", "none", "denied", "no access", "[write]"] {
            let yaml = format!("roles: [{{ role: x, access: {access} }}]");
            assert_eq!(found(&yaml), [[""; 0]], "{access}");
        }
    }

    #[test]
    fn lists_of_many_tools_are_found() {
        for (yaml, names) in [
            ("config: {grants: {select: [a, b], insert: [c]}}", &["a", "b"][..]),
            ("config: {+grants: {+select: a}}", &["a"]),
            ("x-security: {bronze: {allowedGroups: [a]}}", &["a"]),
            ("accessControl: {readers: [a], writers: [b]}", &["a"]),
            ("permissions: {a: read, b: write}", &["a"]),
            ("permissions: [{group: a, description: all of them}]", &["a"]),
            ("access_roles: a", &["a"]),
            ("roles: [{role: [l], access: read}, {role: null}, {role: {n: m}}]", &[]),
        ] {
            assert_eq!(found(yaml), [names], "{yaml}");
        }
        for none in ["roles: []", "roles: null", "properties: {readers: {type: int}}", "a: readers"]
        {
            assert!(found(none).is_empty(), "{none}");
        }
    }
}
