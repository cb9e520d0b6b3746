//! What tags, classifications, flags and notes say about who may learn a value.

mod lists;
mod notes;
mod text_words;

use crate::access;
use crate::cursor::{Clause, Cursor, NAMING};
use crate::tree::Tree;
use lists::{
    ALONE, AUDIENCES, CLASSIFICATIONS, INNER, INTERNAL, LIMITS, NAMES, NEGATIONS, NOTES, PERSONAL,
    PROTECTIONS, PUBLIC, RESTRICTED, SHORT, SILENT, TAGGED, TAGS, VAGUE,
};
use notes::noted;
use text_words::{folded, found, has_phrase, is_negation, said, words};

/// Who may learn a value, from anyone to nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Anyone.
    Public,
    /// The house itself.
    Internal,
    /// It is about a person.
    Personal,
    /// Only those whom the contract names.
    Restricted,
}

/// A statement about who may learn a value, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Where it stands.
    pub at: String,
    /// What it says.
    pub level: Level,
    /// Whether the word is not known, and is taken for the strictest.
    pub unknown: bool,
}

/// A list of links, whose descriptions may say more than where they lead.
const DEFINED: &str = "authoritativeDefinitions";

/// All labels that stand below a column, table or contract.
#[must_use]
pub fn labels(at: &Cursor<'_>) -> Vec<Label> {
    labels_but(at, &[])
}

/// The same without what stands under some keys.
#[must_use]
pub fn labels_but(at: &Cursor<'_>, keys: &[&str]) -> Vec<Label> {
    let mut found = Vec::new();
    for (key, value) in at.entries() {
        if ![access::APART, SILENT, keys].iter().any(|list| list.contains(&key)) {
            collect(key, &value, &mut found);
        }
    }
    for item in at.get(DEFINED).iter().flat_map(Cursor::one_or_items) {
        for (key, value) in item.entries() {
            if !["type", "url", "id"].contains(&key) {
                collect(key, &value, &mut found);
            }
        }
    }
    // Those who read one part alone: an option is of several, so it is kept back.
    let lists = access::lists(at).into_iter().map(|list| list.at);
    found.extend(lists.map(|at| Label { at, level: Level::Restricted, unknown: true }));
    found
}

/// All labels of a part for people, which may be a single text.
#[must_use]
pub fn labels_of(at: &Cursor<'_>) -> Vec<Label> {
    let said = at.tree().text().and_then(noted);
    let own = said.map(|level| Label { at: at.path().to_owned(), level, unknown: false });
    own.into_iter().chain(labels_but(at, &["policies", "billing", "noticePeriod"])).collect()
}

/// Labels of texts that are tags.
#[must_use]
pub fn of_tags(tags: &[Clause<String>]) -> Vec<Label> {
    let label = |tag: &Clause<String>| {
        tagged(&tag.value).map(|(level, unknown)| Label { at: tag.at.clone(), level, unknown })
    };
    tags.iter().filter_map(label).collect()
}

fn collect(key: &str, at: &Cursor<'_>, found: &mut Vec<Label>) {
    let named = at.named_value();
    if let Some((named, value)) = &named {
        collect(&named.value, value, found);
    }
    for item in at.items() {
        collect(key, &item, found);
    }
    for (inner, value) in at.entries() {
        let is_pair = named.is_some() && (inner == "value" || NAMING.contains(&inner));
        let is_inner =
            INNER.contains(&inner) && matches!(value.tree(), Tree::List(_) | Tree::Map(_));
        if is_pair || is_inner {
            continue;
        }
        // `classification: {level: secret}`: what says nothing itself is said by the key above, and
        // `security: {level: high}` by both.
        let both = format!("{key}_{inner}");
        if is_tags(key) && folded(inner) != "value" {
            collect_pair(inner, &value, found);
        } else if tells(inner) || !tells(key) && !tells(&both) {
            collect(inner, &value, found);
        } else {
            collect(if tells(key) { key } else { &both }, &value, found);
        }
    }
    if let Some(text) = at.tree().text()
        && let Some((level, unknown)) = stated(key, text)
    {
        found.push(Label { at: at.path().to_owned(), level, unknown });
    }
}

