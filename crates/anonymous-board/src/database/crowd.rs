//! Whose writes an epoch is to hide: what came to this server itself, before it closed, and
//! how much of that is left. What others hand on later may be somebody's own and counts for
//! nothing here.

use super::records;
use super::running::Running;
use crate::configuration::{Party, Pinned};
use crate::messages::{Tag, Why, WriteName};
use alpheus_crypto::ledger::Change;
use std::collections::BTreeSet;

/// Quotas of which a write came here and was refused: by whose doing nobody can tell, since a
/// server that keeps its Begin back, or has two, has all writes refused that it chooses.
#[derive(Default)]
pub(super) struct TurnedAway {
    tags: BTreeSet<Tag>,
    /// Those of them that the ledger does not have.
    unsaved: Vec<Tag>,
}

impl TurnedAway {
    /// Notes one, once.
    pub(super) fn note(&mut self, tag: Tag) {
        if self.tags.insert(tag) {
            self.unsaved.push(tag);
        }
    }

    /// One that the ledger has.
    pub(super) fn put_back(&mut self, tag: Tag) {
        self.tags.insert(tag);
    }
}

impl Running {
    /// What the ledger does not have yet of quotas whose write was refused.
    pub(super) fn unsaved(&mut self) -> Vec<Change> {
        let epoch = self.transcript.epoch();
        let unsaved = self.turned_away.unsaved.drain(..);
        unsaved.map(|tag| records::turned_away(epoch, &tag)).collect()
    }

    /// Forgets them.
    pub(super) fn forget_turned_away(&mut self) -> Vec<Change> {
        let epoch = self.transcript.epoch();
        let tags = std::mem::take(&mut self.turned_away).tags;
        tags.iter().map(|tag| records::no_turned_away(epoch, tag)).collect()
    }

    /// Why what is left of the writes, sorted, is too few, if it is: less than half of what
    /// had come would be a crowd of somebody else's choice.
    pub(super) fn too_few(&self, board: &Pinned, own: Party, left: &[WriteName]) -> Option<Why> {
        if left.len() < board.fewest as usize {
            return Some(Why::TooFew);
        }
        let (came, left) = self.crowd(own, left)?;
        (left.saturating_mul(2) < came).then_some(match own {
            Party::Database(side) => Why::Thinned(side.other().into()),
            _ => Why::Dwindled,
        })
    }

    /// How many quotas were to be spent here before this server closed, and for how many of
    /// them a write is among these.
    fn crowd(&self, own: Party, left: &[WriteName]) -> Option<(usize, usize)> {
        let closed: BTreeSet<&WriteName> = self.transcript.closed(own)?.iter().collect();
        let is_left = |name: &&WriteName| left.binary_search(name).is_ok();
        let (mut came, mut through) =
            (closed.len(), closed.iter().copied().filter(is_left).count());
        for tag in &self.turned_away.tags {
            // Another server may have handed it on since.
            let name = self.tags.get(tag);
            if name.is_some_and(|name| closed.contains(name)) {
                continue;
            }
            came += 1;
            through += usize::from(name.filter(is_left).is_some());
        }
        Some((came, through))
    }
}
