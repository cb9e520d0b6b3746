//! How large an epoch's crowd is, from the databases' statements.

use super::Transcript;
use crate::configuration::Party;
use crate::messages::{Body, WriteName};
use std::collections::BTreeSet;

/// The writes of an epoch at each stage. All three count what one party may have sent under many
/// names, so they are upper bounds: a member's crowd is the part of `accepted` that is not the
/// opponent's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crowd {
    /// The writes in the table.
    pub accepted: usize,
    /// The writes that some database listed when it closed.
    pub listed: usize,
    /// The most quotas that came to one database before it closed, rejected writes and knocks
    /// included.
    pub came: usize,
}

impl Transcript {
    /// The crowd of an epoch with a set.
    #[must_use]
    pub fn crowd(&self) -> Option<Crowd> {
        let accepted = self.set()?.ok()?.accepted.len();
        let databases = || self.board.databases().iter();
        let listed: BTreeSet<&WriteName> =
            databases().filter_map(|by| self.closing_list(*by)).flatten().collect();
        let came = databases().filter_map(|by| self.came(*by)).max().unwrap_or(0);
        Some(Crowd { accepted, listed: listed.len(), came })
    }

    /// How many quotas came to a database before it closed.
    fn came(&self, by: Party) -> Option<usize> {
        match self.by(by, Body::CLOSE)? {
            // A rejected write came too, so there are no fewer than were accepted.
            Body::Close { writes, came } => {
                Some(writes.len().max(usize::try_from(*came).unwrap_or(usize::MAX)))
            }
            _ => None,
        }
    }

    /// A database of whose writes the set holds fewer than half of what had come to it, if there is
    /// one: the crowd may be of somebody else's choice. Nobody outside sees which of the accepted
    /// writes a rejected quota or a knock belongs to, so all that can be are counted.
    #[must_use]
    pub fn thinned(&self) -> Option<Party> {
        let set = self.set()?.ok()?;
        let is_thinned = |by: &Party| {
            let (Some(closed), Some(came)) = (self.closing_list(*by), self.came(*by)) else {
                return false;
            };
            let kept = closed.iter().filter(|name| set.accepted.binary_search(name).is_ok());
            let kept = kept.count().saturating_add(came - closed.len());
            kept.min(set.accepted.len()).saturating_mul(2) < came
        };
        self.board.databases().iter().copied().find(is_thinned)
    }
}
