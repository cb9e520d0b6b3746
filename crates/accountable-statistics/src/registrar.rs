//! The registrar: gives each account, once in a period, a credential for uploads and one
//! for slot requests to each smoother.

use crate::configuration::Pinned;
use crate::refused::{NotRegistered, NotRestored};
use alpheus_anonymous_credential::error::IssueRefused;
use alpheus_anonymous_credential::issuer::Issuer;
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::ledger::{Log, Step};
use rand_core::CryptoRng;

/// The registrar. Whoever runs it can be any number of clients: it is run by somebody who
/// knows people, and runs nothing else.
pub struct Registrar {
    /// Of uploads, then of slots in the order of smoothers.
    issuers: Vec<Issuer>,
}

impl Registrar {
    /// A registrar as its ledger has it; an empty one for a new registrar. Keys are that of
    /// uploads, then those of slots in the order of smoothers.
    ///
    /// # Errors
    /// [`NotRestored`].
    pub fn restore(
        pinned: &Pinned,
        keys: Vec<IssuerKey>,
        log: Log,
        records: &[(Vec<u8>, Vec<u8>)],
        now: Time,
    ) -> Result<(Self, Step<()>), NotRestored> {
        let passes =
            std::iter::once(pinned.uploads()).chain(pinned.ids().filter_map(|id| pinned.slots(id)));
        if keys.len() != pinned.smoothers.len() + 1 {
            return Err(NotRestored::OtherKey);
        }
        let mut steps = Vec::with_capacity(keys.len());
        for (key, pass) in keys.into_iter().zip(passes) {
            let records = records.iter().cloned();
            let issuer = Issuer::restore(key, pass.clone(), records, log, now);
            steps.push(issuer.map_err(|why| match why {
                IssueRefused::Ledger(damaged) => NotRestored::Ledger(damaged),
                _ => NotRestored::OtherKey,
            })?);
        }
        let mut issuers = Vec::with_capacity(steps.len());
        let changes = Step::join(steps).then(|all| {
            issuers = all;
            Step::new(Vec::new(), ())
        });
        Ok((Self { issuers }, changes))
    }

    /// Answers an account's requests: for uploads, then for slots. The same requests get the
    /// same answers.
    ///
    /// # Errors
    /// [`NotRegistered`]: nothing is given out, also not what was not refused.
    ///
    /// # Privacy
    /// The registrar learns that the account is a client. What it signs is blinded.
    pub fn register(
        &mut self,
        now: Time,
        account: &[u8],
        requests: &[Vec<u8>],
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Vec<Vec<u8>>>, NotRegistered> {
        if requests.len() != self.issuers.len() {
            return Err(NotRegistered::Number);
        }
        // All before any: what one has noted as given would be known to memory alone.
        for (issuer, request) in self.issuers.iter().zip(requests) {
            issuer.check(now, account, request)?;
        }
        let answers = self.issuers.iter_mut().zip(requests);
        let answers = answers.map(|(issuer, request)| issuer.issue(now, account, request, rng));
        Ok(Step::join(answers.collect::<Result<Vec<_>, _>>()?))
    }

    /// Forgets whom it gave credentials in the periods before the last one: for these it gives
    /// none any more.
    pub fn prune(&mut self, now: Time) -> Step<()> {
        let steps = self.issuers.iter_mut().map(|issuer| issuer.prune(now));
        Step::join(steps).then(|_| Step::new(Vec::new(), ()))
    }
}
