//! Which columns may describe owners, before their rows are compared.

use crate::columns::SortedColumns;
use crate::facts::Fact;
use crate::profile::{Column, Profile};
use crate::tally::Values;

/// Different numbers of a column that may describe owners, at most.
const MAX_NUMBERS: u64 = 12;
/// Owners of a group, as policies ask for.
const CROWD: u64 = 10;

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
pub(crate) fn has_crowds(values: u64, owners: u64) -> bool {
    values > 1 && values.saturating_mul(owners.min(CROWD)) <= owners
}
