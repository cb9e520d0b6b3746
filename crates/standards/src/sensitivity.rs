//! What tags, classifications, flags and notes say about who may learn a value.

use crate::cursor::{Cursor, Noted};
use crate::tree::Tree;
use crate::words::words;

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

const PERSONAL: &[&str] = &[
    "pii",
    "personal",
    "personally",
    "gdpr",
    "ccpa",
    "lgpd",
    "spi",
    "dsgvo",
    "personenbezogen",
    "personenbezogene",
];
/// Words for personal data that were joined.
const JOINED: &[&str] = &["personaldata", "personalinfo", "personallyidentif", "personenbezogen"];
const RESTRICTED: &[&str] = &[
    "restricted",
    "confidential",
    "secret",
    "sensitive",
    "private",
    "phi",
    "pci",
    "hipaa",
    "encrypted",
    "encrypt",
    "masked",
    "critical",
    "highly",
    "protected",
    "special",
    "spii",
    "vertraulich",
    "geheim",
    "confidentiel",
    "confidencial",
];
const INTERNAL: &[&str] = &["internal", "company", "employees", "intern"];
const PUBLIC: &[&str] = &["public", "open", "unrestricted", "opendata", "unclassified"];
const NEGATIONS: &[&str] = &["no", "not", "non", "none", "false", "without", "0", "n"];

/// Keys whose value names a level. An unknown one is taken for the strictest.
const CLASSIFICATIONS: &[&str] = &[
    "classification",
    "sensitivity",
    "confidentiality",
    "dataclassification",
    "datasensitivity",
    "sensitivitylevel",
    "securitylevel",
    "securityclassification",
    "privacyclass",
    "privacylevel",
    "classificationlevel",
    "dataclass",
];
/// Keys of which any value but a negation says that the plain value is kept back.
const PROTECTIONS: &[&str] = &[
    "encryptedname",
    "anonymizationstrategy",
    "anonymisationstrategy",
    "anonymization",
    "masking",
    "maskingpolicy",
    "maskingstrategy",
    "maskingrule",
    "encryption",
    "encrypted",
    "encrypt",
    "tokenization",
    "tokenisation",
    "pseudonymization",
    "pseudonymisation",
    "policytags",
    "datamasking",
    "obfuscation",
    "redaction",
    "columnmask",
];
/// Keys whose texts are tags.
const TAGS: &[&str] =
    &["tags", "tag", "labels", "confluent:tags", "databrickstags", "snowflaketags"];
/// Keys whose texts are for people. Only unmistakable words count there.
const NOTES: &[&str] = &["description", "doc", "comment", "businessname", "title"];
/// Parts of a column, table or contract that say nothing about its values, or are read on their
/// own.
const APART: &[&str] = &[
    "properties",
    "fields",
    "items",
    "columns",
    "tables",
    "quality",
    "tests",
    "data_tests",
    "examples",
    "example",
    "lineage",
    "definitions",
    "authoritativeDefinitions",
    "relationships",
    "default",
    "enum",
    "values",
    "name",
    "physicalName",
    "keys",
    "links",
    "$defs",
    "servers",
    "schema",
    "models",
    "transformSourceObjects",
    "transformLogic",
    "sources",
    "seeds",
    "snapshots",
    "roles",
    "servicelevels",
    "slaProperties",
    "support",
    "team",
    "price",
    "contact",
    "stakeholders",
    "terms",
    "ruleSet",
    "defaultRuleSet",
    "overrideRuleSet",
    "domainRules",
    "migrationRules",
    "encodingRules",
];
/// Parts with columns of their own, at any depth.
const INNER: &[&str] = &["properties", "fields", "items", "columns", "tables"];

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
        if !APART.contains(&key) && !keys.contains(&key) {
            collect(key, &value, &mut found);
        }
    }
    found
}

/// Labels of texts that are tags.
#[must_use]
pub fn of_tags(tags: &[Noted<String>]) -> Vec<Label> {
    let label = |tag: &Noted<String>| {
        tagged(&tag.value).map(|(level, unknown)| Label { at: tag.at.clone(), level, unknown })
    };
    tags.iter().filter_map(label).collect()
}

/// Keys that name what the key `value` beside them says.
const NAMING: &[&str] = &["property", "key", "name"];

