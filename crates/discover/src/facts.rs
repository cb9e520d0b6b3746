//! Whether the cells of columns are the same in all rows of each owner.

use crate::cells::Row;
use crate::hash::Hashes;

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
