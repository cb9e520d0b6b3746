//! A simulated deployment: two shards of spent tags with their own ledgers, passes that people
//! copy to several devices, and crashes at any point.

use crate::support::{AnyError, Ledger, NOTHING, Service, at};
use alpheus_anonymous_credential::configuration::{ConfigurationMatch, PinnedConfiguration};
use alpheus_anonymous_credential::error::{HolderError, VerifierError};
use alpheus_anonymous_credential::holder::{Holder, OutboundMessage, PendingRequest, Timing};
use alpheus_anonymous_credential::issuer::Applicant;
use alpheus_anonymous_credential::ledger::StateOrigin;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, ReUp, SessionId, TagId};
use alpheus_anonymous_credential::sessions::{Acknowledgement, LoginLookUp, ReUpLookUp, Shard};
use alpheus_anonymous_credential::verifier::{ProvenLogin, ProvenReUp, verify_re_ups};
use alpheus_time::Timestamp;
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};

pub(crate) fn rng(seed: u8) -> ChaCha20Rng {
    ChaCha20Rng::from_seed([seed; 32])
}

pub(crate) const SHARDS: u64 = 2;

/// Where a re-up's server crashes: after this many of its three commits.
pub(crate) type Dies = Option<usize>;

pub(crate) struct Town {
    pub(crate) service: Service,
    pub(crate) shards: Vec<(Shard, Ledger)>,
    pub(crate) rng: ChaCha20Rng,
}

/// A device with a pass, or with a copy of one.
pub(crate) struct Device {
    pub(crate) holder: Holder,
    pub(crate) store: Ledger,
}

impl Town {
    pub(crate) fn new(limit: u32, seed: u8) -> Self {
        let mut rng = rng(seed);
        let service = Service::new(Limit::try_from(limit).unwrap(), &mut rng).unwrap();
        let mut town = Self { service, shards: Vec::new(), rng };
        for _ in 0..SHARDS {
            let mut ledger = Ledger::new();
            let shard = Shard::restore(town.pinned(), [], StateOrigin::New, Timestamp(0)).unwrap();
            town.shards.push((shard.commit(&mut ledger).unwrap(), ledger));
        }
        town
    }

    pub(crate) fn pinned(&self) -> PinnedConfiguration {
        self.service.pinned.clone()
    }

    pub(crate) fn compared(&self) -> ConfigurationMatch {
        self.pinned().compare(&self.service.pinned.fingerprint()).unwrap()
    }

    pub(crate) fn device(&mut self, account: &[u8]) -> Device {
        let mut store = Ledger::new();
        let holder = self.service.register(account, &mut store, &mut self.rng).unwrap();
        Device { holder, store }
    }

    /// A device with the account's credential of the next period.
    pub(crate) fn early_device(&mut self, account: &[u8]) -> Device {
        let (mut store, pinned) = (Ledger::new(), self.pinned());
        let next = PendingRequest::begin(pinned, account, Timing::Next, at(0), &mut self.rng);
        let next = next.unwrap().commit(&mut store).unwrap();
        let Service { issuer, books, .. } = &mut self.service;
        let who = Applicant::named(account);
        let answer = issuer.issue(who, &next.bytes(), at(0), &mut self.rng).unwrap();
        let answer = answer.commit(books).unwrap();
        let holder = next.finish(&answer).unwrap().commit(&mut store).unwrap();
        Device { holder, store }
    }

    /// Another device with the pass as it was issued.
    pub(crate) fn copy(&self, device: &Device) -> Device {
        let is_pass = |(key, _): &(Vec<u8>, Vec<u8>)| key.starts_with(b"credential");
        let store: Ledger = device.store.clone().into_iter().filter(is_pass).collect();
        let holder = Holder::restore(self.pinned(), device.holder.period(), &store);
        Device { holder: holder.unwrap().unwrap(), store }
    }

    pub(crate) fn present(
        &mut self,
        device: &mut Device,
        which: Timing,
        now: Timestamp,
    ) -> Result<OutboundMessage, HolderError> {
        let compared = self.compared();
        let step = device.holder.log_in(which, &compared, &NOTHING, now, &mut self.rng)?;
        Ok(step.commit(&mut device.store).unwrap())
    }

    pub(crate) fn carry(
        &mut self,
        device: &mut Device,
        now: Timestamp,
    ) -> Result<OutboundMessage, HolderError> {
        let step = device.holder.re_up(now, &mut self.rng)?;
        Ok(step.commit(&mut device.store).unwrap())
    }

