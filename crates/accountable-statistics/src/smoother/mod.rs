//! A smoother: gives out slots, keeps what is deposited, checks every tuple, and takes
//! part in opening an aggregate once.
//!
//! Whatever leaves comes out of a [`Step`], so that it is durable before.

mod counting;
mod opening;
mod records;
mod running;

use crate::configuration::{KeyEpoch, Pinned, SmootherId};
use crate::definition::{Agreed, Definition};
use crate::endorsed::Endorsed;
use crate::logarithm::Table;
use crate::messages::{Card, Entry, Evidence, Opening, Outcome, Ready, Reason, Receipt};
use crate::refused::{NotDefined, NotHeard, NotRestored};
use crate::threshold::{KeyShare, SharedKey};
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_anonymous_credential::verifier::Verifier;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, DamagedLog, Log, Step};
use alpheus_crypto::seal::Sealed;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use records::{Carded, Claimed, Line, Record};
use running::Running;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a smoother says to others unasked.
#[derive(Clone, Debug)]
pub enum Output {
    /// To all smoothers, this one included.
    Ready(Signed<Ready>),
    /// To the other smoothers, and to nobody else.
    Opening(Signed<Opening>),
    /// To the aggregator.
    Outcome(Signed<Outcome>),
}

/// A key epoch's key, as far as this smoother has it.
struct Key {
    card: Carded,
    /// None if it took no part in generating it, or has destroyed it.
    share: Option<KeyShare>,
}

impl Key {
    /// Destroys the share, for good.
    fn destroy(&mut self, epoch: KeyEpoch) -> [Change; 2] {
        self.share = None;
        self.card.erased = true;
        [records::share(epoch, None), records::card(epoch, &self.card)]
    }
}

/// Who a smoother is.
pub struct Identity {
    /// Its place.
    pub id: SmootherId,
    /// Its signing key.
    pub key: SigningKey,
    /// The key of its slot credential.
    pub slots: IssuerKey,
}

/// A smoother.
pub struct Smoother {
    pinned: Pinned,
    id: SmootherId,
    key: SigningKey,
    verifier: Verifier,
    table: Arc<Table>,
    keys: BTreeMap<KeyEpoch, Key>,
    claims: BTreeMap<Digest, Claimed>,
    running: BTreeMap<Digest, Running>,
    /// Receipts that hold: those that come again are not checked again.
    heard: BTreeSet<(SmootherId, Digest)>,
    /// Of key epochs up to this one it may have forgotten what it has signed.
    sits_out: Option<KeyEpoch>,
}

impl Smoother {
    /// A smoother as its ledger has it; an empty one for a new smoother.
    ///
    /// After a log that may be an old copy it sits out the running key epoch and the next, for
    /// which it may have signed definitions, and destroys their shares: it may have agreed to a
    /// set that it does not remember.
    ///
    /// # Errors
    /// [`NotRestored`].
    pub fn restore(
        pinned: &Pinned,
        identity: Identity,
        table: Arc<Table>,
        log: Log,
        records: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
        now: Time,
    ) -> Result<(Self, Step<()>), NotRestored> {
        let Identity { id, key, slots } = identity;
        let pass = pinned.slots(id).ok_or(NotRestored::OtherKey)?.clone();
        if pinned.key(id) != Some(&key.verifying_key()) {
            return Err(NotRestored::OtherKey);
        }
        let verifier = Verifier::new(slots, pass).map_err(|_| NotRestored::OtherKey)?;
        let (keys, claims, running) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let pinned = pinned.clone();
        let mut smoother = Self {
            pinned,
            id,
            key,
            verifier,
            table,
            keys,
            claims,
            running,
            heard: BTreeSet::new(),
            sits_out: None,
        };
        let begun = smoother.put_back(records)?;
        if (log == Log::New && begun) || (log == Log::Whole && !begun) {
            return Err(DamagedLog.into());
        }
        let mut changes = vec![records::begun(smoother.sits_out)];
        if log == Log::Doubtful {
            changes.extend(smoother.sit_out(now));
        }
        Ok((smoother, Step::new(changes, ())))
    }

