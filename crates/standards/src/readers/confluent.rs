//! What a Confluent registry holds: a schema with metadata and rules, or these alone.

use super::{avro, json_schema, rules};
use crate::contract::{Contract, Demand, Rule, Table};
use crate::cursor::{Cursor, Noted};
use crate::sensitivity::{Label, Level, labels, of_tags, texts};
use crate::tree::Tree;

/// Keys of rule sets and of metadata, of a subject or as its defaults.
const RULE_SETS: &[&str] = &["ruleSet", "defaultRuleSet", "overrideRuleSet"];
const METADATA: &[&str] = &["metadata", "defaultMetadata", "overrideMetadata"];
const RULES: &[&str] = &["domainRules", "migrationRules", "encodingRules"];

/// A rule that changes values from one version of a schema to another.
const MIGRATION: &str = "changes values between versions of a schema; a schema here is bound to its keys and never changes";
const NO_FIELD: &str = "encrypts fields with tags that no field of this file has";

pub(super) fn is_one(root: &Cursor<'_>) -> bool {
    let keys = RULE_SETS.iter().chain(METADATA).chain(&["schema", "schemaType"]);
    keys.clone().any(|key| root.get(key).is_some())
        || RULES.iter().any(|key| matches!(root.tree().get(key), Some(Tree::List(_))))
}

/// The tree with the schema's text in the place of the text.
pub(super) fn opened(tree: Tree) -> Tree {
    let Tree::Map(entries) = tree else { return tree };
    let open = |(key, value): (String, Tree)| match value {
        Tree::Text(text) if key == "schema" => {
            let inner = Tree::parse(&text).ok().filter(|inner| !inner.is_leaf());
            (key, inner.unwrap_or(Tree::Text(text)))
        }
        value => (key, value),
    };
    Tree::Map(entries.into_iter().map(open).collect())
}

pub(super) fn read(root: &Cursor<'_>) -> Contract {
    let mut contract = Contract {
        standard: "Confluent schema registry".to_owned(),
        name: root.text("subject").map(|noted| noted.value).unwrap_or_default(),
        labels: labels(root),
        tables: root.get("schema").map(|schema| tables(&schema)).unwrap_or_default(),
        ..Contract::default()
    };
    for metadata in METADATA.iter().filter_map(|key| root.get(key)) {
        contract.labels.extend(metadata.get("properties").iter().flat_map(labels));
        for (pattern, tags) in metadata.get("tags").iter().flat_map(Cursor::entries) {
            let tags = texts(&tags);
            contract.tables.iter_mut().for_each(|table| mark(table, pattern, &tags));
        }
    }
    let mut sets: Vec<Cursor<'_>> = RULE_SETS.iter().filter_map(|key| root.get(key)).collect();
    sets.push(root.clone());
    for set in sets {
        for key in RULES {
            for rule in set.get(key).iter().flat_map(Cursor::items) {
                let read = self::rule(key, &rule, &mut contract.tables);
                contract.rules.push(read);
            }
        }
    }
    contract
}

fn tables(schema: &Cursor<'_>) -> Vec<Table> {
    if avro::is_one(schema) {
        avro::tables(schema)
    } else if json_schema::is_one(schema) {
        json_schema::tables(schema)
    } else {
        Vec::new()
    }
}

/// Adds tags to the columns that a pattern such as `**.ssn` or `Person.name` selects.
fn mark(table: &mut Table, pattern: &str, tags: &[Noted<String>]) {
    let name = table.name.value.clone();
    for column in &mut table.columns {
        let path = format!("{name}.{}", column.name.value);
        if selects(pattern, &path) || selects(pattern, &column.name.value) {
            column.labels.extend(of_tags(tags));
            column.tags.extend_from_slice(tags);
        }
    }
}

/// Whether a pattern with `*` for one word and `**` for any selects a path. What is too long
/// to compare is selected, as the careful answer.
fn selects(pattern: &str, path: &str) -> bool {
    let split = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
    let (pattern, path) = (split(pattern), split(path));
    if pattern.len() > super::MAX_DEPTH {
        return true;
    }
    // Which lengths of the path the pattern's beginning can cover.
    let mut covers = vec![true];
    covers.resize(path.len() + 1, false);
    for word in &pattern {
        let mut next = vec![false; covers.len()];
        for (place, _) in covers.iter().enumerate().filter(|(_, covered)| **covered) {
            if word == "**" {
                next.iter_mut().skip(place).for_each(|covered| *covered = true);
            } else if path.get(place).is_some_and(|own| word == "*" || own == word)
                && let Some(covered) = next.get_mut(place + 1)
            {
                *covered = true;
            }
        }
        covers = next;
    }
    covers.last().copied().unwrap_or(true)
}

/// One rule. If it encrypts fields, they are marked.
fn rule(key: &str, rule: &Cursor<'_>, tables: &mut [Table]) -> Rule {
    let kind = rule.text("type");
    let word = kind.as_ref().map(|noted| noted.value.to_ascii_uppercase()).unwrap_or_default();
    let demand = match (key, word.as_str()) {
        ("migrationRules", _) => Demand::Other(MIGRATION),
        (_, "ENCRYPT_PAYLOAD") => encrypts(rule, tables, true),
        (_, "ENCRYPT") => encrypts(rule, tables, false),
        _ => Demand::Other(rules::SINGLE),
    };
    Rule { at: rule.path().to_owned(), kind: None, demand }
}

fn encrypts(rule: &Cursor<'_>, tables: &mut [Table], all: bool) -> Demand {
    let tags = rule.get("tags").map(|tags| texts(&tags)).unwrap_or_default();
    let label = Label { at: rule.path().to_owned(), level: Level::Restricted, unknown: false };
    let mut marked = false;
    for column in tables.iter_mut().flat_map(|table| &mut table.columns) {
        let named = |tag: &Noted<String>| column.tags.iter().any(|own| own.value == tag.value);
        if all || tags.iter().any(named) {
            column.labels.push(label.clone());
            marked = true;
        }
    }
    if marked { Demand::Labelled } else { Demand::Other(NO_FIELD) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_select_columns() {
        for (pattern, path, selected) in [
            ("**.ssn", "Person.ssn", true),
            ("**.ssn", "Person.home.ssn", true),
            ("**.ssn", "Person.name", false),
            ("Person.*", "Person.name", true),
            ("Person.*", "Person.home.street", false),
            ("Person.name", "Person.name", true),
            ("**", "anything", true),
        ] {
            assert_eq!(selects(pattern, path), selected, "{pattern} {path}");
        }
    }
}
