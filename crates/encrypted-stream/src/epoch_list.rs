//! The list of an epoch, and the plan that follows from it.

use std::collections::BTreeSet;

use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_policy::ids::{OwnerId, StreamId};
use alpheus_policy::plan::{Epoch, MaskStrategy, Plan, PlannedStream};
use alpheus_time::Window;

use crate::counts::narrow;
use crate::error::{PlanRefusalError, PlanShapeError};
use crate::messages::{List, ListEntry};

/// The most windows of an epoch. Longer epochs await a rule that loses no windows.
pub const MAX_WINDOWS: u32 = 1;

/// Checks that a plan can be the terms of epochs: it names no roster, no streams and no masks,
/// neither running totals nor noise, no consumer of its own and no condition.
///
/// # Errors
/// [`PlanShapeError::Terms`], [`PlanShapeError::ConditionInEpoch`], or
/// [`PlanShapeError::NoiseInEpoch`].
pub fn check_terms(terms: &Plan) -> Result<(), PlanShapeError> {
    let named = !terms.roster.is_empty() || !terms.streams.is_empty() || terms.epoch.is_some();
    if named || terms.masks != MaskStrategy::Single {
        return Err(PlanShapeError::Terms);
    }
    // A member would not hold its streams, or its owners' grants, against these.
    if terms.sealed_to.is_some() || !terms.selection.steps.is_empty() {
        return Err(PlanShapeError::ConditionInEpoch);
    }
    // A restored ledger could not tell which epochs it lacks, and so not what they cost.
    if terms.privacy.is_some() { Err(PlanShapeError::NoiseInEpoch) } else { Ok(()) }
}

/// Whether an epoch of these terms may begin with this window and have this many.
pub(crate) fn is_epoch_of(terms: &Plan, window: Window, windows: u32) -> bool {
    let size = terms.window.0;
    (1..=MAX_WINDOWS).contains(&windows)
        && size > 0
        && window == terms.window_at(window.start)
        && window.end <= alpheus_time::Timestamp::LIMIT
        && window.start.0.is_multiple_of(size)
        && window.start >= terms.from
}

/// H(A_e): binds the list to its terms and its windows.
#[must_use]
pub fn list_digest(list: &List) -> Digest {
    let entries: Vec<u8> = list.entries.iter().flat_map(entry_bytes).collect();
    let (start, windows) = (list.window.start.0.to_be_bytes(), list.windows.to_be_bytes());
    labelled_hash(labels::EPOCH_LIST, &[&list.terms.0, &start, &windows, &entries])
}

fn entry_bytes(entry: &ListEntry) -> Vec<u8> {
    let mut bytes = [entry.controller.0, entry.agreement.0].concat();
    bytes.extend(narrow(entry.owners.len()).to_be_bytes());
    for listed in &entry.owners {
        bytes.extend(listed.owner.0);
        bytes.extend(narrow(listed.streams.len()).to_be_bytes());
        listed.streams.iter().for_each(|stream| bytes.extend(stream.0));
    }
    bytes
}

/// The plan of an epoch: the terms, with the list as roster. Everybody who has both computes
/// the same.
///
/// # Errors
/// [`PlanRefusalError`] that names the first entry that is wrong.
pub fn plan_of(terms: &Plan, list: &List) -> Result<Plan, PlanRefusalError> {
    check_terms(terms).map_err(PlanRefusalError::Malformed)?;
    let id = terms.id();
    if list.terms != id || !is_epoch_of(terms, list.window, list.windows) {
        return Err(PlanRefusalError::Malformed(PlanShapeError::Epoch));
    }
    if matches!(list.masks, MaskStrategy::Neighbours { .. }) {
        return Err(PlanRefusalError::PicksInEpoch);
    }
    check_entries(&list.entries)?;
    let mut streams: Vec<PlannedStream> = Vec::new();
    for (controller, entry) in (0_u32..).zip(&list.entries) {
        for listed in &entry.owners {
            let owner = listed.owner;
            let planned = |stream: &StreamId| PlannedStream { stream: *stream, owner, controller };
            streams.extend(listed.streams.iter().map(planned));
        }
    }
    streams.sort_unstable_by_key(|planned| planned.stream);
    let epoch = Epoch { terms: id, list: list_digest(list).0, windows: list.windows };
    Ok(Plan {
        from: list.window.start,
        masks: list.masks,
        epoch: Some(epoch),
        roster: list.entries.iter().map(|entry| entry.controller).collect(),
        streams,
        ..terms.clone()
    })
}

/// Entries ascend, each with owners and these with streams, and nobody is in two of them: two
/// controllers would both count that owner.
fn check_entries(entries: &[ListEntry]) -> Result<(), PlanRefusalError> {
    let (mut owners, mut streams) = (BTreeSet::<OwnerId>::new(), BTreeSet::<StreamId>::new());
    let mut last = None;
    for (position, entry) in (0_u32..).zip(entries) {
        let ascends = entry.owners.windows(2).all(|p| matches!(p, [a, b] if a.owner < b.owner));
        let full = !entry.owners.is_empty()
            && entry.owners.iter().all(|listed| {
                !listed.streams.is_empty() && listed.streams.is_sorted_by(|a, b| a < b)
            });
        if last.is_some_and(|last| last >= entry.controller) || !ascends || !full {
            return Err(PlanRefusalError::Entry { position });
        }
        last = Some(entry.controller);
        for listed in &entry.owners {
            if !owners.insert(listed.owner) {
                return Err(PlanRefusalError::OwnerInTwoEntries { position });
            }
            if !listed.streams.iter().all(|stream| streams.insert(*stream)) {
                return Err(PlanRefusalError::Entry { position });
            }
        }
    }
    Ok(())
}
