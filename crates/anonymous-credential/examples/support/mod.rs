//! A deployment with its whole service in one process, for the walkthrough, the tests and the
//! benches.

use alpheus_anonymous_credential::configuration::{Configuration, PinnedConfiguration};
use alpheus_anonymous_credential::holder::{Holder, OutboundMessage, PendingRequest, Timing};
use alpheus_anonymous_credential::issuer::{Applicant, Issuer};
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::ledger::StateOrigin;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, ReUp};
use alpheus_anonymous_credential::schedule::{Epoch, Schedule};
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
/// An epoch that is the first of its period.
pub(crate) const START: Epoch = Epoch(7 * 5760);
/// The message of a login that is for nothing else.
pub(crate) const NOTHING: Digest = Digest([0; 32]);

/// A time this many seconds after `START` begins.
pub(crate) fn at(seconds: u64) -> Timestamp {
    Timestamp((START.0 * 15 + seconds) * SECOND)
}

/// Epochs of 15 seconds as in the paper, periods of a day.
pub(crate) fn configuration(key: &IssuerKey, limit: Limit) -> Configuration {
    let schedule = Schedule {
        start: Timestamp(0),
        epoch: Span(15 * SECOND),
        pre_login: Span(3 * SECOND),
        border_pre_login: Span(10 * SECOND),
        epochs_per_period: 5760,
        ahead: 0,
    };
    Configuration {
        deployment: [1; 32],
        kind: 1,
        tier: 1,
        limit,
        incarnation: 1,
        schedule,
        issuer: *key.public(),
    }
}

/// The operator signs, everybody pins.
pub(crate) fn pin(configuration: &Configuration) -> Result<PinnedConfiguration, AnyError> {
    let operator = SigningKey::from_seed(&Secret::from_bytes([3; 32]));
    Ok(PinnedConfiguration::open(
        &Signed::new(configuration, &operator),
        &operator.verifying_key(),
    )?)
}

/// Issuer, verifier and one shard in one process.
pub(crate) struct Service {
    pub(crate) pinned: PinnedConfiguration,
    pub(crate) issuer: Issuer,
    pub(crate) books: Ledger,
    pub(crate) verifier: Verifier,
    pub(crate) shard: Shard,
    pub(crate) ledger: Ledger,
}

impl Service {
    pub(crate) fn new(limit: Limit, rng: &mut ChaCha20Rng) -> Result<Self, AnyError> {
        let key = IssuerKey::random(rng)?;
        let copy = IssuerKey::from_bytes(&key.expose())?;
        let pinned = pin(&configuration(&key, limit))?;
        let (mut books, mut ledger) = (Ledger::new(), Ledger::new());
        let shard =
            Shard::restore(pinned.clone(), [], StateOrigin::New, at(0))?.commit(&mut ledger)?;
        let issuer = Issuer::restore(copy, pinned.clone(), [], StateOrigin::New, at(0))?
            .commit(&mut books)?;
        let verifier = Verifier::new(key, pinned.clone())?;
        Ok(Self { pinned, issuer, books, verifier, shard, ledger })
    }

    /// Gets an account's credential for the running period.
    pub(crate) fn register(
        &mut self,
        account: &[u8],
        store: &mut Ledger,
        rng: &mut ChaCha20Rng,
    ) -> Result<Holder, AnyError> {
        let pending =
            PendingRequest::begin(self.pinned.clone(), account, Timing::Running, at(0), rng)?;
        let pending = pending.commit(store)?;
        let answer = self.issuer.issue(Applicant::named(account), &pending.bytes(), at(0), rng)?;
        let answer = answer.commit(&mut self.books)?;
        Ok(pending.finish(&answer)?.commit(store)?)
    }
    /// Looks up, verifies, inserts if absent, makes durable, acknowledges.
    pub(crate) fn log_in(
        &mut self,
        sent: &OutboundMessage,
        now: Timestamp,
    ) -> Result<Acknowledgement, AnyError> {
        let login = Login::from_bytes(&sent.bytes, self.pinned.limit)?;
        let step = match self.shard.look_up(login, now)? {
            LoginLookUp::Same(step) => step,
            LoginLookUp::Unspent(login) => {
                let proven = self.verifier.verify(vec![login]).pop().ok_or("no verdict")??;
                self.shard.log_in(proven, now)?
            }
        };
        Ok(step.commit(&mut self.ledger)?)
    }

    /// Reserves the new tag, moves the session, activates the tag. Needs no key.
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
        Ok(self.shard.activate(moved)?.commit(&mut self.ledger)?)
    }
}
