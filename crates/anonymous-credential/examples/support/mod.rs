//! One process that plays the service, and a deployment to play it in: for the
//! walkthrough, the tests and the benches.

use alpheus_anonymous_credential::configuration::{Configuration, Pinned};
use alpheus_anonymous_credential::holder::{Holder, Outgoing, Requesting, Which};
use alpheus_anonymous_credential::issuer::Issuer;
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::ledger::Log;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, ReUp};
use alpheus_anonymous_credential::schedule::{Epoch, Schedule, Time};
use alpheus_anonymous_credential::sessions::{Acknowledged, Due, LookUp, Shard};
use alpheus_anonymous_credential::verifier::{Verifier, verify_re_ups};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::{secret::Secret, sign::SigningKey, signed::Signed};
use rand_chacha::ChaCha20Rng;
use std::collections::BTreeMap;

pub(crate) type Failed = Box<dyn std::error::Error>;
pub(crate) type Ledger = BTreeMap<Vec<u8>, Vec<u8>>;

/// In microseconds.
pub(crate) const SECOND: u64 = 1_000_000;
/// An epoch's start, the first of its period.
pub(crate) const START: Epoch = Epoch(7 * 5760);
/// What a login is for, if it is for nothing more.
pub(crate) const NOTHING: Digest = Digest([0; 32]);

/// So many seconds after the first epoch's start.
pub(crate) fn at(seconds: u64) -> Time {
    Time((START.0 * 15 + seconds) * SECOND)
}

/// Epochs of 15 seconds as in the paper, periods of a day.
pub(crate) fn configuration(key: &IssuerKey, limit: Limit) -> Configuration {
    let schedule = Schedule {
        start: Time(0),
        epoch: 15 * SECOND,
        pre_login: 3 * SECOND,
        border_pre_login: 10 * SECOND,
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
pub(crate) fn pin(configuration: &Configuration) -> Result<Pinned, Failed> {
    let operator = SigningKey::from_seed(&Secret::from_bytes([3; 32]));
    Ok(Pinned::open(&Signed::new(configuration, &operator), &operator.verifying_key())?)
}

/// Issuer, verifier and one shard in one process.
pub(crate) struct Service {
    pub(crate) pinned: Pinned,
    pub(crate) issuer: Issuer,
    pub(crate) books: Ledger,
    pub(crate) verifier: Verifier,
    pub(crate) shard: Shard,
    pub(crate) ledger: Ledger,
}

impl Service {
    pub(crate) fn new(limit: Limit, rng: &mut ChaCha20Rng) -> Result<Self, Failed> {
        let key = IssuerKey::random(rng)?;
        let copy = IssuerKey::from_bytes(&key.expose())?;
        let pinned = pin(&configuration(&key, limit))?;
        let (mut books, mut ledger) = (Ledger::new(), Ledger::new());
        let shard = Shard::restore(pinned.clone(), [], Log::New, at(0))?.commit(&mut ledger)?;
        let issuer =
            Issuer::restore(copy, pinned.clone(), [], Log::New, at(0))?.commit(&mut books)?;
        let verifier = Verifier::new(key, pinned.clone())?;
        Ok(Self { pinned, issuer, books, verifier, shard, ledger })
    }

    /// An account's credential for the running period.
    pub(crate) fn register(
        &mut self,
        account: &[u8],
        store: &mut Ledger,
        rng: &mut ChaCha20Rng,
    ) -> Result<Holder, Failed> {
        let asking = Requesting::begin(self.pinned.clone(), account, at(0), Which::Running, rng)?;
        let asking = asking.commit(store)?;
        let answer = self.issuer.issue(at(0), account, &asking.bytes(), rng)?;
        let answer = answer.commit(&mut self.books)?;
        Ok(asking.finish(&answer)?.commit(store)?)
    }
    /// Look up, verify, insert if absent, make durable, acknowledge.
    pub(crate) fn log_in(&mut self, now: Time, sent: &Outgoing) -> Result<Acknowledged, Failed> {
        let login = Login::from_bytes(&sent.bytes, self.pinned.limit)?;
        let step = match self.shard.look_up(now, login)? {
            LookUp::Same(step) => step,
            LookUp::Unspent(login) => {
                let proven = self.verifier.verify(vec![login]).pop().ok_or("no verdict")??;
                self.shard.log_in(now, proven)?
            }
        };
        Ok(step.commit(&mut self.ledger)?)
    }

    /// Reserve the new tag, move the session, activate the tag. No key is needed.
    pub(crate) fn re_up(&mut self, now: Time, sent: &Outgoing) -> Result<Acknowledged, Failed> {
        let moved = match self.shard.due(now, ReUp::from_bytes(&sent.bytes)?)? {
            Due::Moved(step) => step.commit(&mut self.ledger)?,
            Due::Due(due) => {
                let mut verdicts = verify_re_ups(&self.pinned, vec![due]);
                let proven = verdicts.pop().ok_or("no verdict")??;
                let reserved = self.shard.reserve(now, proven)?.commit(&mut self.ledger)?;
                self.shard.advance(now, reserved)?.commit(&mut self.ledger)?
            }
        };
        Ok(self.shard.activate(moved)?.commit(&mut self.ledger)?)
    }
}
