//! Columns of numbers with one for each owner, and another for each: they name or describe owners.

use crate::form::Form;
use crate::hash::{Hashes, Map, Set};
use crate::profile::{Column, Profile};
use crate::scan::{ScannedRow, scan};

/// Owners who prove it.
const MIN_OWNERS: usize = 10;
/// Columns that are looked at.
const MAX_TRIED: usize = 16;

/// Finds them.
pub(crate) fn find(
    (text, form): (&str, &Form),
    profile: &Profile,
    owner: Option<usize>,
) -> Vec<usize> {
    let Some(owner) = owner else { return Vec::new() };
    let owners = profile.columns[owner].distinct();
    let likely = |(at, column): &(usize, &Column)| {
        let many = column.distinct() >= MIN_OWNERS as u64 && column.distinct() * 2 <= profile.rows;
        *at != owner && column.is_integer() && many && column.distinct() <= owners
    };
    let tried = profile.columns.iter().enumerate().filter(likely).take(MAX_TRIED);
    let mut found: Vec<(usize, Map<u64, u64>)> =
        tried.map(|(at, _)| (at, Map::default())).collect();
    let hashes = Hashes::default();
    scan(text, form, |_, scanned| {
        let ScannedRow::Row(row) = scanned else { return true };
        let cell = |at: usize| row.get(at).map_or("", AsRef::as_ref);
        let whose = hashes.of(cell(owner));
        found.retain_mut(|(at, known)| {
            let own = hashes.of(cell(*at));
            cell(*at).is_empty() || *known.entry(whose).or_insert(own) == own
        });
        !found.is_empty()
    });
    let injective = |known: &Map<u64, u64>| {
        let values: Set<u64> = known.values().copied().collect();
        values.len() == known.len() && known.len() >= MIN_OWNERS
    };
    found.into_iter().filter(|(_, known)| injective(known)).map(|(at, _)| at).collect()
}