/// Whether values of a key say who may learn what.
fn tells(key: &str) -> bool {
    let short = folded(key);
    let is_word = is_tags(key) || NOTES.contains(&short.as_str());
    is_word || is_level(&short) || is_in(PROTECTIONS, &short) || flag(&words(key)) != (None, None)
}

fn is_tags(key: &str) -> bool {
    words(key).iter().any(|word| TAGS.contains(&word.as_str()))
}

fn is_in(parts: &[&str], key: &str) -> bool {
    parts.iter().any(|part| key.contains(part))
}

/// Whether a key, folded, asks for a level.
fn is_level(key: &str) -> bool {
    is_in(CLASSIFICATIONS, key) || is_in(LIMITS, key)
}

/// Tags as a map: `{pii: "true", team: sales}`.
fn collect_pair(key: &str, value: &Cursor<'_>, found: &mut Vec<Label>) {
    let text = value.tree().text().unwrap_or_default();
    let said = stated(key, text).into_iter().chain(tagged(&format!("{key}:{text}"))).max();
    match said {
        Some((level, unknown)) if value.tree().is_leaf() => {
            found.push(Label { at: value.path().to_owned(), level, unknown });
        }
        _ => collect(key, value, found),
    }
}

/// What `key: value` says: a level, and whether its word is unknown.
fn stated(key: &str, value: &str) -> Option<(Level, bool)> {
    let folded = folded(key);
    if is_level(&folded) {
        let opens = CLASSIFICATIONS.contains(&folded.as_str());
        return classified(value).filter(|(level, _)| opens || *level != Level::Public);
    }
    if is_in(PROTECTIONS, &folded) {
        return (!is_negation(value)).then_some((Level::Restricted, false));
    }
    if is_tags(key) {
        return tagged(value);
    }
    if NOTES.contains(&folded.as_str()) {
        return noted(value).map(|level| (level, false));
    }
    // `medical: true`, `data_category: health`
    let is_category = folded.contains("category") || folded.contains("categories");
    let kind = special(key).filter(|_| is_true(value));
    let kind = kind.or_else(|| special(value).filter(|_| is_category && value.len() <= SHORT));
    // `privacy_category: SENSITIVE`
    let said = flagged(key, value).into_iter().chain(implied(&folded, value)).max();
    said.map(|level| (level, false)).into_iter().chain(kind).max()
}

/// What the text of a key says that is not known.
fn implied(key: &str, value: &str) -> Option<Level> {
    // `protected` is what every model of dbt is.
    if NAMES.contains(&key) || key == "access" && value == "protected" {
        return None;
    }
    if value.len() > SHORT {
        return noted(value);
    }
    let words: Vec<String> =
        words(value).into_iter().filter(|word| !VAGUE.contains(&word.as_str())).collect();
    let is_audience = AUDIENCES.contains(&key) && found(&words, INTERNAL).0;
    let said = said(&words).filter(|level| is_audience || *level != Level::Internal);
    said.or(is_audience.then_some(Level::Internal)).max(noted(value))
}

/// A key such as `contains_pii`, unless its value denies it.
fn flagged(key: &str, value: &str) -> Option<Level> {
    let words = words(key);
    let (affirmed, denied) = flag(&words);
    let own: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "is").collect();
    match own.as_slice() {
        ["public" | "open"] if is_negation(value) => Some(Level::Restricted),
        [word, ..] if INTERNAL.contains(word) && is_true(value) => Some(Level::Internal),
        // `non_pii: false` says that it is.
        _ if is_negation(value) => denied,
        _ => affirmed,
    }
}

/// What a key says that is a flag, and what it denies.
fn flag(key: &[String]) -> (Option<Level>, Option<Level>) {
    const KEPT_BACK: &[&str] = &[
        "private",
        "sensitive",
        "confidential",
        "secret",
        "restricted",
        "phi",
        "pci",
        "hipaa",
        "spii",
        "protected",
        "vertraulich",
        "geheim",
    ];
    let (back, personal) = (found(key, KEPT_BACK), found(key, PERSONAL));
    let privacy = found(key, &["privacy"]);
    let level = |back: bool, personal: bool| match (back, personal) {
        (true, _) => Some(Level::Restricted),
        (_, true) => Some(Level::Personal),
        _ => None,
    };
    (level(back.0, personal.0 || privacy.0), level(back.1, personal.1 || privacy.1))
}

