//! A service in one process, for the walkthrough and the tests: issuer, verifier, one shard of
//! the store, and a gateway without a key.

use alpheus_access_pass::gateway::{Gateway, Limits};
use alpheus_access_pass::request::Target;
use alpheus_anonymous_credential::configuration::{Configuration, PinnedConfiguration};
use alpheus_anonymous_credential::holder::{Holder, OutboundMessage, PendingRequest, Timing};
use alpheus_anonymous_credential::issuer::{Applicant, Issuer};
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::ledger::StateOrigin;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, ReUp};
use alpheus_anonymous_credential::schedule::Schedule;
use alpheus_anonymous_credential::sessions::{Acknowledgement, LoginLookUp, ReUpLookUp, Shard};
use alpheus_anonymous_credential::verifier::{Verifier, verify_re_ups};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::{secret::Secret, sign::SigningKey, signed_message::Signed};
use alpheus_time::{Span, Timestamp};
use chacha20::ChaCha20Rng;
use std::collections::BTreeMap;

pub(crate) type AnyError = Box<dyn std::error::Error>;
pub(crate) type Ledger = BTreeMap<Vec<u8>, Vec<u8>>;

/// A second, in microseconds.
pub(crate) const SECOND: u64 = 1_000_000;
/// The message of a login that is for nothing else.
pub(crate) const NOTHING: Digest = Digest([0; 32]);
pub(crate) const LIMITS: Limits = Limits { concurrent: 3, overlap: Span::seconds(2) };
pub(crate) const SONG: Target<'static> =
    Target { method: "GET", authority: "music.example:443", path: "/songs/7?from=0" };

/// A time this many seconds after a period's first epoch begins.
pub(crate) fn at(seconds: u64) -> Timestamp {
    Timestamp((7 * 5760 * 15 + seconds) * SECOND)
}

/// Epochs of 15 seconds as in the paper, periods of a day.
fn configuration(key: &IssuerKey) -> Configuration {
    let schedule = Schedule {
        start: Timestamp(0),
        epoch: Span::seconds(15),
        pre_login: Span::seconds(3),
        border_pre_login: Span::seconds(10),
        epochs_per_period: 5760,
        ahead: 3,
    };
    Configuration {
        deployment: [1; 32],
        kind: 1,
        tier: 1,
        limit: Limit::ONE,
        incarnation: 1,
        schedule,
        issuer: *key.public(),
    }
}

/// The whole service in one process.
pub(crate) struct Service {
    pub(crate) pinned: PinnedConfiguration,
    issuer: Issuer,
    verifier: Verifier,
    pub(crate) shard: Shard,
    ledger: Ledger,
    pub(crate) gateway: Gateway,
}

impl Service {
    pub(crate) fn new(rng: &mut ChaCha20Rng) -> Result<Self, AnyError> {
        let key = IssuerKey::random(rng)?;
        let copy = IssuerKey::from_bytes(&key.expose())?;
        let operator = SigningKey::from_seed(&Secret::from_bytes([3; 32]));
        let signed = Signed::new(&configuration(&key), &operator);
        let pinned = PinnedConfiguration::open(&signed, &operator.verifying_key())?;
        let mut ledger = Ledger::new();
        let shard = Shard::restore(pinned.clone(), [], StateOrigin::New, at(0))?;
        let issuer = Issuer::restore(copy, pinned.clone(), [], StateOrigin::New, at(0))?;
        Ok(Self {
            issuer: issuer.commit(&mut Ledger::new())?,
            verifier: Verifier::new(key, pinned.clone())?,
            shard: shard.commit(&mut ledger)?,
            ledger,
            gateway: Gateway::new(pinned.clone(), LIMITS, rng),
            pinned,
        })
    }

    /// Gets an account's pass for the running period.
    pub(crate) fn register(
        &mut self,
        account: &[u8],
        store: &mut Ledger,
        rng: &mut ChaCha20Rng,
    ) -> Result<Holder, AnyError> {
        let pinned = self.pinned.clone();
        let request = PendingRequest::begin(pinned, account, Timing::Running, at(0), rng)?;
        let request = request.commit(store)?;
        let answer = self.issuer.issue(Applicant::named(account), &request.bytes(), at(0), rng)?;
        let answer = answer.commit(&mut Ledger::new())?;
        Ok(request.finish(&answer)?.commit(store)?)
    }

    /// Serves a login at the verifier, which reports the session to the gateway.
    pub(crate) fn log_in(
        &mut self,
        sent: &OutboundMessage,
        now: Timestamp,
    ) -> Result<Acknowledgement, AnyError> {
        let login = Login::from_bytes(&sent.bytes, Limit::ONE)?;
        let step = match self.shard.look_up(login, now)? {
            LoginLookUp::Same(step) => step,
            LoginLookUp::Unspent(login) => {
                let proven = self.verifier.verify(vec![login]).pop().ok_or("no verdict")??;
                self.shard.log_in(proven, now)?
            }
        };
        let acknowledged = step.commit(&mut self.ledger)?;
        self.gateway.update(self.shard.status(acknowledged.session)?);
        Ok(acknowledged)
    }

    /// Serves a re-up at the verifier, which reports the session to the gateway.
    pub(crate) fn re_up(
        &mut self,
        sent: &OutboundMessage,
        now: Timestamp,
    ) -> Result<Acknowledgement, AnyError> {
        let moved = match self.shard.look_up_re_up(ReUp::from_bytes(&sent.bytes)?, now)? {
            ReUpLookUp::Moved(step) => step.commit(&mut self.ledger)?,
            ReUpLookUp::Due(due) => {
                let mut verdicts = verify_re_ups(&self.pinned, vec![due]);
                let proven = verdicts.pop().ok_or("no verdict")??;
                let reserved = self.shard.reserve(proven, now)?.commit(&mut self.ledger)?;
                self.shard.advance(reserved, now)?.commit(&mut self.ledger)?
            }
        };
        let acknowledged = self.shard.activate(moved)?.commit(&mut self.ledger)?;
        self.gateway.update(self.shard.status(acknowledged.session)?);
        Ok(acknowledged)
    }
}
