//! What can group owners: columns that are the same in all rows of each.

use crate::possible_facts::has_crowds;
use crate::understanding::Understanding;

/// Owners with several rows each who prove that numbers describe them and are no readings.
const MIN_OWNERS: u64 = 10;

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
        "`{name}` has few different values and is the same in all rows of each owner. It may describe the owners, as the group of a trial or a tariff does. It is measured all the same; README.md says how to group by it."
    )
}
