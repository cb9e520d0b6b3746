//! What time asks for: aggregates end, keys are destroyed, and what is over is forgotten.

use super::records;
use super::running::Running;
use super::{Output, Smoother, is_out};
use crate::configuration::KeyEpoch;
use crate::messages::Reason;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, Step};
use alpheus_crypto::signed::Signed;

impl Smoother {
    /// What time asks for: aggregates end at their deadlines, and keys of past key epochs are
    /// destroyed.
    pub fn poll(&mut self, now: Time) -> Step<Vec<Output>> {
        let (mut changes, mut outputs) = (self.prune(now), Vec::new());
        for running in self.running.values_mut() {
            if now < running.agreed().deadline() {
                continue;
            }
            if running.outcome().is_none() && !is_out(self.sits_out, running) {
                let filled = running.is_filled(&self.pinned);
                let reason = if filled { Reason::Late } else { Reason::NotFilled };
                let (change, outcome) = running.end(Err(reason));
                changes.push(change);
                outputs.push(Output::Outcome(Signed::new(&outcome, &self.key)));
            }
            changes.extend(running.forget());
        }
        changes.extend(self.erase(now));
        Step::new(changes, outputs)
    }

    /// Forgets key epochs in which no aggregate can be asked about any more: as long after the last
    /// deadline as there is time up to one. It learns nothing of these again, or it would not know
    /// what it has signed.
    fn prune(&mut self, now: Time) -> Vec<Change> {
        let after = self.pinned.limits.after;
        let since = Time(now.0.saturating_sub(after.saturating_mul(2)));
        let first = self.pinned.key_epoch(since).unwrap_or(self.first).max(self.first);
        if first == self.first {
            return Vec::new();
        }
        self.first = first;
        let mut changes = vec![records::begun(self.sits_out, first)];
        let later = self.keys.split_off(&first);
        for epoch in std::mem::replace(&mut self.keys, later).into_keys() {
            changes.extend(records::no_key(epoch));
        }
        let over = self.running.extract_if(.., |_, running| running.agreed().key_epoch < first);
        let over: Vec<(Digest, Running)> = over.collect();
        for (name, mut running) in over {
            changes.extend(running.forget());
            changes.extend(running.forget_all(&name));
        }
        let border = self.pinned.start_of(first);
        let claims = self.claims.extract_if(.., |_, claimed| claimed.end <= border);
        changes.extend(claims.map(|(name, _)| records::no_claim(&name)));
        changes
    }

    /// Destroys shares of key epochs that are over, with all aggregates in them.
    fn erase(&mut self, now: Time) -> Vec<Change> {
        let Some(running) = self.pinned.key_epoch(now) else { return Vec::new() };
        let open = |epoch: &KeyEpoch| {
            self.running.values().any(|running| {
                let agreed = running.agreed();
                agreed.key_epoch == *epoch && now < agreed.deadline()
            })
        };
        let over: Vec<KeyEpoch> = self
            .keys
            .range(..running)
            .map(|(epoch, _)| *epoch)
            .filter(|epoch| !open(epoch))
            .collect();
        let mut changes = Vec::new();
        for epoch in over {
            if let Some(key) = self.keys.get_mut(&epoch).filter(|key| !key.card.erased) {
                changes.extend(key.destroy(epoch));
            }
        }
        changes
    }
}
