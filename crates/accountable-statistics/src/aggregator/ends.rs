//! How aggregates ended: what smoothers say of it, and what everybody may know.

use super::{AggregateState, Aggregator, PUBLISHED, record};
use crate::configuration::{PinnedConfiguration, SmootherId};
use crate::endorsement::Endorsed;
use crate::messages::{Outcome, encode};
use crate::publication::Publication;
use crate::role_error::StatementError;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, Step};
use alpheus_crypto::signed_message::Signed;
use serde::{Deserialize, Serialize};

/// What one smoother says of an end.
pub(super) struct SignedOutcome {
    outcome: Outcome,
    signed: Signed<Outcome>,
}

/// The record of an end: how, and who has signed what about it.
#[derive(Serialize, Deserialize)]
pub(super) struct EndRecord {
    outcome: Outcome,
    signed: Endorsed<Outcome>,
}

impl Aggregator {
    /// Handles a smoother's report of how an aggregate ended. t equal ones are published.
    ///
    /// # Errors
    /// [`StatementError`].
    pub fn handle_outcome(
        &mut self,
        signed: &Signed<Outcome>,
        by: SmootherId,
    ) -> Result<Step<Option<Outcome>>, StatementError> {
        if let Some(known) = self.known_end(signed, by) {
            return Ok(Step::new(Vec::new(), known));
        }
        let key = self.pinned.key(by).ok_or(StatementError::Signature(by))?;
        let outcome = signed.open(key).map_err(|_| StatementError::Signature(by))?.into_inner();
        let threshold = usize::from(self.pinned.threshold);
        let name = outcome.aggregate;
        let state = self.state_of(&name).map_err(|_| StatementError::Unknown)?;
        let known = state.outcomes.get(&by).map(|known| known.outcome);
        if known.is_some_and(|known| known != outcome) {
            return Err(StatementError::Equivocation(by));
        }
        state.outcomes.insert(by, SignedOutcome { outcome, signed: signed.clone() });
        let alike = state.outcomes.values().filter(|other| other.outcome == outcome).count();
        // Some smoothers may have run out of time while others have a result: the result wins.
        let better =
            state.outcome.is_none_or(|known| known.result.is_err() && outcome.result.is_ok());
        if alike >= threshold && better {
            state.outcome = Some(outcome);
            state.shown = None;
            state.sealed.clear();
            state.ledgers.clear();
            self.ended.push(name);
        } else if known.is_some() || state.outcome.is_none() {
            return Ok(Step::new(Vec::new(), state.outcome));
        }
        // Readers count the signatures.
        let Some(state) = self.aggregates.get(&name) else { return Err(StatementError::Unknown) };
        Ok(Step::new(state.end_record(&name).into_iter().collect(), state.outcome))
    }

    /// How an aggregate ended, as far as it is known, if this smoother has said just this before: its
    /// outcomes are fetched again and again, and their signatures need no second look.
    fn known_end(&self, signed: &Signed<Outcome>, by: SmootherId) -> Option<Option<Outcome>> {
        let name = signed.dangerous_unverified()?.aggregate;
        let state = self.aggregates.get(&name).filter(|_| self.node.has(&name))?;
        let known = state.outcomes.get(&by)?;
        (known.signed.digest() == signed.digest()).then_some(state.outcome)
    }

    /// The aggregates whose outcome has changed since this was called last.
    pub fn take_ended(&mut self) -> Vec<Digest> {
        std::mem::take(&mut self.ended)
    }

    /// What everybody may know of an aggregate, with what its smoothers have signed.
    #[must_use]
    pub fn publication(&self, name: &Digest) -> Option<Publication> {
        let state = self.aggregates.get(name)?;
        let outcomes = state.signed_end();
        let claimed = state.outcome.and_then(|outcome| outcome.result.err());
        Some(Publication { definition: state.signed.clone(), outcomes, claimed })
    }

    /// How an aggregate ended.
    #[must_use]
    pub fn outcome(&self, name: &Digest) -> Option<Outcome> {
        self.aggregates.get(name)?.outcome
    }
}

impl AggregateState {
    /// What smoothers have signed of the end that is published.
    fn signed_end(&self) -> Endorsed<Outcome> {
        let mut endorsed = Endorsed::default();
        let Some(end) = self.outcome else { return endorsed };
        let of_it = |other: &Outcome| match end.result {
            Ok(_) => *other == end,
            Err(_) => other.result.is_err(),
        };
        let all = self.outcomes.iter().filter(|(_, said)| of_it(&said.outcome));
        all.for_each(|(by, said)| endorsed.add(*by, said.signed.clone()));
        endorsed
    }

    pub(super) fn end_record(&self, name: &Digest) -> Option<Change> {
        let end = EndRecord { outcome: self.outcome?, signed: self.signed_end() };
        Some(record(name, PUBLISHED, encode(&end)))
    }

    pub(super) fn restore_end(&mut self, end: EndRecord, pinned: &PinnedConfiguration) {
        self.outcome = Some(end.outcome);
        for (by, signed) in end.signed.signatures() {
            let opened = pinned.key(*by).and_then(|key| signed.open(key).ok());
            if let Some(outcome) = opened.map(|opened| opened.into_inner()) {
                self.outcomes.insert(*by, SignedOutcome { outcome, signed: signed.clone() });
            }
        }
    }
}