    /// A login that was looked up and proven, but not inserted; or its acknowledgement, if it
    /// was a retry.
    pub(crate) fn prove(
        &mut self,
        sent: &OutboundMessage,
        now: Timestamp,
    ) -> Result<Result<ProvenLogin, Acknowledgement>, VerifierError> {
        let login = Login::from_bytes(&sent.bytes, self.service.pinned.limit)?;
        let (shard, ledger) = self.shard_of(sent.session.0);
        match shard.look_up(login, now)? {
            LoginLookUp::Same(step) => Ok(Err(step.commit(ledger).unwrap())),
            LoginLookUp::Unspent(unspent) => {
                self.service.verifier.verify(vec![unspent]).pop().unwrap().map(Ok)
            }
        }
    }

    pub(crate) fn log_in(
        &mut self,
        sent: &OutboundMessage,
        now: Timestamp,
    ) -> Result<Acknowledgement, VerifierError> {
        match self.prove(sent, now)? {
            Err(same) => Ok(same),
            Ok(proven) => {
                let (shard, ledger) = self.shard_of(sent.session.0);
                Ok(shard.log_in(proven, now)?.commit(ledger).unwrap())
            }
        }
    }

    pub(crate) fn shard_of(&mut self, id: TagId) -> &mut (Shard, Ledger) {
        let at = usize::try_from(id.shard(SHARDS)).unwrap();
        &mut self.shards[at]
    }

    pub(crate) fn tag_of(&self, re_up: &ReUp) -> TagId {
        TagId::of(&self.service.pinned.fingerprint(), re_up.epoch, &re_up.tag)
    }

    pub(crate) fn prove_re_up(
        &mut self,
        re_up: ReUp,
        now: Timestamp,
    ) -> Result<ProvenReUp, VerifierError> {
        let pinned = self.pinned();
        match self.shard_of(re_up.session.0).0.look_up_re_up(re_up, now)? {
            ReUpLookUp::Due(due) => verify_re_ups(&pinned, vec![due]).pop().unwrap(),
            ReUpLookUp::Moved(_) => panic!("moved already"),
        }
    }

    /// Serves a re-up over both shards. `None` if the server crashed on the way.
    pub(crate) fn re_up(
        &mut self,
        sent: &OutboundMessage,
        dies: Dies,
        now: Timestamp,
    ) -> Result<Option<Acknowledgement>, VerifierError> {
        let re_up = ReUp::from_bytes(&sent.bytes)?;
        let (session, tag, pinned) = (re_up.session.0, self.tag_of(&re_up), self.pinned());
        let (shard, ledger) = self.shard_of(session);
        let moved = match shard.look_up_re_up(re_up, now)? {
            ReUpLookUp::Moved(step) => step.commit(ledger).unwrap(),
            ReUpLookUp::Due(due) => {
                let proven = verify_re_ups(&pinned, vec![due]).pop().unwrap()?;
                let (shard, ledger) = self.shard_of(tag);
                let reserve = shard.reserve(proven, now)?;
                if dies == Some(0) {
                    return Ok(None);
                }
                let reserved = reserve.commit(ledger).unwrap();
                let (shard, ledger) = self.shard_of(session);
                let advance = shard.advance(reserved, now)?;
                if dies == Some(1) {
                    return Ok(None);
                }
                advance.commit(ledger).unwrap()
            }
        };
        let (shard, ledger) = self.shard_of(tag);
        let activate = shard.activate(moved)?;
        if dies == Some(2) {
            return Ok(None);
        }
        Ok(Some(activate.commit(ledger).unwrap()))
    }

    /// Restarts all shards from their durable state.
    pub(crate) fn restart(&mut self, origin: StateOrigin, now: Timestamp) {
        let pinned = self.pinned();
        for (shard, ledger) in &mut self.shards {
            let step = Shard::restore(pinned.clone(), ledger.clone(), origin, now).unwrap();
            *shard = step.commit(ledger).unwrap();
        }
    }

    pub(crate) fn is_live(&mut self, id: SessionId, now: Timestamp) -> bool {
        self.shard_of(id.0).0.live(id, now).is_ok()
    }

    pub(crate) fn log_out(&mut self, device: &Device, id: SessionId) -> Result<(), AnyError> {
        let logout = device.holder.log_out(id)?;
        let (shard, ledger) = self.shard_of(id.0);
        Ok(shard.log_out(&logout)?.commit(ledger)?)
    }
}

/// A town, and a device whose session began in the first seconds.
pub(crate) fn logged_in(seed: u8) -> (Town, Device, SessionId) {
    let mut town = Town::new(1, seed);
    let mut device = town.device(b"ada");
    let sent = town.present(&mut device, Timing::Running, at(1)).unwrap();
    let session = town.log_in(&sent, at(1)).unwrap().session;
    (town, device, session)
}
