//! A service in one process, subscribers, and a gateway that holds no key.

use alpheus_access_pass::client::{Served, connect};
use alpheus_access_pass::error::Denied;
use alpheus_access_pass::gateway::{Gateway, Limits};
use alpheus_access_pass::messages::Acknowledgement;
use alpheus_access_pass::request::{Stamp, Stamper, Target};
use alpheus_anonymous_credential::configuration::{Configuration, Pinned};
use alpheus_anonymous_credential::holder::{Holder, Outgoing, Requesting, Which};
use alpheus_anonymous_credential::issuer::Issuer;
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::ledger::Log;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, ReUp, SessionId};
use alpheus_anonymous_credential::schedule::{Schedule, Time};
use alpheus_anonymous_credential::sessions::{Due, LookUp, Shard};
use alpheus_anonymous_credential::verifier::{Verifier, verify_re_ups};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use std::collections::BTreeMap;

pub(crate) type Ledger = BTreeMap<Vec<u8>, Vec<u8>>;

pub(crate) const SECOND: u64 = 1_000_000;
pub(crate) const LIMITS: Limits = Limits { concurrent: 3, overlap: 2 * SECOND };
pub(crate) const SONG: Target<'static> =
    Target { method: "GET", authority: "music.example:443", path: "/songs/7?from=0" };

/// So many seconds after an epoch's start.
pub(crate) fn at(seconds: u64) -> Time {
    Time((7 * 5760 * 15 + seconds) * SECOND)
}

pub(crate) struct Town {
    pub(crate) pinned: Pinned,
    pub(crate) rng: ChaCha20Rng,
    issuer: Issuer,
    verifier: Verifier,
    pub(crate) shard: Shard,
    ledger: Ledger,
    pub(crate) gateway: Gateway,
}

pub(crate) struct Device {
    pub(crate) holder: Holder,
    pub(crate) store: Ledger,
}

impl Device {
    /// What was shown last, as an honest gateway acknowledges it.
    pub(crate) fn served(&self) -> Served {
        let newest = self.holder.resend(self.holder.newest().unwrap()).unwrap();
        let Outgoing { session, epoch, .. } = newest.commit(&mut Ledger::new()).unwrap();
        let sent = Outgoing { session, epoch, bytes: Vec::new() };
        Served::check(&self.holder, &sent, &Acknowledgement { session, epoch }).unwrap()
    }
}

impl Town {
    pub(crate) fn new(seed: u8) -> Self {
        let mut rng = ChaCha20Rng::from_seed([seed; 32]);
        let key = IssuerKey::random(&mut rng).unwrap();
        let schedule = Schedule {
            start: Time(0),
            epoch: 15 * SECOND,
            pre_login: 3 * SECOND,
            border_pre_login: 10 * SECOND,
            epochs_per_period: 5760,
            ahead: 3,
        };
        let configuration = Configuration {
            deployment: [1; 32],
            kind: 1,
            tier: 1,
            limit: Limit::ONE,
            incarnation: 1,
            schedule,
            issuer: *key.public(),
        };
        let operator = SigningKey::from_seed(&Secret::from_bytes([3; 32]));
        let signed = Signed::new(&configuration, &operator);
        let pinned = Pinned::open(&signed, &operator.verifying_key()).unwrap();
        let copy = IssuerKey::from_bytes(&key.expose()).unwrap();
        let mut ledger = Ledger::new();
        let shard = Shard::restore(pinned.clone(), [], Log::New, at(0)).unwrap();
        let issuer = Issuer::restore(copy, pinned.clone(), [], Log::New, at(0)).unwrap();
        Self {
            issuer: issuer.commit(&mut Ledger::new()).unwrap(),
            verifier: Verifier::new(key, pinned.clone()).unwrap(),
            shard: shard.commit(&mut ledger).unwrap(),
            ledger,
            gateway: Gateway::new(pinned.clone(), LIMITS, &mut rng),
            pinned,
            rng,
        }
    }

    pub(crate) fn device(&mut self, account: &[u8]) -> Device {
        let (mut store, rng) = (Ledger::new(), &mut self.rng);
        let asking =
            Requesting::begin(self.pinned.clone(), account, at(0), Which::Running, rng).unwrap();
        let asking = asking.commit(&mut store).unwrap();
        let answer = self.issuer.issue(at(0), account, &asking.bytes(), rng).unwrap();
        let answer = answer.commit(&mut Ledger::new()).unwrap();
        let holder = asking.finish(&answer).unwrap().commit(&mut store).unwrap();
        Device { holder, store }
    }

    /// A login, as verifier and gateway take it.
    pub(crate) fn log_in(&mut self, device: &mut Device, now: Time, which: Which) -> SessionId {
        let compared = self.pinned.compare(&self.pinned.fingerprint()).unwrap();
        let nothing = Digest([0; 32]);
        let sent = device.holder.log_in(now, which, &compared, &nothing, &mut self.rng).unwrap();
        let sent = sent.commit(&mut device.store).unwrap();
        let login = Login::from_bytes(&sent.bytes, Limit::ONE).unwrap();
        let LookUp::Unspent(unspent) = self.shard.look_up(now, login).unwrap() else {
            return sent.session;
        };
        let proven = self.verifier.verify(vec![unspent]).pop().unwrap().unwrap();
        self.shard.log_in(now, proven).unwrap().commit(&mut self.ledger).unwrap();
        self.note(sent.session);
        sent.session
    }

    pub(crate) fn re_up(&mut self, device: &mut Device, now: Time) {
        let sent = device.holder.re_up(now, &mut self.rng).unwrap();
        let sent: Outgoing = sent.commit(&mut device.store).unwrap();
        let Due::Due(due) = self.shard.due(now, ReUp::from_bytes(&sent.bytes).unwrap()).unwrap()
        else {
            return;
        };
        let proven = verify_re_ups(&self.pinned, vec![due]).pop().unwrap().unwrap();
        let reserved = self.shard.reserve(now, proven).unwrap().commit(&mut self.ledger).unwrap();
        let moved = self.shard.advance(now, reserved).unwrap().commit(&mut self.ledger).unwrap();
        self.shard.activate(moved).unwrap().commit(&mut self.ledger).unwrap();
        self.note(sent.session);
    }

    fn note(&mut self, session: SessionId) {
        self.gateway.note(self.shard.standing(session).unwrap());
    }

    pub(crate) fn connect(&mut self, device: &Device, now: Time) -> Result<Stamper, Denied> {
        let hello = self.gateway.hello(now, &mut self.rng);
        let (message, connecting) =
            connect(&device.holder, &device.served(), &hello, &mut self.rng).unwrap();
        let connected = self.gateway.connect(now, &message)?;
        Ok(connecting.finish(&connected).unwrap())
    }

    /// A session that is connected, one second into the epoch.
    pub(crate) fn connected(&mut self, account: &[u8]) -> (Device, SessionId, Stamper) {
        let mut device = self.device(account);
        let session = self.log_in(&mut device, at(1), Which::Running);
        let stamper = self.connect(&device, at(1)).unwrap();
        (device, session, stamper)
    }

    /// Sends a request that ends at once.
    pub(crate) fn request(&mut self, now: Time, stamp: &Stamp) -> Result<Time, Denied> {
        let admitted = self.gateway.admit(now, stamp, &SONG)?;
        self.gateway.finish(admitted.session);
        Ok(admitted.until)
    }
}
