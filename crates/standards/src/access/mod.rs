//! Lists of those who may read, under the names that many tools have for them.

mod lists;

use crate::cursor::{Clause, Cursor};
use crate::tree::Tree;
use crate::words::words;
pub(crate) use lists::APART;
use lists::{
    ACCESS, Access, DENYING, GRANTING, KINDS, LISTS, NAMES, NOTES, NOUNS, OPTIONAL, PREFIXES,
    READING, WRITING, access, answer, denies, has, is_for_readers, is_own, is_verbal,
};
use std::collections::HashSet;

/// Those who may read what a list stands at. An empty list names nobody who can be named here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReaderList {
    /// Where it stands.
    pub at: String,
    /// Their names.
    pub names: Vec<Clause<String>>,
}

/// Those whom a list names.
#[derive(Default)]
struct Members {
    readers: Vec<Clause<String>>,
    denied: HashSet<String>,
}

impl Members {
    fn add(&mut self, access: Access, name: Option<Clause<String>>) {
        match access {
            Access::Reads => self.readers.extend(name),
            Access::Denied => self.denied.extend(name.map(|name| name.value)),
            Access::Writes => {}
        }
    }
}

/// The lists below a part, without those whom another list denies access. If there is none but of
/// the denied, nobody can be named.
#[must_use]
pub fn lists(at: &Cursor<'_>) -> Vec<ReaderList> {
    let (mut found, mut denied) = (Vec::new(), Vec::new());
    walk(at, &mut found, &mut denied);
    let gone: HashSet<String> =
        denied.iter_mut().flat_map(|list| list.names.drain(..)).map(|name| name.value).collect();
    for list in &mut found {
        list.names.retain(|name| !gone.contains(&name.value));
    }
    if found.is_empty() { denied } else { found }
}

fn walk(at: &Cursor<'_>, found: &mut Vec<ReaderList>, denied: &mut Vec<ReaderList>) {
    for item in at.items() {
        walk(&item, found, denied);
    }
    let is_read =
        at.named_value().is_some_and(|(key, value)| list(&key.value, &value, found, denied));
    for (key, value) in at.entries().into_iter().filter(|(key, _)| !APART.contains(key)) {
        let is_known = is_read && key == "value" || list(key, &value, found, denied);
        if !is_known {
            walk(&value, found, denied);
        }
    }
}

/// Reads the list under a key, if it is the key of one.
fn list(
    key: &str,
    value: &Cursor<'_>,
    found: &mut Vec<ReaderList>,
    denied: &mut Vec<ReaderList>,
) -> bool {
    if *value.tree() == Tree::Null {
        return is_about_readers(key);
    }
    if is_of_denied(key) {
        let mut all = Members::default();
        collect(value, &mut all, true);
        let at = |name| Clause { value: name, at: value.path().to_owned() };
        let names = all.denied.into_iter().map(at).collect();
        denied.push(ReaderList { at: value.path().to_owned(), names });
    } else if is_list(key) {
        let says_nobody = !OPTIONAL.contains(&own(key).concat().as_str());
        let nobody = || ReaderList { at: value.path().to_owned(), names: Vec::new() };
        let list = of(std::slice::from_ref(value));
        found.extend(list.or_else(|| says_nobody.then(nobody)));
    } else {
        return false;
    }
    true
}

/// Whether a key is that of a list of those who may read, or may not.
pub(crate) fn is_about_readers(key: &str) -> bool {
    is_list(key) || is_of_denied(key)
}

/// The words of a key, without those before a list's own name.
fn own(key: &str) -> Vec<String> {
    let mut words = words(key);
    let is_before = |word: &String| PREFIXES.contains(&word.as_str());
    while words.len() > 1 && words.first().is_some_and(is_before) {
        words.remove(0);
    }
    words
}

fn is_list(key: &str) -> bool {
    let key = own(key).concat();
    LISTS.contains(&key.as_str()) || is_joined(&key, GRANTING)
}

fn is_of_denied(key: &str) -> bool {
    let words = own(key);
    let is_kind = words.iter().any(|word| KINDS.contains(&word.as_str()));
    let key = words.concat();
    denies(&words) && is_kind
        || is_joined(&key, DENYING)
        || ["denylist", "blocklist", "blacklist"].contains(&key.as_str())
}

/// Whether a key is one of these words and one for those on a list.
fn is_joined(key: &str, first: &[&str]) -> bool {
    let rest = |word: &&str| key.strip_prefix(word).is_some_and(|rest| KINDS.contains(&rest));
    first.iter().any(rest)
}

