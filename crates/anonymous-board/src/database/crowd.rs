//! The crowd that an epoch must hide: what came to this server before it closed, and how much of it
//! remains. Writes forwarded later count for nothing here, because they may all belong to one
//! party.

use super::epoch::EpochState;
use super::records;
use crate::configuration::{Board, Party};
use crate::messages::{BurnReason, Tag, WriteName};
use alpheus_crypto::ledger::Change;
use std::collections::BTreeSet;

/// Quotas that came without a write that this server could accept: it rejected their write, or
/// their writer left a knock because another server does not answer. Nobody can tell whose fault a
/// rejection is: a server that withholds its Begin, or makes two, causes the rejection of any writes
/// that it chooses.
#[derive(Default)]
pub(super) struct OtherQuotas {
    tags: BTreeSet<Tag>,
    /// Those that the ledger does not have yet.
    unsaved: Vec<Tag>,
}

/// What the remaining writes are.
#[derive(Clone, Copy)]
pub(super) enum CrowdStage {
    /// Those that all servers have.
    Candidates,
    /// Those of them that passed the audit.
    Accepted,
}

impl OtherQuotas {
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
    /// The quotas without a write that the ledger does not have yet.
    pub(super) fn unsaved(&mut self) -> Vec<Change> {
        let epoch = self.transcript.epoch();
        let unsaved = self.other_quotas.unsaved.drain(..);
        unsaved.map(|tag| records::other_quota(epoch, &tag)).collect()
    }

    /// Deletes them.
    pub(super) fn forget_other_quotas(&mut self) -> Vec<Change> {
        let epoch = self.transcript.epoch();
        let tags = std::mem::take(&mut self.other_quotas).tags;
        tags.iter().map(|tag| records::remove_other_quota(epoch, tag)).collect()
    }

    /// How many quotas have come here.
    pub(super) fn came(&self) -> usize {
        let without = |tag: &&Tag| !self.tags.contains_key(*tag);
        self.writes.len() + self.other_quotas.tags.iter().filter(without).count()
    }

    /// Why the remaining writes (sorted) are too few, if they are. With less than half of what came
    /// here, the crowd would be of somebody else's choice.
    pub(super) fn too_few(
        &self,
        board: &Board,
        own: Party,
        left: &[WriteName],
        stage: CrowdStage,
    ) -> Option<BurnReason> {
        if left.len() < board.min_writes as usize {
            return Some(BurnReason::TooFew);
        }
        let (came, left) = self.crowd(own, left)?;
        (left.saturating_mul(2) < came).then_some(match (own, stage) {
            (Party::Database(side), CrowdStage::Candidates) => {
                BurnReason::Thinned(side.other().into())
            }
            _ => BurnReason::Dwindled,
        })
    }

    /// How many quotas came here before this server closed, and how many of them have a write among
    /// the remaining ones.
    fn crowd(&self, own: Party, left: &[WriteName]) -> Option<(usize, usize)> {
        let closed: BTreeSet<&WriteName> = self.transcript.closing_list(own)?.iter().collect();
        let is_left = |name: &&WriteName| left.binary_search(name).is_ok();
        let (mut came, mut remaining) =
            (closed.len(), closed.iter().copied().filter(is_left).count());
        for tag in &self.other_quotas.tags {
            // Another server may have forwarded it since.
            let name = self.tags.get(tag);
            if name.is_some_and(|name| closed.contains(name)) {
                continue;
            }
            came += 1;
            remaining += usize::from(name.filter(is_left).is_some());
        }
        Some((came, remaining))
    }
}
