//! What may describe owners: columns whose cells are the same in all rows of each owner can group them.

use crate::cells::Row;
use crate::columns::SortedColumns;
use crate::hash::Hashes;
use crate::profile::{Column, Profile};
use crate::tally::Values;
use crate::understanding::Understanding;

/// Different numbers of a column that may describe owners, at most.
const MAX_NUMBERS: u64 = 12;
/// Owners with several rows each who prove that numbers describe them and are no readings.
const MIN_OWNERS: u64 = 10;
/// Owners of a group, as policies ask for.
const CROWD: u64 = 10;

/// A column that may describe owners.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    /// Its position.
    pub column: usize,
    /// Its different values.
    pub values: u64,
    /// Rows that differ from the first of their owner. A replay refuses them, so an empty cell differs too.
    pub changes: u64,
}

/// Compares a row with the first of its owner, whose cells are known by their hashes.
pub(crate) fn compare(facts: &mut [Fact], first: &mut Vec<u64>, row: &Row<'_>, hashes: &Hashes) {
    for (at, fact) in facts.iter_mut().enumerate() {
        let own = hashes.of(row.get(fact.column).map_or("", AsRef::as_ref));
        match first.get(at) {
            None => first.push(own),
            Some(known) => fact.changes += u64::from(*known != own),
        }
    }
}

/// The columns that are worth a look: categories, and few whole numbers or yes and no.
pub(crate) fn worth_a_look(
    profile: &Profile,
    sorted: &SortedColumns,
    owner: Option<usize>,
) -> Vec<Fact> {
    let Some(owners) = owner.map(|at| profile.columns[at].distinct()) else { return Vec::new() };
    let is_category = |name: &str| sorted.categories.iter().any(|(own, _)| own == name);
    let is_measured =
        |at: usize| sorted.wanted.iter().any(|own| own.column == at && own.values != Values::Text);
    let few = |column: &Column| {
        column.distinct() <= MAX_NUMBERS && (column.is_integer() || column.is_truth())
    };
    let may_describe = |(at, column): &(usize, &Column)| {
        let known = is_category(&column.name) || (is_measured(*at) && few(column));
        known && has_crowds(column.distinct(), owners)
    };
    let all = profile.columns.iter().enumerate().filter(may_describe);
    all.map(|(column, own)| Fact { column, values: own.distinct(), changes: 0 }).collect()
}

/// Whether groups may have enough owners. Of a name, none would.
fn has_crowds(values: u64, owners: u64) -> bool {
    values > 1 && values.saturating_mul(owners.min(CROWD)) <= owners
}

/// The columns that can group owners, and the categories that cannot.
#[derive(Default)]
pub(crate) struct Groups<'u> {
    /// The columns that can, each with its name as an attribute if it is measured too.
    pub offered: Vec<(&'u str, Option<&'u str>)>,
    /// The categories that cannot, each with the number of rows that differ from the first of their owner.
    pub changing: Vec<(&'u str, u64)>,
}

impl Understanding {
    /// What can group owners.
    pub(crate) fn groups(&self) -> Groups<'_> {
        let mut found = Groups::default();
        if self.wide.is_some() || self.owner.is_none() {
            return found;
        }
        let is_open = |name: &str| {
            let quoted = format!("`{name}`");
            self.questions.iter().any(|asked| asked.contains(&quoted))
        };
        for fact in self.tally.facts.iter().filter(|own| has_crowds(own.values, self.tally.owners))
        {
            let name = self.names.get(fact.column).map(String::as_str);
            let Some(name) = name.filter(|name| !is_open(name)) else { continue };
            let measured = self.attributes.iter().find(|own| own.column == name);
            match (measured, fact.changes) {
                (None, 0) => found.offered.push((name, None)),
                (None, changes) => found.changing.push((name, changes)),
                (Some(own), 0) if self.tally.several >= MIN_OWNERS => {
                    found.offered.push((name, Some(&own.name)));
                }
                (Some(_), _) => {}
            }
        }
        found
    }

    /// What to say of numbers that may describe owners.
    pub(crate) fn say_groups(&mut self) {
        let groups = self.groups();
        let measured = groups.offered.iter().filter(|(_, attribute)| attribute.is_some());
        let notes: Vec<String> = measured.map(|(name, _)| describes(name)).collect();
        self.notes.extend(notes);
    }
}

fn describes(name: &str) -> String {
    format!(
        "`{name}` has few different values and is the same in all rows of each owner, so it may describe the owners, such as the group of a trial or a tariff. It is measured all the same; README.md says how to group by it."
    )
}