/// One list of several parts, such as the roles of each server; none if all are empty.
#[must_use]
pub fn of(parts: &[Cursor<'_>]) -> Option<ReaderList> {
    let says = |part: &&Cursor<'_>| *part.tree() != Tree::Null && !is_empty(part.tree());
    let mut parts = parts.iter().filter(says).peekable();
    let at = parts.peek()?.path().to_owned();
    let mut named = Members::default();
    parts.for_each(|part| collect(part, &mut named, false));
    let Members { readers: mut names, denied } = named;
    names.retain(|name| !denied.contains(&name.value));
    Some(ReaderList { at, names })
}

fn is_empty(tree: &Tree) -> bool {
    matches!(tree, Tree::List(_) | Tree::Map(_)) && tree.is_leaf()
}

/// Those whom a part names, as denied if it is of the denied.
fn collect(at: &Cursor<'_>, found: &mut Members, denied: bool) {
    let given = |access| if denied { Access::Denied } else { access };
    let name = at.noted().filter(|_| !matches!(at.tree(), Tree::Boolean(_)));
    found.add(given(Access::Reads), name);
    at.items().iter().for_each(|item| collect(item, found, denied));
    let stated = stated(at);
    if let Some(key) = naming(at) {
        // `{user: alice, role: viewer}`: the role is what she may do.
        let role = at.text("role").filter(|_| key != "role");
        let access = role.map_or(Access::Reads, |role| access(&role.value));
        let access = if stated == Access::Reads { access } else { stated };
        return found.add(given(access), at.text(key));
    }
    if stated == Access::Writes && !denied {
        return;
    }
    let denied = denied || stated == Access::Denied;
    for (key, value) in at.entries() {
        let words = words(key);
        if NOTES.contains(&words.join(" ").as_str()) {
            continue;
        }
        let is_access = is_statement(&value);
        let is_verb = value.tree().text().is_some_and(is_verbal);
        let is_of_access = is_own(&words) || is_about_access(key, &words);
        if is_access && !is_of_access {
            // `hr: read`
            let name = Clause { value: key.to_owned(), at: value.path().to_owned() };
            found.add(if denied { Access::Denied } else { allowed(&value) }, Some(name));
            continue;
        }
        let is_read = is_verb || is_access && is_about_access(key, &words);
        if !is_read && (denied || denies(&words) || is_for_readers(&words)) {
            collect(&value, found, denied || denies(&words));
        }
    }
}

/// The key that names a reader.
fn naming(at: &Cursor<'_>) -> Option<&'static str> {
    NAMES.iter().copied().find(|key| at.tree().get(key).is_some())
}

/// What the keys of a part say about the access of those whom it names: `read: false`.
fn stated(at: &Cursor<'_>) -> Access {
    let (mut reads, mut writes) = (false, false);
    let is_named = naming(at).is_some();
    for (key, value) in at.entries() {
        let words = words(key);
        let is_reading = has(&words, READING);
        if is_about_access(key, &words) {
            match allowed(&value) {
                _ if !is_named && !is_statement(&value) => {}
                Access::Denied => return Access::Denied,
                Access::Writes => writes = true,
                Access::Reads => {}
            }
            continue;
        }
        let answer = value.tree().text().and_then(answer).filter(|_| is_own(&words));
        match answer {
            Some(says) if denies(&words) => {
                if says {
                    return Access::Denied;
                }
            }
            Some(says) if has(&words, WRITING) && !is_reading => writes |= says,
            Some(false) => return Access::Denied,
            _ => reads |= is_reading,
        }
    }
    if writes && !reads { Access::Writes } else { Access::Reads }
}

/// What the value of a key such as `access` allows.
fn allowed(at: &Cursor<'_>) -> Access {
    match at.tree() {
        Tree::List(items) if !items.is_empty() => {
            let all: Vec<Access> = at.items().iter().map(allowed).collect();
            let first = [Access::Reads, Access::Denied].into_iter().find(|own| all.contains(own));
            first.unwrap_or(Access::Writes)
        }
        Tree::Map(_) => stated(at),
        tree => tree.text().map_or(Access::Reads, access),
    }
}

fn is_about_access(key: &str, words: &[String]) -> bool {
    ACCESS.contains(&key) || ACCESS.contains(&words.concat().as_str())
}

/// Whether a part is an access, and names nobody.
fn is_statement(at: &Cursor<'_>) -> bool {
    let is_access = |key: &str| {
        let words = words(key);
        is_about_access(key, &words) || is_own(&words) && !has(&words, KINDS)
    };
    match at.tree() {
        Tree::List(items) => !items.is_empty() && at.items().iter().all(is_statement),
        Tree::Map(entries) => {
            let mut all = at.entries().into_iter();
            !entries.is_empty() && all.all(|(key, value)| is_access(key) && is_statement(&value))
        }
        tree => tree.text().is_some_and(|text| {
            let is_noun = |word: &String| NOUNS.contains(&word.as_str());
            is_verbal(text) || matches!(words(text).as_slice(), [word] if is_noun(word))
        }),
    }
}

#[cfg(test)]
mod tests;