fn collect(key: &str, at: &Cursor<'_>, found: &mut Vec<Label>) {
    // `{property: pii, value: true}` says what `pii: true` says.
    let named = at.first(NAMING).and_then(|named| Some((named.noted()?, at.get("value")?)));
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
        if TAGS.contains(&folded(key).as_str()) && folded(inner) != "value" {
            collect_pair(inner, &value, found);
        } else {
            // `classification: {level: secret}`: what says nothing itself is said by the key above.
            collect(if tells(inner) || !tells(key) { inner } else { key }, &value, found);
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
    let ends = |list: &[&str]| list.iter().any(|ending| short.ends_with(ending));
    let is_word = TAGS.contains(&short.as_str()) || NOTES.contains(&short.as_str());
    is_word || ends(CLASSIFICATIONS) || ends(PROTECTIONS) || flag(&words(key)).is_some()
}

/// Tags as a map: `{pii: "true", team: sales}`.
fn collect_pair(key: &str, value: &Cursor<'_>, found: &mut Vec<Label>) {
    let text = value.tree().text().unwrap_or_default();
    let said = stated(key, text).or_else(|| tagged(&format!("{key}:{text}")));
    match said {
        Some((level, unknown)) if value.tree().is_leaf() => {
            found.push(Label { at: value.path().to_owned(), level, unknown });
        }
        _ => collect(key, value, found),
    }
}

/// What `key: value` says: a level, and whether its word is unknown.
fn stated(key: &str, value: &str) -> Option<(Level, bool)> {
    let (folded, said) = (folded(key), words(value));
    if CLASSIFICATIONS.iter().any(|ending| folded.ends_with(ending)) {
        return classified(value, &said);
    }
    if PROTECTIONS.iter().any(|ending| folded.ends_with(ending)) {
        return (!is_negation(&said)).then_some((Level::Restricted, false));
    }
    if TAGS.contains(&folded.as_str()) {
        return tagged(value);
    }
    if NOTES.contains(&folded.as_str()) {
        return noted(value, &said).map(|level| (level, false));
    }
    flagged(&words(key), &said).map(|level| {
        // `privacy_category: SENSITIVE`
        let more = self::said(value).map_or(level, |(more, _)| more);
        (level.max(more), false)
    })
}

/// A key such as `contains_pii`, unless its value denies it.
fn flagged(key: &[String], value: &[String]) -> Option<Level> {
    let level = flag(key)?;
    let denies = key.iter().any(|word| NEGATIONS.contains(&word.as_str()));
    // `non_pii: false` says that it is.
    (is_negation(value) == denies).then_some(level)
}

/// What a key says that is a flag.
fn flag(key: &[String]) -> Option<Level> {
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
    ];
    let has = |list: &[&str]| key.iter().any(|word| list.contains(&word.as_str()));
    if has(KEPT_BACK) {
        Some(Level::Restricted)
    } else if has(PERSONAL) || has(&["privacy"]) {
        Some(Level::Personal)
    } else {
        None
    }
}

fn classified(value: &str, words: &[String]) -> Option<(Level, bool)> {
    if words.is_empty() {
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
        let is_tag = TAGS.contains(&folded(key).as_str());
        return if is_tag { tagged(value) } else { stated(key, value).or_else(|| said(value)) };
    }
    said(tag)
}

fn said(tag: &str) -> Option<(Level, bool)> {
    let (words, joined) = (words(tag), folded(tag));
    if has(&words, RESTRICTED) {
        return Some((Level::Restricted, false));
    }
    let is_joined = words.len() == 1 && JOINED.iter().any(|word| joined.contains(word));
    if has(&words, PERSONAL) || is_joined {
        return Some((Level::Personal, false));
    }
    // A tag may limit, but only a classification opens: `public` may be the name of anything.
    match words.as_slice() {
        [word] if INTERNAL.contains(&word.as_str()) => Some((Level::Internal, false)),
        _ => None,
    }
}

/// Whether one of these words is there and is not denied, as in `non-pii`, `pii-free` or `pii_false`.
fn has(words: &[String], list: &[&str]) -> bool {
    let is_no = |word: &String| NEGATIONS.contains(&word.as_str());
    let is_denied = |at: usize| {
        let before = at.checked_sub(1).and_then(|at| words.get(at)).is_some_and(is_no);
        let after = words.get(at + 1);
        let ends = after.is_some_and(is_no) && at + 2 == words.len();
        before || ends || after.is_some_and(|word| word == "free")
    };
    let mut all = words.iter().enumerate();
    all.any(|(at, word)| list.contains(&word.as_str()) && !is_denied(at))
}

/// What a text for people says, if it says so unmistakably.
fn noted(text: &str, words: &[String]) -> Option<Level> {
    if has(words, &["confidential"]) {
        return Some(Level::Restricted);
    }
    let lower = text.to_lowercase();
    let phrase = ["personally identif", "personal data", "personal information"];
    let is_personal =
        has(words, &["pii", "phi"]) || phrase.iter().any(|phrase| lower.contains(phrase));
    is_personal.then_some(Level::Personal)
}

fn is_negation(words: &[String]) -> bool {
    words.is_empty() || words.iter().all(|word| NEGATIONS.contains(&word.as_str()))
}

