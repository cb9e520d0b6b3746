//! What a Confluent registry holds: a schema with metadata and rules, or these alone.

use super::patterns::Pattern;
use super::{avro, json_schema, rules};
use crate::contract::{Column, Contract, Demand, Rule, Table};
use crate::cursor::{Clause, Cursor};
use crate::error::ImportError;
use crate::sensitivity::{Label, Level, labels, labels_but, of_tags, texts};
use crate::tree::Tree;

/// Keys of rule sets and of metadata, of a subject or as its defaults.
const RULE_SETS: &[&str] = &["ruleSet", "defaultRuleSet", "overrideRuleSet"];
const METADATA: &[&str] = &["metadata", "defaultMetadata", "overrideMetadata"];
const RULES: &[&str] = &["domainRules", "migrationRules", "encodingRules"];

/// A rule that changes values from one version of a schema to another.
const MIGRATION: &str = "changes values between versions of a schema; a schema here is bound to its keys and never changes";
const NO_FIELD: &str = "replaces values of fields, and this file has none";

pub(super) fn is_one(root: &Cursor<'_>) -> bool {
    let keys = RULE_SETS.iter().chain(&["schema", "schemaType"]);
    // Many files have `metadata`.
    const OWN: &[&str] = &["tags", "properties", "sensitive"];
    let holds = |key: &&str| root.get(key).is_some_and(|own| own.first(OWN).is_some());
    keys.clone().any(|key| root.get(key).is_some())
        || METADATA.iter().any(holds) && root.get("spec").is_none()
        || RULES.iter().any(|key| matches!(root.tree().get(key), Some(Tree::List(_))))
}

/// The tree with the schema's text in the place of the text.
pub(super) fn opened(tree: Tree) -> Tree {
    let Tree::Map(entries) = tree else { return tree };
    let open = |(key, value): (String, Tree)| match value {
        Tree::Text(text) if key == "schema" => {
            let inner = Tree::parse(&text).ok();
            let inner = inner.filter(|inner| !inner.is_leaf() && !is_like_protobuf(&text));
            (key, inner.unwrap_or(Tree::Text(text)))
        }
        value => (key, value),
    };
    Tree::Map(entries.into_iter().map(open).collect())
}

/// What begins as a Protobuf schema does, of which some are YAML too.
fn is_like_protobuf(text: &str) -> bool {
    const STARTS: &[&str] =
        &["//", "/*", "syntax", "edition", "message ", "package ", "import ", "option ", "enum "];
    STARTS
        .iter()
        .any(|word| text.trim_start_matches(['\u{feff}', ';']).trim_start().starts_with(word))
}

