//! What time demands: aggregates end, keys are destroyed, and what is over is forgotten.

use super::aggregate::AggregateState;
use super::records;
use super::{Output, Smoother, is_out};
use crate::configuration::KeyEpoch;
use crate::messages::NoResultError;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, Step};
use alpheus_crypto::signed_message::Signed;
use alpheus_time::{Span, Timestamp};

impl Smoother {
    /// Ends aggregates at their deadlines, destroys the keys of past key epochs and prunes what is
    /// over.
    pub fn poll(&mut self, now: Timestamp) -> Step<Vec<Output>> {
        let (mut changes, mut outputs) = (self.prune(now), Vec::new());
        for state in self.aggregates.values_mut() {
            if now < state.definition().deadline() {
                continue;
            }
            if state.outcome().is_none() && !is_out(self.sits_out, state) {
                let filled = state.is_filled(&self.pinned);
                let reason = if filled { NoResultError::Late } else { NoResultError::NotFilled };
                let (change, outcome) = state.end(Err(reason));
                changes.push(change);
                outputs.push(Output::Outcome(Signed::new(&outcome, &self.key)));
            }
            changes.extend(state.forget());
        }
        changes.extend(self.erase(now));
        Step::new(changes, outputs)
    }

    /// When to poll next: earlier polls change nothing, unless a message arrives first.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        let open = |state: &&AggregateState| {
            let ends = state.outcome().is_none() && !is_out(self.sits_out, state);
            ends || state.has_records()
        };
        let ends = self.aggregates.values().filter(open);
        let ends = ends.map(|state| state.definition().deadline());
        let keys = self.keys.iter().filter(|(_, key)| !key.card.erased);
        let erasures = keys.map(|(epoch, _)| self.erasure(*epoch));
        let pruning = self.end_of(self.first_epoch).plus(self.kept_after());
        ends.chain(erasures).chain([pruning]).min()
    }

    fn end_of(&self, epoch: KeyEpoch) -> Timestamp {
        self.pinned.start_of(KeyEpoch(epoch.0.saturating_add(1)))
    }

    /// How long a key epoch is remembered after its end.
    fn kept_after(&self) -> Span {
        Span(self.pinned.limits.max_closing.0.saturating_mul(2))
    }

    /// When a key epoch's share is destroyed.
    fn erasure(&self, epoch: KeyEpoch) -> Timestamp {
        let aggregates = self.aggregates.values().map(AggregateState::definition);
        let deadlines = aggregates.filter(|it| it.key_epoch == epoch).map(|it| it.deadline());
        deadlines.fold(self.end_of(epoch), Timestamp::max)
    }

    /// Prunes key epochs whose aggregates nobody can ask about any more: twice the longest closing
    /// time after their end. It learns nothing of them again, or it would not know what it has
    /// signed.
    fn prune(&mut self, now: Timestamp) -> Vec<Change> {
        let since = Timestamp(now.0.saturating_sub(self.kept_after().0));
        let first = self.pinned.key_epoch(since).unwrap_or(self.first_epoch).max(self.first_epoch);
        if first == self.first_epoch {
            return Vec::new();
        }
        self.first_epoch = first;
        let mut changes = vec![records::begun(self.sits_out, first)];
        let later = self.keys.split_off(&first);
        for epoch in std::mem::replace(&mut self.keys, later).into_keys() {
            changes.extend(records::no_key(epoch));
        }
        let over = self.aggregates.extract_if(.., |_, state| state.definition().key_epoch < first);
        let over: Vec<(Digest, AggregateState)> = over.collect();
        for (name, mut state) in over {
            changes.extend(state.forget());
            changes.extend(state.remove_all(&name));
        }
        let border = self.pinned.start_of(first);
        let claims = self.claims.extract_if(.., |_, claimed| claimed.end <= border);
        changes.extend(claims.map(|(name, _)| records::no_claim(&name)));
        changes
    }

    /// Destroys shares of key epochs that are over together with all their aggregates.
    fn erase(&mut self, now: Timestamp) -> Vec<Change> {
        let over: Vec<KeyEpoch> =
            self.keys.keys().copied().filter(|epoch| self.erasure(*epoch) <= now).collect();
        let mut changes = Vec::new();
        for epoch in over {
            if let Some(key) = self.keys.get_mut(&epoch).filter(|key| !key.card.erased) {
                changes.extend(key.destroy(epoch));
            }
        }
        changes
    }
}
