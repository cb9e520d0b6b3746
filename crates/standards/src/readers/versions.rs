//! Versions of a model. Their columns stand beside the model's own, and the strictest of all that is
//! said of a column holds.

use super::rules;
use crate::contract::{Column, Demand};
use crate::cursor::Cursor;
use crate::kinds;
use crate::sensitivity::texts;
use std::collections::{HashMap, HashSet};

/// A version: the columns that it describes, and which of the model's it has.
pub(super) struct Version<'a> {
    /// Its own columns.
    pub(super) columns: Vec<Column>,
    /// Its list of columns, with what it includes and excludes.
    pub(super) list: Vec<Cursor<'a>>,
}

/// Adds the columns of all versions to those of their model. Capitals do not tell names apart.
pub(super) fn join(columns: &mut Vec<Column>, versions: Vec<Version<'_>>) {
    let own: HashSet<String> = columns.iter().map(|column| folded(&column.name.value)).collect();
    let mut places = HashMap::new();
    for (place, column) in columns.iter().enumerate() {
        places.entry(folded(&column.name.value)).or_insert(place);
    }
    let mut selections = Vec::new();
    for version in versions {
        selections.push(Selection::of(&version));
        for column in version.columns {
            let next = columns.len();
            let place = *places.entry(folded(&column.name.value)).or_insert(next);
            match columns.get_mut(place) {
                Some(own) => add(own, column),
                None => columns.push(column),
            }
        }
    }
    for column in columns {
        let name = folded(&column.name.value);
        let has = |version: &Selection| {
            version.listed.contains(&name) || own.contains(&name) && version.includes(&name)
        };
        if !selections.iter().all(has) {
            make_optional(column);
        }
    }
}

fn folded(name: &str) -> String {
    name.to_ascii_lowercase()
}

/// Which columns a version has.
struct Selection {
    /// Those that it describes.
    listed: HashSet<String>,
    /// Those of its model: all, unless `include` or `exclude` says otherwise.
    included: Option<Names>,
    excluded: Option<Names>,
}

/// Names in a list, or all of them.
struct Names {
    is_all: bool,
    names: HashSet<String>,
}

impl Selection {
    fn of(version: &Version<'_>) -> Selection {
        let names = |key: &str| {
            let stated = version.list.iter().find_map(|item| item.get(key))?;
            let words = texts(&stated);
            let is_all = words.iter().any(|word| matches!(word.value.as_str(), "all" | "*"));
            Some(Names { is_all, names: words.iter().map(|word| folded(&word.value)).collect() })
        };
        Selection {
            listed: version.columns.iter().map(|column| folded(&column.name.value)).collect(),
            included: names("include"),
            excluded: names("exclude"),
        }
    }

    fn includes(&self, name: &str) -> bool {
        let is_in = |own: &Names| own.is_all || own.names.contains(name);
        self.included.as_ref().is_none_or(is_in) && !self.excluded.as_ref().is_some_and(is_in)
    }
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