/// Whether a text may name a type.
fn is_type(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

/// A schema that cannot be read would hide what is said about its fields.
fn check(root: &Cursor<'_>) -> Result<(), ImportError> {
    let is_protobuf = |kind: Clause<String>| kind.value.eq_ignore_ascii_case("PROTOBUF");
    let Some(Tree::Text(text)) = root.tree().get("schema") else {
        return if root.text("schemaType").is_some_and(is_protobuf) && root.get("schema").is_some() {
            Err(ImportError::Protobuf)
        } else {
            Ok(())
        };
    };
    if root.text("schemaType").is_some_and(is_protobuf) || is_like_protobuf(text) {
        return Err(ImportError::Protobuf);
    }
    let inner = |problem: String| ImportError::Inner { problem };
    match Tree::parse(text) {
        Err(ImportError::Empty) => Err(inner("it is empty".to_owned())),
        Err(ImportError::Syntax(problem)) => Err(inner(problem)),
        Err(error) => Err(error),
        Ok(Tree::Map(_) | Tree::List(_)) => Ok(()),
        // The name of a type, which has no fields.
        Ok(Tree::Text(name)) if is_type(&name) => Ok(()),
        Ok(_) => Err(inner("it is neither a schema nor the name of a type".to_owned())),
    }
}

pub(super) fn read(root: &Cursor<'_>) -> Result<Contract, ImportError> {
    check(root)?;
    let mut contract = Contract {
        standard: "Confluent schema registry".to_owned(),
        name: root.text("subject").map(|noted| noted.value).unwrap_or_default(),
        labels: labels_but(root, METADATA),
        tables: root.get("schema").map(|schema| tables(&schema)).unwrap_or_default(),
        ..Contract::default()
    };
    let paths = paths(&contract.tables);
    for metadata in METADATA.iter().filter_map(|key| root.get(key)) {
        contract.labels.extend(metadata.get("properties").iter().flat_map(labels));
        for (pattern, tags) in metadata.get("tags").iter().flat_map(Cursor::entries) {
            mark_all(&mut contract.tables, &paths, pattern, &texts(&tags));
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
    Ok(contract)
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

/// The names of each column of each table that a pattern may select it by.
fn paths(tables: &[Table]) -> Vec<Vec<String>> {
    let all = tables.iter().flat_map(|table| {
        table.columns.iter().map(|column| {
            let path = format!("{}.{}", table.name.value, column.name.value);
            let mut all = vec![path, column.name.value.clone()];
            all.extend(column.paths.iter().filter(|own| !own.is_empty()).cloned());
            all.dedup();
            all
        })
    });
    all.collect()
}

/// Adds tags to the columns that a pattern such as `**.ssn` or `Person.name` selects. If it selects
/// none, it may be of another file's record, or begin otherwise: then its last word decides. If that
/// selects none either, nobody knows which are meant, and all are marked.
fn mark_all(tables: &mut [Table], paths: &[Vec<String>], text: &str, tags: &[Clause<String>]) {
    let mut marked = false;
    let pattern = Pattern::of(text);
    let columns = tables.iter_mut().flat_map(|table| &mut table.columns);
    for (column, paths) in columns.zip(paths) {
        // All fields of a record that a pattern selects are part of it.
        if paths.iter().any(|path| pattern.selects(path, true)) {
            mark(column, tags);
            marked = true;
        }
    }
    let last = Pattern::of(text.rsplit('.').next().unwrap_or_default());
    let is_last = !marked;
    for column in tables.iter_mut().flat_map(|table| &mut table.columns).filter(|_| is_last) {
        let word = column.name.value.rsplit('.').next().unwrap_or_default();
        if last.selects(word, false) {
            mark(column, tags);
            marked = true;
        }
    }
    for column in tables.iter_mut().flat_map(|table| &mut table.columns).filter(|_| !marked) {
        mark(column, tags);
    }
}

fn mark(column: &mut Column, tags: &[Clause<String>]) {
    column.labels.extend(of_tags(tags));
    column.tags.extend_from_slice(tags);
}

/// One rule. If it encrypts fields or puts other values in their place, they are marked: nobody
/// reads the plain values.
fn rule(key: &str, rule: &Cursor<'_>, tables: &mut [Table]) -> Rule {
    let kind = rule.text("type");
    let word = kind.as_ref().map(|noted| noted.value.to_ascii_uppercase()).unwrap_or_default();
    let replaces =
        rule.text("kind").is_some_and(|kind| kind.value.eq_ignore_ascii_case("TRANSFORM"));
    let demand = match (key, word.as_str()) {
        (_, "ENCRYPT_PAYLOAD") => hides(rule, tables, true),
        (_, word) if word.starts_with("ENCRYPT") => hides(rule, tables, false),
        ("migrationRules", _) => Demand::Other(MIGRATION),
        _ if replaces => hides(rule, tables, false),
        _ => Demand::Other(rules::SINGLE),
    };
    Rule { at: rule.path().to_owned(), kind: None, about: None, demand }
}

/// Marks the fields whose values a rule hides: those with its tags, or of records with them, or with
/// the names of its expression. A rule without either hides all, and so does one that selects no
/// field, since nobody knows which it means.
fn hides(rule: &Cursor<'_>, tables: &mut [Table], all: bool) -> Demand {
    let tags = rule.get("tags").map(|tags| texts(&tags)).unwrap_or_default();
    let is_named = |own: &[Clause<String>]| {
        let is =
            |tag: &Clause<String>| own.iter().any(|o| o.value.eq_ignore_ascii_case(&tag.value));
        tags.iter().any(is)
    };
    let has = |table: &Table, column: &Column| is_named(&column.tags) || is_named(&table.tags);
    let names = rule.text("expr").and_then(|expression| names(&expression.value));
    let is_called = |column: &Column| {
        let name = column.name.value.rsplit('.').next().unwrap_or_default();
        names.as_ref().is_none_or(|names| names.iter().any(|own| own == name))
    };
    let selects = |table: &Table, column: &Column| {
        (tags.is_empty() || has(table, column)) && is_called(column)
    };
    let is_any = |table: &Table| table.columns.iter().any(|column| selects(table, column));
    let all = all || !tables.iter().any(is_any);
    let label = Label { at: rule.path().to_owned(), level: Level::Restricted, unknown: false };
    let mut marked = false;
    for table in tables {
        let chosen: Vec<bool> =
            table.columns.iter().map(|column| all || selects(table, column)).collect();
        for (column, _) in table.columns.iter_mut().zip(chosen).filter(|(_, chosen)| *chosen) {
            column.labels.push(label.clone());
            marked = true;
        }
    }
    if marked { Demand::Labelled } else { Demand::Other(NO_FIELD) }
}

/// The names of fields that an expression is limited to, as in `name == 'ssn' ; '***'`. Any other
/// condition may hold for any field.
fn names(expression: &str) -> Option<Vec<String>> {
    let (condition, _) = expression.split_once(';')?;
    let name = |part: &str| {
        let (left, right) = part.split_once("==")?;
        let right = right.trim();
        let inner =
            right.strip_prefix(['\'', '"']).and_then(|own| own.strip_suffix(['\'', '"']))?;
        let is_name = inner.chars().all(|c| c.is_alphanumeric() || c == '_');
        (left.trim() == "name" && is_name).then(|| inner.to_owned())
    };
    condition.split("||").map(|part| part.split("&&").find_map(name)).collect()
}