    fn put_back(
        &mut self,
        records: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Result<bool, DamagedLog> {
        let (mut begun, mut lines, mut shares) = (false, Vec::new(), Vec::new());
        for (key, value) in records {
            match records::read(&key, &value)? {
                Record::Begun(sits_out) => (begun, self.sits_out) = (true, sits_out),
                Record::Card(epoch, card) => {
                    self.keys.insert(epoch, Key { card: *card, share: None });
                }
                Record::Share(epoch, share) => shares.push((epoch, share)),
                Record::Claim(name, claimed) => drop(self.claims.insert(name, claimed)),
                Record::Of(name, line) => match *line {
                    Line::Definition(signed) => {
                        let agreed = Agreed::open(&signed, &self.pinned).map_err(|_| DamagedLog)?;
                        let running = Running::new(agreed, &self.pinned, self.id);
                        self.running.insert(name, running.ok_or(DamagedLog)?);
                    }
                    line => lines.push((name, line)),
                },
            }
        }
        for (epoch, share) in shares {
            self.put_back_share(epoch, &share)?;
        }
        let signer = self.key.verifying_key();
        for (name, line) in lines {
            let running = self.running.get_mut(&name).ok_or(DamagedLog)?;
            let own = (self.id, &signer);
            running.put_back(line, &self.pinned, own).ok_or(DamagedLog)?;
        }
        Ok(begun)
    }

    fn put_back_share(&mut self, epoch: KeyEpoch, share: &Secret<32>) -> Result<(), DamagedLog> {
        let key = self.keys.get_mut(&epoch).ok_or(DamagedLog)?;
        let share =
            KeyShare::restore(&key.card.shared, self.id.0, share).map_err(|_| DamagedLog)?;
        key.share = Some(share);
        Ok(())
    }

    /// Burns what it may have forgotten: the running key epoch and the next one.
    fn sit_out(&mut self, now: Time) -> Vec<Change> {
        let running = self.pinned.key_epoch(now).map_or(0, |epoch| epoch.0);
        let last = KeyEpoch(running.saturating_add(1));
        self.sits_out = self.sits_out.max(Some(last));
        let mut changes = vec![records::begun(self.sits_out)];
        for (epoch, key) in self.keys.range_mut(..=last) {
            changes.extend(key.destroy(*epoch));
        }
        changes
    }

    /// Whether it takes no part in what is of a key epoch.
    #[must_use]
    pub fn sits_out(&self, epoch: KeyEpoch) -> bool {
        Some(epoch) <= self.sits_out
    }

    /// Which smoother it is.
    #[must_use]
    pub fn id(&self) -> SmootherId {
        self.id
    }

    /// Signs the public side of a key that a quorum has voted for at an attempt, and takes its
    /// share of it if it has one. [`KeyMaker`](crate::keymaking::KeyMaker) says when.
    ///
    /// # Errors
    /// [`NotDefined::OtherKey`] if a quorum has signed another key of that key epoch, or if it
    /// has destroyed its share of this one.
    pub fn hold(
        &mut self,
        epoch: KeyEpoch,
        attempt: u32,
        shared: SharedKey,
        share: Option<KeyShare>,
    ) -> Result<Step<Signed<Card>>, NotDefined> {
        if self.sits_out(epoch) {
            return Err(NotDefined::SitsOut);
        }
        let known = self.keys.remove(&epoch);
        let committee = self.pinned.committee(epoch).map_err(|_| NotDefined::OtherKey)?;
        let other = |card: &Carded| card.endorsed && card.shared != shared || card.erased;
        let refused = known.as_ref().is_some_and(|key| other(&key.card));
        if refused || *shared.committee() != committee {
            known.map(|key| self.keys.insert(epoch, key));
            return Err(NotDefined::OtherKey);
        }
        let same = known.filter(|key| key.card.shared == shared);
        let endorsed = same.as_ref().is_some_and(|key| key.card.endorsed);
        let share = share.or(same.and_then(|key| key.share));
        let said = Card { key_epoch: epoch, attempt, key: shared.clone() };
        let said = Signed::new(&said, &self.key);
        let card = Carded { shared, endorsed, erased: false };
        let secret = share.as_ref().map(KeyShare::expose);
        let changes = vec![records::card(epoch, &card), records::share(epoch, secret.as_ref())];
        self.keys.insert(epoch, Key { card, share });
        Ok(Step::new(changes, said))
    }

    /// Learns that a quorum has the same key of a key epoch: only then is it used. One whose
    /// card it has signed at another attempt is none. `share` is of a smoother that has voted
    /// for this one.
    ///
    /// # Errors
    /// [`NotDefined::OtherKey`] if a quorum has signed another one: more are faulty than may be.
    pub fn learn_key(
        &mut self,
        card: &Endorsed<Card>,
        share: Option<KeyShare>,
    ) -> Result<Step<()>, NotDefined> {
        let opened = card.open(&self.pinned, self.pinned.quorum());
        let card = opened.map_err(|_| NotDefined::OtherKey)?.into_inner();
        let Card { key_epoch, key: shared, .. } = card;
        let (erased, known) = match self.keys.remove(&key_epoch) {
            Some(known) if known.card.shared != shared && known.card.endorsed => {
                self.keys.insert(key_epoch, known);
                return Err(NotDefined::OtherKey);
            }
            Some(Key { card, share }) if card.shared == shared => (card.erased, share),
            Some(Key { card, .. }) => (card.erased, None),
            None => (false, None),
        };
        let kept = !erased && !self.sits_out(key_epoch);
        let share = known.or(share).filter(|_| kept);
        let card = Carded { shared, endorsed: true, erased };
        let secret = share.as_ref().map(KeyShare::expose);
        let changes =
            vec![records::card(key_epoch, &card), records::share(key_epoch, secret.as_ref())];
        self.keys.insert(key_epoch, Key { card, share });
        Ok(Step::new(changes, ()))
    }

    /// Signs a definition that whoever may define has proposed, unless it overlaps one that this
    /// smoother has signed or knows.
    ///
    /// # Errors
    /// [`NotDefined`].
    pub fn define(
        &mut self,
        now: Time,
        proposed: &Signed<Definition>,
    ) -> Result<Step<Signed<Definition>>, NotDefined> {
        let definition = proposed.open(&self.pinned.definer);
        let definition = definition.map_err(|_| NotDefined::NotProposed)?.into_inner();
        definition.check(&self.pinned)?;
        let running = self.pinned.key_epoch(now).ok_or(NotDefined::Time)?.0;
        let epoch = definition.key_epoch;
        let near = epoch.0 == running || epoch.0 == running.saturating_add(1);
        if self.sits_out(epoch) {
            return Err(NotDefined::SitsOut);
        }
        if definition.start <= now || !near {
            return Err(NotDefined::Time);
        }
        let key = self.keys.get(&epoch).ok_or(NotDefined::OtherKey)?;
        if *key.card.shared.key() != definition.key || !key.card.endorsed {
            return Err(NotDefined::OtherKey);
        }
        let signed = Signed::new(&definition, &self.key);
        let name = signed.digest();
        let overlaps = |other: &Claimed| {
            let times = other.start < definition.end && definition.start < other.end;
            times && other.place.overlaps(&definition.place)
        };
        if self.claims.iter().any(|(known, claimed)| *known != name && overlaps(claimed)) {
            return Err(NotDefined::Overlaps);
        }
        Ok(Step::new(vec![self.claim(name, &definition)], signed))
    }

    /// Claims place and time for a definition.
    fn claim(&mut self, name: Digest, definition: &Definition) -> Change {
        let Definition { place, start, end, .. } = definition.clone();
        let claimed = Claimed { place, start, end };
        let change = records::claim(&name, &claimed);
        self.claims.insert(name, claimed);
        change
    }

    /// Works by a definition that a quorum has signed from now on, also if this smoother has signed
    /// another one in its place: that one can have no quorum any more.
    ///
    /// # Errors
    /// [`NotDefined`]; [`NotDefined::Overlaps`] shows that more smoothers than may be are faulty.
    pub fn learn(&mut self, signed: &Endorsed<Definition>) -> Result<Step<Agreed>, NotDefined> {
        let agreed = Agreed::open(signed, &self.pinned)?;
        let name = agreed.name();
        if self.running.contains_key(&name) {
            return Ok(Step::new(vec![records::definition(&name, signed)], agreed));
        }
        if self.running.values().any(|known| known.agreed().overlaps(&agreed)) {
            return Err(NotDefined::Overlaps);
        }
        let claim = self.claim(name, &agreed);
        let running = Running::new(agreed.clone(), &self.pinned, self.id);
        self.running.insert(name, running.ok_or(NotDefined::OtherKey)?);
        Ok(Step::new(vec![claim, records::definition(&name, signed)], agreed))
    }

    /// Whether words of its own show that it has forgotten something that it said.
    fn forgot(&self, entry: &Entry) -> bool {
        self.running.get(&entry.aggregate).is_none_or(|running| running.has_forgotten(entry))
    }

    /// Burns what it may have forgotten, unless it sits out anyhow.
    fn sit_out_for(&mut self, aggregate: &Digest, now: Time) -> Step<()> {
        let epoch = self.running.get(aggregate).map(|running| running.agreed().key_epoch);
        let takes_part = epoch.or(self.pinned.key_epoch(now)) > self.sits_out;
        Step::new(if takes_part { self.sit_out(now) } else { Vec::new() }, ())
    }

    /// Notes another smoother's receipt.
    ///
    /// # Errors
    /// [`NotHeard`]. One of its own that it does not remember makes it sit out: its ledger is an
    /// old copy, or somebody else has its key.
    pub fn hear_receipt(&mut self, receipt: &Receipt, now: Time) -> Result<Step<()>, NotHeard> {
        let by = receipt.by;
        if self.heard.contains(&(by, receipt.entry.digest())) {
            return Ok(Step::new(Vec::new(), ()));
        }
        let key = self.pinned.key(by).ok_or(NotHeard::Signature(by))?;
        let entry = receipt.entry.open(key).map_err(|_| NotHeard::Signature(by))?.into_inner();
        if by == self.id && self.forgot(&entry) {
            return Ok(self.sit_out_for(&entry.aggregate, now));
        }
        let quorum = self.pinned.quorum();
        let running = self.running.get_mut(&entry.aggregate).ok_or(NotHeard::Unknown)?;
        if entry.slot >= running.agreed().slots {
            return Err(NotHeard::OtherSet);
        }
        let change = running.hear(by, entry, receipt.entry.clone(), quorum);
        self.heard.insert((by, receipt.entry.digest()));
        Ok(Step::new(change.into_iter().collect(), ()))
    }

    /// Notes that a quorum has signed an entry: from the client, or from another smoother.
    ///
    /// # Errors
    /// [`NotHeard`]. A signature of its own that it does not remember makes it sit out.
    pub fn hear_certificate(
        &mut self,
        now: Time,
        certificate: &Endorsed<Entry>,
    ) -> Result<Step<()>, NotHeard> {
        let opened = certificate.open(&self.pinned, self.pinned.quorum());
        let entry = opened.map_err(|_| NotHeard::NotCertified)?.into_inner();
        let own = |(by, signed): &(SmootherId, Signed<Entry>)| {
            *by == self.id && signed.open(&self.key.verifying_key()).is_ok_and(|own| *own == entry)
        };
        if certificate.signatures().any(own) && self.forgot(&entry) {
            return Ok(self.sit_out_for(&entry.aggregate, now));
        }
        let running = self.running.get_mut(&entry.aggregate).ok_or(NotHeard::Unknown)?;
        if entry.slot >= running.agreed().slots || running.outcome().is_some() {
            return Err(NotHeard::OtherSet);
        }
        Ok(Step::new(running.certify(entry, certificate).into_iter().collect(), ()))
    }

    /// All certificates of an aggregate, for another smoother that asks; for nobody else, since
    /// who has signed an entry says when.
    #[must_use]
    pub fn certificates(&self, aggregate: &Digest) -> Vec<Endorsed<Entry>> {
        self.running.get(aggregate).map(Running::certificates).unwrap_or_default()
    }

    /// Receipts of what is not certified, for another smoother that asks.
    #[must_use]
    pub fn receipts(&self, aggregate: &Digest) -> Vec<Receipt> {
        self.running.get(aggregate).map(Running::receipts).unwrap_or_default()
    }

    /// Certified slots whose deposit this smoother lacks: to be fetched from the others before the
    /// release.
    #[must_use]
    pub fn lacking(&self, aggregate: &Digest) -> Vec<u32> {
        self.running.get(aggregate).map(Running::lacking).unwrap_or_default()
    }

    /// What is sealed for a certified slot, for another smoother that asks.
    #[must_use]
    pub fn kept(&self, aggregate: &Digest, slot: u32) -> Option<&Sealed> {
        self.running.get(aggregate)?.kept(slot)
    }

    /// Keeps what another smoother had of a certified slot; nothing if it is not that.
    pub fn keep(&mut self, aggregate: &Digest, slot: u32, sealed: Sealed) -> Step<()> {
        let running = self.running.get_mut(aggregate);
        let change = running.and_then(|running| running.keep(slot, sealed));
        Step::new(change.into_iter().collect(), ())
    }

    /// What proves that another smoother has not kept to the protocol.
    pub fn evidence(&self, aggregate: &Digest) -> impl Iterator<Item = &Evidence> {
        self.running.get(aggregate).into_iter().flat_map(Running::evidence)
    }

    /// The certified entry of a slot.
    #[must_use]
    pub fn certified(&self, aggregate: &Digest, slot: u32) -> Option<&Entry> {
        self.running.get(aggregate)?.certified(slot)
    }

    /// How an aggregate ended, once it has.
    #[must_use]
    pub fn outcome(&self, aggregate: &Digest) -> Option<Outcome> {
        self.running.get(aggregate)?.outcome()
    }

    /// The same, signed, for an aggregator that asks at any time.
    #[must_use]
    pub fn signed_outcome(&self, aggregate: &Digest) -> Option<Signed<Outcome>> {
        self.outcome(aggregate).map(|outcome| Signed::new(&outcome, &self.key))
    }

    /// What time asks for: aggregates end at their deadlines, and keys of past key epochs are
    /// destroyed.
    pub fn poll(&mut self, now: Time) -> Step<Vec<Output>> {
        let (mut changes, mut outputs) = (Vec::new(), Vec::new());
        for running in self.running.values_mut() {
            if now < running.agreed().deadline() {
                continue;
            }
            if running.outcome().is_none() && !is_out(self.sits_out, running) {
                let filled = running.is_filled(&self.pinned);
                let reason = if filled { Reason::Late } else { Reason::NotFilled };
                let (change, outcome) = running.end(Err(reason));
                changes.push(change);
                outputs.push(Output::Outcome(Signed::new(&outcome, &self.key)));
            }
            let forgotten = running.forget();
            if !forgotten.is_empty() {
                self.heard.clear();
            }
            changes.extend(forgotten);
        }
        changes.extend(self.erase(now));
        Step::new(changes, outputs)
    }

    /// Destroys shares of key epochs that are over, with all aggregates in them.
    fn erase(&mut self, now: Time) -> Vec<Change> {
        let Some(running) = self.pinned.key_epoch(now) else { return Vec::new() };
        let open = |epoch: &KeyEpoch| {
            self.running.values().any(|running| {
                let agreed = running.agreed();
                agreed.key_epoch == *epoch && now < agreed.deadline()
            })
        };
        let over: Vec<KeyEpoch> = self
            .keys
            .range(..running)
            .map(|(epoch, _)| *epoch)
            .filter(|epoch| !open(epoch))
            .collect();
        let mut changes = Vec::new();
        for epoch in over {
            if let Some(key) = self.keys.get_mut(&epoch).filter(|key| !key.card.erased) {
                changes.extend(key.destroy(epoch));
            }
        }
        changes
    }

    /// What it has said of aggregates that are not over, once more: messages get lost.
    #[must_use]
    pub fn repeat(&self, now: Time) -> Vec<Output> {
        let open = self.running.values().filter(|running| now < running.agreed().deadline());
        open.flat_map(|running| running.repeat(&self.key)).collect()
    }
}

fn is_out(sits_out: Option<KeyEpoch>, running: &Running) -> bool {
    Some(running.agreed().key_epoch) <= sits_out
}
