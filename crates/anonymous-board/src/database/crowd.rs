//! The crowd that an epoch must hide: the writes that this server received before it closed, and
//! how many of them remain. Writes forwarded later count for nothing here, because they may all
//! belong to one party.

use super::epoch::EpochState;
use super::records;
use crate::configuration::{Board, Party};
use crate::messages::{BurnReason, Tag, WriteName};
use alpheus_crypto::ledger::Change;
use std::collections::BTreeSet;

/// Quotas with a write that this server refused. Nobody can tell whose fault a refusal is: a server
/// that withholds its Begin, or makes two, causes the refusal of any writes that it chooses.
#[derive(Default)]
pub(super) struct RefusedQuotas {
    tags: BTreeSet<Tag>,
    /// Those that the ledger does not have yet.
    unsaved: Vec<Tag>,
}

impl RefusedQuotas {
    /// Notes a quota once.
    pub(super) fn note(&mut self, tag: Tag) {
        if self.tags.insert(tag) {
            self.unsaved.push(tag);
        }
    }

    /// Restores a quota from the ledger.
    pub(super) fn replay(&mut self, tag: Tag) {
        self.tags.insert(tag);
    }
}

impl EpochState {
    /// The refused quotas that the ledger does not have yet.
    pub(super) fn unsaved(&mut self) -> Vec<Change> {
        let epoch = self.transcript.epoch();
        let unsaved = self.refused_quotas.unsaved.drain(..);
        unsaved.map(|tag| records::refused_quota(epoch, &tag)).collect()
    }

    /// Deletes them.
    pub(super) fn forget_refused_quotas(&mut self) -> Vec<Change> {
        let epoch = self.transcript.epoch();
        let tags = std::mem::take(&mut self.refused_quotas).tags;
        tags.iter().map(|tag| records::remove_refused_quota(epoch, tag)).collect()
    }

    /// Why the remaining writes (sorted) are too few, if they are. With less than half of the
    /// writes that arrived, the crowd would be of somebody else's choice.
    pub(super) fn too_few(
        &self,
        board: &Board,
        own: Party,
        left: &[WriteName],
    ) -> Option<BurnReason> {
        if left.len() < board.min_writes as usize {
            return Some(BurnReason::TooFew);
        }
        let (arrived, left) = self.crowd(own, left)?;
        (left.saturating_mul(2) < arrived).then_some(match own {
            Party::Database(side) => BurnReason::Thinned(side.other().into()),
            _ => BurnReason::Dwindled,
        })
    }

    /// How many quotas arrived here before this server closed, and how many of them have a write
    /// among the remaining ones.
    fn crowd(&self, own: Party, left: &[WriteName]) -> Option<(usize, usize)> {
        let closed: BTreeSet<&WriteName> = self.transcript.closing_list(own)?.iter().collect();
        let is_left = |name: &&WriteName| left.binary_search(name).is_ok();
        let (mut arrived, mut remaining) =
            (closed.len(), closed.iter().copied().filter(is_left).count());
        for tag in &self.refused_quotas.tags {
            // Another server may have forwarded it since.
            let name = self.tags.get(tag);
            if name.is_some_and(|name| closed.contains(name)) {
                continue;
            }
            arrived += 1;
            remaining += usize::from(name.filter(is_left).is_some());
        }
        Some((arrived, remaining))
    }
}
