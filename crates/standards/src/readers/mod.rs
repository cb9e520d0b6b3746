//! The standards, each read into the same [`Contract`].

mod avro;
mod confluent;
mod dbt;
mod forms;
mod hulls;
mod json_schema;
mod odcs;
mod patterns;
mod pointer;
mod rules;
mod specification;
mod value_sets;
mod versions;

use crate::access::{self, ReaderList};
use crate::contract::{Contract, Table};
use crate::cursor::Cursor;
use crate::error::ImportError;
use crate::sensitivity::{Label, Level};
use crate::tree::Tree;
use std::collections::HashMap;

/// How deeply objects may lie in objects.
const MAX_DEPTH: usize = 16;
/// Why the parts of what lies so deep are not read.
const DEEP: &str = "it lies in 16 other objects; what lies deeper is not read";
/// Why the parts of what is among its own parts are not read.
const ENDLESS: &str = "it is one of its own parts, which are read once";
/// The most properties of a contract. References within references can make any number.
pub const MAX_COLUMNS: usize = 20_000;

/// A contract whose text within the text, such as the schema in a registry's answer, is
/// opened, so that its parts have paths too.
#[must_use]
pub fn opened(tree: Tree) -> Tree {
    confluent::opened(tree)
}

/// Reads a contract of any known standard.
///
/// # Errors
/// If it is of none, or of a version that is not read.
pub fn read(tree: &Tree) -> Result<Contract, ImportError> {
    let mut contract = read_any(tree)?;
    contract.tables.iter_mut().for_each(share_labels);
    Ok(contract)
}

/// Why the parts of something are not read, if they are not.
fn unread(is_endless: bool, depth: usize) -> Option<&'static str> {
    let deep = (depth >= MAX_DEPTH).then_some(DEEP);
    if is_endless { Some(ENDLESS) } else { deep }
}

/// A property that a table has twice, such as in two parts of which both hold, is one: the strictest
/// that is said of it holds, also for its parts.
fn share_labels(table: &mut Table) {
    let mut said: HashMap<String, [Option<Label>; 2]> = HashMap::new();
    for column in &table.columns {
        let [strictest, internal] = said.entry(column.name.value.clone()).or_default();
        for label in &column.labels {
            if strictest.as_ref().is_none_or(|own| own.level < label.level) {
                *strictest = Some(label.clone());
            }
            if label.level == Level::Internal {
                *internal = Some(label.clone());
            }
        }
    }
    for column in &mut table.columns {
        let name = column.name.value.clone();
        let ends = name.match_indices('.').map(|(at, _)| at).chain([name.len()]);
        for whole in ends.filter_map(|end| name.get(..end)) {
            for label in said.get(whole).into_iter().flatten().flatten() {
                if !column.labels.contains(label) {
                    column.labels.push(label.clone());
                }
            }
        }
    }
}

/// The lists of readers of a table or a contract. Its options limit the receivers, so the labels
/// need not keep everything back because of these lists.
fn take_readers(at: &Cursor<'_>, labels: &mut Vec<Label>) -> Vec<ReaderList> {
    let lists = access::lists(at);
    labels.retain(|label| !lists.iter().any(|list| list.at == label.at));
    lists
}

fn read_any(tree: &Tree) -> Result<Contract, ImportError> {
    let root = Cursor::root(tree);
    if root.get("dataContractSpecification").is_some() {
        return specification::read(&root);
    }
    if is_odcs(&root) {
        return odcs::read(&root);
    }
    if dbt::is_one(&root) {
        return dbt::read(&root);
    }
    if confluent::is_one(&root) {
        return confluent::read(&root);
    }
    if avro::is_one(&root) {
        return Ok(plain("Avro schema", avro::tables(&root)));
    }
    if json_schema::is_one(&root) {
        return Ok(plain("JSON schema", json_schema::tables(&root)));
    }
    Err(if is_listed(&root) { ImportError::Listed } else { ImportError::UnknownStandard })
}

/// Whether it holds answers of a registry, or a list type with a record inside.
fn is_listed(root: &Cursor<'_>) -> bool {
    let items = root.items();
    let is_list = root.text("type").is_some_and(|kind| matches!(&*kind.value, "array" | "map"));
    let inner = root.first(&["items", "values"]).filter(|_| is_list);
    inner.is_some_and(|inner| avro::is_one(&inner) || json_schema::is_one(&inner))
        || !items.is_empty() && items.iter().all(confluent::is_one)
}

/// The kind alone decides; a draft may lack it, but then it has a version and a schema.
fn is_odcs(root: &Cursor<'_>) -> bool {
    let is = |key: &str, word: &str| root.text(key).is_some_and(|noted| noted.value == word);
    let listed = matches!(root.tree().get("schema"), Some(Tree::List(_)));
    is("kind", "DataContract") || root.get("apiVersion").is_some() && listed
}

fn plain(standard: &str, tables: Vec<Table>) -> Contract {
    Contract { standard: standard.to_owned(), tables, ..Contract::default() }
}