/// A key in lower case without what joins its words.
fn folded(key: &str) -> String {
    key.chars()
        .filter(|c| !matches!(c, '_' | '-' | ' ' | '.'))
        .flat_map(char::to_lowercase)
        .collect()
}

/// The texts below `at`, each with its path.
#[must_use]
pub fn texts(at: &Cursor<'_>) -> Vec<Noted<String>> {
    let below = at.one_or_items();
    below
        .iter()
        .filter(|item| matches!(item.tree(), Tree::Text(_)))
        .filter_map(Cursor::noted)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Level::{Internal, Personal, Public, Restricted};

    fn level(yaml: &str) -> Option<Level> {
        let tree = Tree::parse(yaml).unwrap();
        labels(&Cursor::root(&tree)).iter().map(|label| label.level).max()
    }

    #[test]
    fn limits_are_found_in_every_spelling() {
        for (yaml, expected) in [
            ("classification: public", Some(Public)),
            ("classification: Internal", Some(Internal)),
            ("classification: internal use only", Some(Internal)),
            ("classification: restricted", Some(Restricted)),
            ("classification: non-public", Some(Restricted)),
            ("classification: C2", Some(Restricted)),
            ("pii: true", Some(Personal)),
            ("pii: 'yes'", Some(Personal)),
            ("pii: email", Some(Personal)),
            ("pii: false", None),
            ("tags: ['pii:false', finance]", None),
            ("tags: ['pii:true']", Some(Personal)),
            ("tags: [non-pii]", None),
            ("tags: [PII]", Some(Personal)),
            ("tags: ['classification=secret']", Some(Restricted)),
            ("tags: [uid, orders]", None),
            ("tags: ['schema:public', public]", None),
            ("tags: ['classification:public']", Some(Public)),
            ("confluent:tags: [PRIVATE]", Some(Restricted)),
            ("config: {meta: {contains_pii: true}}", Some(Personal)),
            ("meta: {privacy: {masking: sha256}}", Some(Restricted)),
            ("customProperties: [{property: anonymizationStrategy, value: none}]", None),
            ("customProperties: [{property: pii, value: true}]", Some(Personal)),
            ("encryptedName: enc_id", Some(Restricted)),
            ("description: User first name (PII).", Some(Personal)),
            ("description: This is not PII", None),
            ("description: Not case-sensitive, public", None),
            ("policy_tags: [projects/a/taxonomies/b]", Some(Restricted)),
            ("databricks_tags: {pii: 'true', team: x}", Some(Personal)),
            ("tags: {sensitivity: high}", Some(Restricted)),
            ("quality: [{description: pii}]", None),
        ] {
            assert_eq!(level(yaml), expected, "{yaml}");
        }
    }

    #[test]
    fn words_with_parts_and_negations_are_read_as_meant() {
        for (yaml, expected) in [
            ("classification: {level: restricted}", Some(Restricted)),
            ("classification: [public, secret]", Some(Restricted)),
            ("meta: {pii: {category: email}}", Some(Personal)),
            ("meta: {pii: {is_pii: false}}", None),
            ("meta: {masking: {policy: none}}", None),
            ("meta: {masking: {policy: sha256}}", Some(Restricted)),
            ("metadata: {pii: true}", Some(Personal)),
            ("tags: [Personally Identifiable Information]", Some(Personal)),
            ("tags: [personaldata]", Some(Personal)),
            ("tags: [personenbezogen]", Some(Personal)),
            ("tags: [vertraulich]", Some(Restricted)),
            ("tags: [confidential-do-not-share]", Some(Restricted)),
            ("tags: ['PII, not for export']", Some(Personal)),
            ("tags: [pii-free]", None),
            ("tags: [pii_false]", None),
            ("tags: [not_confidential]", None),
            ("customProperties: [{name: pii, value: true}]", Some(Personal)),
            ("customProperties: [{property: pii, value: false}]", None),
            ("customProperties: [{property: x, value: 1, description: has PII}]", Some(Personal)),
            ("meta: {privacy_category: SENSITIVE}", Some(Restricted)),
            ("description: {limitations: Contains PII.}", Some(Personal)),
            ("description: No PII in a, but PII in b", Some(Personal)),
            ("description: Strictly confidential.", Some(Restricted)),
            ("businessName: Mail (PII)", Some(Personal)),
            ("config: {bigqueryPolicyTags: [a/b]}", Some(Restricted)),
            ("meta: {is_pii_data: true}", Some(Personal)),
            ("meta: {non_pii: true}", None),
            ("meta: {non_pii: false}", Some(Personal)),
            ("type: {fields: [{tags: [PII]}]}", None),
            ("roles: [{description: may read PII}]", None),
            ("ruleSet: {domainRules: [{tags: [PII]}]}", None),
        ] {
            assert_eq!(level(yaml), expected, "{yaml}");
        }
    }
}
