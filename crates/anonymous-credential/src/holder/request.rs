//! From a request to a credential.

use super::{Holder, Timing, records};
use crate::configuration::PinnedConfiguration;
use crate::error::{HolderError, MessageError};
use crate::ledger::Step;
use crate::messages::{Request, Response};
use crate::schedule::Period;
use crate::statements;
use alpheus_crypto::group::{Element, IdentityError, SecretScalar};
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sigma::{Claim, Proof, ProvingError};
use alpheus_time::Timestamp;
use rand_core::CryptoRng;
use std::collections::{BTreeMap, BTreeSet};

/// A request that waits for its credential. Its secrets are durable before it can be sent, so a
/// crash does not cost the account its period.
pub struct PendingRequest {
    pub(super) pinned: PinnedConfiguration,
    pub(super) m1: SecretScalar,
    pub(super) r1: SecretScalar,
    pub(super) request: Request,
}

impl PendingRequest {
    /// Draws m1 and requests a credential for the running or the next period, by the holder's
    /// own clock.
    ///
    /// # Errors
    /// [`HolderError`].
    ///
    /// # Privacy
    /// The request hides m1 perfectly. It goes to the issuer under the account's name.
    pub fn begin(
        pinned: PinnedConfiguration,
        account: &[u8],
        timing: Timing,
        now: Timestamp,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Self>, HolderError> {
        let running = pinned.schedule.epoch_at(now).ok_or(HolderError::Epoch)?;
        let running = pinned.schedule.period_of(running);
        let period = match timing {
            Timing::Running => running,
            Timing::Next => Period(running.0.saturating_add(1)),
        };
        let (fresh, fingerprint) = (Secret::<32>::random(rng), pinned.fingerprint());
        let secret = |j: u64| {
            let (period, j) = (period.0.to_be_bytes(), j.to_be_bytes());
            let parts = [fresh.expose(), fingerprint.as_bytes(), &period[..], account, &j];
            SecretScalar::from_hash(labels::CREDENTIAL_REQUEST_SECRETS, &parts)
        };
        let (m1, r1) = (secret(0), secret(1));
        let (g, h) = (Element::base(), Element::second_base());
        let e1 = Element::combine(&[(&m1, &g), (&r1, &h)], &[], &[]);
        let e1 = e1.map_err(|IdentityError| ProvingError::Identity)?;
        let statement = statements::request(&pinned, account, period, &e1);
        let proof = statement.prove(&[&m1, &r1], rng)?.to_bytes();
        let requesting = Self { pinned, m1, r1, request: Request { period, e1, proof } };
        Ok(Step::new(vec![records::request(&requesting)], requesting))
    }

    /// Bytes to send, as often as necessary: the same request gets the same answer.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.request.to_bytes()
    }

    /// Its period.
    #[must_use]
    pub fn period(&self) -> Period {
        self.request.period
    }

    /// Opens the issuer's answer.
    ///
    /// # Errors
    /// [`HolderError::Response`] if it was not made from this request with the pinned keys. Such
    /// an answer would mark this holder. Request again.
    pub fn finish(&self, response: &[u8]) -> Result<Step<Holder>, HolderError> {
        let response = Response::from_bytes(response)?;
        self.check(&response)?;
        // U' = eU − X0A − r1·X1A.
        let minus_r1 = SecretScalar::from_small(0).minus(&self.r1);
        let mac =
            Element::combine(&[(&minus_r1, &response.x1a)], &[&response.eu], &[&response.x0a]);
        let holder = Holder {
            pinned: self.pinned.clone(),
            period: self.request.period,
            m1: self.m1.duplicate(),
            u: response.u,
            mac: mac.map_err(|IdentityError| HolderError::Response)?,
            presentations: BTreeMap::new(),
            codes: BTreeSet::new(),
        };
        let changes = vec![records::credential(&holder), records::no_request(holder.period)];
        Ok(Step::new(changes, holder))
    }

    fn check(&self, response: &Response) -> Result<(), HolderError> {
        let statement = statements::response(&self.pinned, &self.request, response)
            .map_err(|IdentityError| HolderError::Response)?;
        let proof = Proof::from_bytes(&response.proof, &statement).map_err(MessageError::from)?;
        if Claim::new(statement, proof).holds() { Ok(()) } else { Err(HolderError::Response) }
    }
}
