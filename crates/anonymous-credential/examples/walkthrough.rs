//! A subscriber gets a pass and uses a service that cannot tell who it is, or
//! that it came yesterday: issue, log in, re-up, be refused twice.
//! `cargo run -p alpheus-anonymous-credential --example walkthrough` shows it.

use alpheus_anonymous_credential::configuration::{Configuration, Pinned};
use alpheus_anonymous_credential::holder::{Holder, Outgoing, Requesting, Which};
use alpheus_anonymous_credential::issuer::Issuer;
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, ReUp};
use alpheus_anonymous_credential::schedule::{Schedule, Time};
use alpheus_anonymous_credential::sessions::{Acknowledged, Due, Log, LookUp, Shard};
use alpheus_anonymous_credential::verifier::{Verifier, verify_re_ups};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::{secret::Secret, sign::SigningKey, signed::Signed};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use std::collections::BTreeMap;

type Failed = Box<dyn std::error::Error>;
type Ledger = BTreeMap<Vec<u8>, Vec<u8>>;

const SECOND: u64 = 1_000_000;

struct Service {
    pinned: Pinned,
    verifier: Verifier,
    shard: Shard,
    ledger: Ledger,
}

impl Service {
    /// Look up, verify, insert if absent, make durable, acknowledge.
    fn log_in(&mut self, now: Time, sent: &Outgoing) -> Result<Acknowledged, Failed> {
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
    fn re_up(&mut self, now: Time, sent: &Outgoing) -> Result<Acknowledged, Failed> {
        let moved = match self.shard.due(now, ReUp::from_bytes(&sent.bytes)?)? {
            Due::Moved(moved) => moved,
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

pub(crate) fn main() -> Result<(), Failed> {
    let mut rng = ChaCha20Rng::from_seed([7; 32]); // a test's; real ones are seeded by the system
    // The operator draws the issuer's key and signs the configuration that all pin.
    let (key, operator) =
        (IssuerKey::random(&mut rng)?, SigningKey::from_seed(&Secret::random(&mut rng)));
    let copy = IssuerKey::from_bytes(&key.expose())?;
    let configuration = Configuration {
        deployment: [1; 32],
        kind: 1,
        tier: 1,
        limit: Limit::ONE,
        incarnation: 1,
        schedule: Schedule {
            start: Time(0),
            epoch: 15 * SECOND,
            pre_login: 3 * SECOND,
            border_pre_login: 10 * SECOND,
            epochs_per_period: 5760,
        },
        issuer: *key.public(),
    };
    let pinned = Pinned::open(&Signed::new(&configuration, &operator), &operator.verifying_key())?;
    let mut issuer = Issuer::restore(key, pinned.clone(), Vec::new())?;
    let verifier = Verifier::new(copy, pinned.clone())?;
    let mut ledger = Ledger::new();
    let now = |seconds: u64| Time(1_700_000_010 * SECOND + seconds * SECOND); // an epoch's start
    let shard =
        Shard::restore(pinned.clone(), Vec::new(), Log::Whole, now(0))?.commit(&mut ledger)?;
    let mut service = Service { pinned: pinned.clone(), verifier, shard, ledger };

    // Ada asks under her name, once a day; what she gets says nothing to the issuer.
    let (mut books, mut adas) = (Ledger::new(), Ledger::new());
    let asking = Requesting::begin(pinned.clone(), b"ada", now(0), Which::Running, &mut rng)?
        .commit(&mut adas)?;
    let answer = issuer.issue(now(0), b"ada", &asking.bytes(), &mut rng)?.commit(&mut books)?;
    let mut ada: Holder = asking.finish(&answer)?.commit(&mut adas)?;

    // She logs in without a name, having compared what the service says it works by.
    let (compared, nothing) = (pinned.compare(&service.pinned.fingerprint())?, Digest([0; 32]));
    let login =
        ada.log_in(now(1), Which::Running, &compared, &nothing, &mut rng)?.commit(&mut adas)?;
    let session = service.log_in(now(1), &login)?;
    // The acknowledgement is lost: the same bytes again give the same session.
    assert_eq!(service.log_in(now(2), &login)?, session);
    let nonce = [9; 32]; // drawn by the service for her connection
    service.shard.connect(
        now(2),
        session.session,
        &nonce,
        &ada.connect(session.session, &nonce)?,
    )?;

    // A friend with a copy of her pass cannot have a second session in the epoch.
    let mut friend = Holder::restore(
        pinned.clone(),
        ada.period(),
        &Ledger::from_iter(adas.clone().into_iter().filter(|(k, _)| k.starts_with(b"cred"))),
    )?
    .ok_or("no copy")?;
    let copy = friend
        .log_in(now(3), Which::Running, &compared, &nothing, &mut rng)?
        .commit(&mut Ledger::new())?;
    println!("the friend: {}", service.log_in(now(3), &copy).err().ok_or("two sessions")?);

    // A re-up in the epoch's last moments carries her session on.
    let re_up = ada.re_up(now(13), &mut rng)?.commit(&mut adas)?;
    service.re_up(now(13), &re_up)?;
    println!("served until {:?}", service.shard.live(now(16), session.session)?.until);
    Ok(())
}
