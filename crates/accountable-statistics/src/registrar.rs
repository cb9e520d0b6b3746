//! The registrar: issues each account, once per period, a credential for uploads and one for slot
//! requests to each smoother (aggregation node).

use crate::configuration::PinnedConfiguration;
use crate::role_error::{RegistrationError, RestoreError};
use alpheus_anonymous_credential::error::IssuerError;
use alpheus_anonymous_credential::issuer::{Applicant, Issuer};
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::schedule::{Period, Schedule};
use alpheus_crypto::ledger::{StateOrigin, Step};
use alpheus_time::Timestamp;
use rand_core::CryptoRng;

/// The registrar. Its operator can pose as any number of clients, so it should be somebody who
/// knows people and runs nothing else.
pub struct Registrar {
    /// For uploads, then for slots in the order of smoothers.
    issuers: Vec<Issuer>,
    schedule: Schedule,
    /// When a poll may next find something to forget.
    next_poll: Timestamp,
}

impl Registrar {
    /// A registrar from its ledger; the ledger of a new registrar is empty. `keys` are the one for
    /// uploads, then those for slots in the order of smoothers.
    ///
    /// # Errors
    /// [`RestoreError`].
    pub fn restore(
        pinned: &PinnedConfiguration,
        keys: Vec<IssuerKey>,
        origin: StateOrigin,
        records: &[(Vec<u8>, Vec<u8>)],
        now: Timestamp,
    ) -> Result<(Self, Step<()>), RestoreError> {
        let passes =
            std::iter::once(pinned.uploads()).chain(pinned.ids().filter_map(|id| pinned.slots(id)));
        if keys.len() != pinned.smoothers.len() + 1 {
            return Err(RestoreError::OtherKey);
        }
        let mut steps = Vec::with_capacity(keys.len());
        for (key, pass) in keys.into_iter().zip(passes) {
            let records = records.iter().cloned();
            let issuer = Issuer::restore(key, pass.clone(), records, origin, now);
            steps.push(issuer.map_err(|why| match why {
                IssuerError::Ledger(damaged) => RestoreError::Ledger(damaged),
                _ => RestoreError::OtherKey,
            })?);
        }
        let mut issuers = Vec::with_capacity(steps.len());
        let changes = Step::join(steps).map(|all| issuers = all);
        let schedule = pinned.uploads().schedule;
        Ok((Self { issuers, schedule, next_poll: now }, changes))
    }

    /// Answers an account's requests: for uploads, then for slots. The same requests get the same
    /// answers.
    ///
    /// # Errors
    /// [`RegistrationError`]: nothing is issued, not even for requests that were not refused.
    ///
    /// # Privacy
    /// The registrar learns that the account is a client. Its signatures are blind.
    pub fn handle(
        &mut self,
        account: &[u8],
        requests: &[Vec<u8>],
        now: Timestamp,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Vec<Vec<u8>>>, RegistrationError> {
        if requests.len() != self.issuers.len() {
            return Err(RegistrationError::Number);
        }
        // All are checked first: an issuer that recorded an answer alone would have it in memory
        // only.
        for (issuer, request) in self.issuers.iter().zip(requests) {
            issuer.check(Applicant::named(account), request, now)?;
        }
        let answers = self.issuers.iter_mut().zip(requests);
        let answers = answers
            .map(|(issuer, request)| issuer.issue(Applicant::named(account), request, now, rng));
        Ok(Step::join(answers.collect::<Result<Vec<_>, _>>()?))
    }

    /// Forgets which accounts got credentials in periods before the last one: it issues none for
    /// these.
    pub fn poll(&mut self, now: Timestamp) -> Step<()> {
        self.next_poll = next_period(&self.schedule, now);
        let steps = self.issuers.iter_mut().map(|issuer| issuer.prune(now));
        Step::join(steps).map(drop)
    }
    /// When to poll next: now after a start, then when a period begins.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        Some(self.next_poll)
    }
}

/// When the period after the one at a time begins; the first one, before that.
fn next_period(schedule: &Schedule, now: Timestamp) -> Timestamp {
    let Some(epoch) = schedule.epoch_at(now) else { return schedule.start };
    let next = Period(schedule.period_of(epoch).0.saturating_add(1));
    schedule.starts(schedule.first_epoch(next))
}