fn is_true(value: &str) -> bool {
    matches!(value.trim().to_ascii_lowercase().as_str(), "true" | "yes" | "1" | "y")
}

fn classified(value: &str) -> Option<(Level, bool)> {
    let words = words(value);
    if value.trim().is_empty() {
        return None;
    }
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    if PUBLIC.contains(&folded(value).as_str()) {
        return Some((Level::Public, false));
    }
    if has(RESTRICTED) {
        return Some((Level::Restricted, false));
    }
    if has(PERSONAL) && !has(NEGATIONS) {
        return Some((Level::Personal, false));
    }
    if has(INTERNAL) && !has(NEGATIONS) {
        return Some((Level::Internal, false));
    }
    Some((Level::Restricted, true))
}

/// What a tag says; most say nothing about who may learn what.
fn tagged(tag: &str) -> Option<(Level, bool)> {
    if let Some((key, value)) = tag.split_once([':', '=']) {
        if is_tags(key) {
            return tagged(value);
        }
        // `category:medical`, `medical:true`
        let is_known = stated(key, value).is_some() || NAMES.contains(&folded(key).as_str());
        let own = special(value).filter(|_| !is_known);
        let own = own.or_else(|| special(key).filter(|_| is_true(value)));
        return stated(key, value).into_iter().chain(own).max();
    }
    if let Some(level) = special(tag) {
        return Some(level);
    }
    let words = words(tag);
    let split = within(&words).and_then(|(key, value)| stated(&key, &value));
    let split = split.filter(|(level, _)| *level != Level::Public);
    let said = said(&words).max(for_house(&words, tag));
    split.into_iter().chain(said.map(|level| (level, false))).max()
}

/// What a tag says of special kinds of data, or that it is not public.
fn special(tag: &str) -> Option<(Level, bool)> {
    if found(&words(tag), &["public"]).1 || ["nonpublic", "notpublic"].contains(&&*folded(tag)) {
        return Some((Level::Restricted, true));
    }
    let is_special = TAGGED.iter().any(|own| has_phrase(tag, own)) || folded(tag) == "health";
    is_special.then_some((Level::Restricted, false))
}

/// Whether a tag keeps something in the house: `internal-use`, `team-only`, `proprietary`.
fn for_house(words: &[String], tag: &str) -> Option<Level> {
    let mut pairs = words.windows(2);
    let alone = pairs.any(
        |pair| matches!(pair, [word, only] if only == "only" && ALONE.contains(&word.as_str())),
    );
    let is_internal = alone || found(words, &["internal", "proprietary"]).0;
    is_internal.then_some(Level::Internal).max(noted(tag))
}

/// A level that a tag names in any other way: `sensitivity/high`, `high-sensitivity`.
fn within(words: &[String]) -> Option<(String, String)> {
    let tells = |part: &[String]| {
        let key = part.concat();
        is_level(&key) || is_in(PROTECTIONS, &key)
    };
    let end = (1..=words.len()).find(|end| words.get(..*end).is_some_and(tells))?;
    let key = words.get(..end)?;
    let start = (0..end).rev().find(|start| key.get(*start..).is_some_and(tells))?;
    let (before, after) = (key.get(..start)?, words.get(end..)?);
    let value = if after.is_empty() { before } else { after };
    let says = value.iter().any(|word| !matches!(word.as_str(), "data" | "." | ":"));
    says.then(|| (key.get(start..).unwrap_or_default().concat(), value.join(" ")))
}

/// The texts below `at`, each with its path.
#[must_use]
pub fn texts(at: &Cursor<'_>) -> Vec<Clause<String>> {
    let below = at.one_or_items();
    below
        .iter()
        .filter(|item| matches!(item.tree(), Tree::Text(_)))
        .filter_map(Cursor::noted)
        .collect()
}

#[cfg(test)]
mod tests;
