//! The words and keys of lists of readers, and what their words allow.

use crate::words::words;

/// Keys of such lists, without what joins their words.
pub(super) const LISTS: &[&str] = &[
    "roles",
    "grants",
    "permissions",
    "readers",
    "viewers",
    "consumers",
    "acl",
    "accesscontrol",
    "accesscontrols",
    "readaccess",
    "readableby",
    "accessibleby",
    "visibleto",
    "sharedwith",
    "whitelist",
];
/// Keys that state nothing if they are empty. Any other empty list lets nobody read.
pub(super) const OPTIONAL: &[&str] = &["roles", "grants"];
/// Words before those of `KINDS`, as in `allowedGroups`.
pub(super) const GRANTING: &[&str] = &[
    "allowed",
    "allow",
    "permitted",
    "authorized",
    "authorised",
    "approved",
    "granted",
    "access",
    "read",
    "reader",
    "select",
];
/// Words for those who are on a list.
pub(super) const KINDS: &[&str] = &[
    "group",
    "groups",
    "role",
    "roles",
    "team",
    "teams",
    "user",
    "users",
    "reader",
    "readers",
    "viewer",
    "viewers",
    "consumer",
    "consumers",
    "principal",
    "principals",
    "member",
    "members",
    "list",
];
/// Words before a list's own name that say what it is about.
pub(super) const PREFIXES: &[&str] = &["x", "data", "dataset", "table", "column", "field"];
/// Parts that are read on their own, or are no statements.
pub(crate) const APART: &[&str] = &[
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
pub(super) const NAMES: &[&str] =
    &["user", "username", "principal", "group", "team", "role", "name"];
/// Keys that say what a reader may do.
pub(super) const ACCESS: &[&str] = &[
    "access",
    "accesslevel",
    "permission",
    "permissions",
    "privilege",
    "privileges",
    "right",
    "rights",
    "action",
    "actions",
    "operation",
    "operations",
    "effect",
    "level",
    "mode",
    "status",
    "type",
];
/// Keys that name nobody.
pub(super) const NOTES: &[&str] =
    &["description", "comment", "reason", "owner", "type", "id", "status"];
/// Words for what is no reading; all others count as reading.
pub(super) const WRITING: &[&str] = &[
    "write",
    "writes",
    "writer",
    "writers",
    "w",
    "insert",
    "append",
    "update",
    "delete",
    "truncate",
    "modify",
    "upsert",
    "merge",
    "create",
    "alter",
    "drop",
    "ownership",
];
/// Words that take all access away.
pub(super) const DENYING: &[&str] = &[
    "deny",
    "denied",
    "none",
    "false",
    "revoke",
    "revoked",
    "forbidden",
    "prohibited",
    "block",
    "blocked",
    "disabled",
    "exclude",
    "excluded",
    "except",
    "banned",
    "denylist",
    "blocklist",
    "blacklist",
];
/// Words that deny what follows.
pub(super) const NEGATIONS: &[&str] = &["no", "not", "non", "without", "never", "cannot"];
/// Words that say nothing beside them.
pub(super) const FILLING: &[&str] =
    &["access", "only", "and", "or", "to", "can", "may", "is", "has", "full", "control"];
/// Words for reading.
pub(super) const READING: &[&str] = &[
    "read",
    "reads",
    "reader",
    "readers",
    "readable",
    "readonly",
    "readwrite",
    "rw",
    "ro",
    "r",
    "select",
    "query",
    "view",
    "viewer",
    "viewers",
];
/// Words that agree.
pub(super) const AGREEING: &[&str] =
    &["all", "true", "yes", "y", "1", "allow", "allowed", "granted", "permitted", "enabled"];
/// Words of these that may be the name of a role.
pub(super) const NOUNS: &[&str] =
    &["reader", "readers", "viewer", "viewers", "writer", "writers", "admin"];

/// What somebody may do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Reads,
    Writes,
    Denied,
}

/// What an access allows that is written as text. It reads if it is more than writing, or nothing.
pub(super) fn access(text: &str) -> Access {
    let words = words(text);
    let is = |word: &String, list: &[&str]| list.contains(&word.as_str());
    let is_no = |word: &String| is(word, WRITING) || is(word, NEGATIONS);
    let is_more = |word: &String| !is_no(word) && !is(word, FILLING);
    if denies(&words) {
        Access::Denied
    } else if words.iter().any(is_no) && !words.iter().any(is_more) {
        Access::Writes
    } else {
        Access::Reads
    }
}

pub(super) fn has(words: &[String], list: &[&str]) -> bool {
    words.iter().any(|word| list.contains(&word.as_str()))
}

/// Whether words take access away: `denied`, `no access`, `not allowed`, `read: no`.
pub(super) fn denies(words: &[String]) -> bool {
    let is_taken = |at: usize| {
        let next = words.get(at + 1).map(String::as_str);
        next.is_none_or(|next| [READING, AGREEING, FILLING].iter().any(|list| list.contains(&next)))
    };
    let mut all = words.iter().enumerate();
    all.any(|(at, word)| NEGATIONS.contains(&word.as_str()) && is_taken(at))
        || has(words, DENYING)
        || matches!(words, [word] if ["n", "0"].contains(&word.as_str()))
}

/// Whether those below a key may read.
pub(super) fn is_for_readers(words: &[String]) -> bool {
    !has(words, WRITING) || has(words, READING)
}

/// Yes or no, if a text says just that.
pub(super) fn answer(text: &str) -> Option<bool> {
    let words = words(text);
    if denies(&words) {
        return Some(false);
    }
    let agrees = words.iter().all(|word| AGREEING.contains(&word.as_str()));
    (agrees && !words.is_empty()).then_some(true)
}

const VERBS: &[&[&str]] = &[READING, WRITING, DENYING, NEGATIONS, AGREEING, FILLING];

/// Whether words are all about access and those who have it, so that they name nobody.
pub(super) fn is_own(words: &[String]) -> bool {
    let is = |word: &String| VERBS.iter().chain(&[KINDS]).any(|list| list.contains(&word.as_str()));
    !words.is_empty() && words.iter().all(is)
}

/// Whether a text is an access and no name.
pub(super) fn is_verbal(text: &str) -> bool {
    let words = words(text);
    let is = |word: &String| VERBS.iter().any(|list| list.contains(&word.as_str()));
    !words.is_empty() && words.iter().all(is) && !has(&words, NOUNS)
}
