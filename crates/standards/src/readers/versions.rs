//! Versions of a model. Their columns stand beside the model's own, and the strictest of all that is
//! said of a column holds.

use super::rules;
use crate::contract::{Column, Demand};
use crate::cursor::Cursor;
use crate::kinds;
use crate::sensitivity::texts;

/// A version: the columns that it describes, and which of the model's it has.
pub(super) struct Version<'a> {
    /// Its own columns.
    pub(super) columns: Vec<Column>,
    /// Its list of columns, with what it includes and excludes.
    pub(super) list: Vec<Cursor<'a>>,
}

/// Adds the columns of all versions to those of their model.
pub(super) fn join(columns: &mut Vec<Column>, versions: Vec<Version<'_>>) {
    let own: Vec<String> = columns.iter().map(|column| column.name.value.clone()).collect();
    let mut lists = Vec::new();
    for version in versions {
        let listed: Vec<String> = version.columns.iter().map(|c| c.name.value.clone()).collect();
        for column in version.columns {
            match columns.iter_mut().find(|own| is_same(&own.name.value, &column.name.value)) {
                Some(own) => add(own, column),
                None => columns.push(column),
            }
        }
        lists.push((listed, version.list));
    }
    for column in columns {
        let name = column.name.value.clone();
        let is_in = |names: &[String]| names.iter().any(|own| is_same(own, &name));
        let has = |(listed, list): &(Vec<String>, Vec<Cursor<'_>>)| {
            is_in(listed) || is_in(&own) && includes(list, &name)
        };
        if !lists.iter().all(has) {
            make_optional(column);
        }
    }
}

fn is_same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// Whether a version has a column of its model: all, unless `include` or `exclude` says otherwise.
fn includes(list: &[Cursor<'_>], name: &str) -> bool {
    let names = |key: &str| {
        let stated = list.iter().find_map(|item| item.get(key));
        stated.map(|stated| texts(&stated))
    };
    let is_named = |word: &str| matches!(word, "all" | "*") || is_same(word, name);
    let is_in = |key: &str| names(key).map(|all| all.iter().any(|word| is_named(&word.value)));
    is_in("include").unwrap_or(true) && !is_in("exclude").unwrap_or(false)
}

/// Adds what a version says of a column.
fn add(own: &mut Column, other: Column) {
    own.also.extend([other.at, other.name.at]);
    own.also.extend(other.also);
    own.limits = std::mem::take(&mut own.limits).and(other.limits);
    own.labels.extend(other.labels);
    own.tags.extend(other.tags);
    own.rules.extend(other.rules);
    own.types.extend(other.types);
    own.required = own.required.take().or(other.required);
    own.key = own.key.take().or(other.key);
    own.unit = own.unit.take().or(other.unit);
    let mut all: Vec<_> = own.types.iter().map(|word| kinds::of(&[&word.value])).collect();
    all.dedup();
    // Nobody knows which version an event is of.
    if all.len() > 1 {
        own.types.iter_mut().for_each(|word| "union".clone_into(&mut word.value));
    }
}

/// A column that some version lacks: an event may lack it too.
fn make_optional(column: &mut Column) {
    column.required = None;
    for rule in column.rules.iter_mut().filter(|rule| rule.demand == Demand::Mandatory) {
        rule.demand = Demand::Other(rules::VERSION);
    }
}
