//! A smoother: gives out slots, keeps what is deposited, checks every tuple, and takes
//! part in opening an aggregate once.
//!
//! Whatever leaves comes out of a [`Step`], so that it is durable before.

mod agreeing;
mod counting;
mod ending;
mod hearing;
mod opening;
mod records;
mod running;
mod shard;

pub use shard::Shard;

use crate::configuration::{KeyEpoch, Pinned, SmootherId};
use crate::definition::Agreed;
use crate::endorsed::Endorsed;
use crate::logarithm::Table;
use crate::messages::{End, Entry, Evidence, Opening, Outcome, Ready, Receipt};
use crate::refused::{NotHeard, NotRestored};
use crate::threshold::KeyShare;
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
    /// Keepers of whom it is proven that they give slots twice.
    convicted: BTreeSet<SmootherId>,
    /// Of key epochs up to this one it may have forgotten what it has signed.
    sits_out: Option<KeyEpoch>,
    /// Key epochs before this one are over: what was of them is pruned.
    first: KeyEpoch,
}

impl Smoother {
    /// A smoother as its ledger has it; an empty one for a new smoother.
    ///
    /// After a log that may be an old copy it sits out the running key epoch and the next, for
    /// which it may have signed definitions, and destroys their shares: it may have agreed to a
    /// set that it does not remember.
    ///
    /// One that was stopped after its first commit and has said nothing yet is new still: nothing
    /// but that it has begun is in its ledger.
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
            convicted: BTreeSet::new(),
            sits_out: None,
            first: KeyEpoch(0),
        };
        let begun = smoother.put_back(records)?;
        let (keys, claims) = (smoother.keys.is_empty(), smoother.claims.is_empty());
        let pruned = smoother.first > KeyEpoch(0) || smoother.sits_out.is_some();
        let in_use = !keys || !claims || !smoother.running.is_empty() || pruned;
        if (log == Log::New && in_use) || (log == Log::Whole && !begun) {
            return Err(DamagedLog.into());
        }
        let mut changes = vec![records::begun(smoother.sits_out, smoother.first)];
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
                Record::Begun(sits_out, first) => {
                    (begun, self.sits_out, self.first) = (true, sits_out, first);
                }
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
        let mut changes = vec![records::begun(self.sits_out, self.first)];
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

    /// Whether it works by a definition, or has and not forgotten it.
    #[must_use]
    pub fn knows(&self, aggregate: &Digest) -> bool {
        self.running.contains_key(aggregate)
    }

    /// The first key epoch that it has not forgotten.
    #[must_use]
    pub fn first_epoch(&self) -> KeyEpoch {
        self.first
    }

    /// Which smoother it is.
    #[must_use]
    pub fn id(&self) -> SmootherId {
        self.id
    }

    /// Burns what it may have forgotten, having heard words of its own of a key epoch that it does
    /// not remember; unless it sat that one out, and knows why.
    fn sit_out_for(&mut self, epoch: KeyEpoch, now: Time) -> Step<()> {
        let known = self.sits_out(epoch);
        Step::new(if known { Vec::new() } else { self.sit_out(now) }, ())
    }

    /// Why a word that holds is not heard, of an aggregate that it does not work by. Of a key epoch
    /// that it has forgotten it remembers none, its own included, and whoever kept one could say
    /// it again for ever.
    fn not_here(&self, epoch: KeyEpoch, own: bool) -> NotHeard {
        match own {
            _ if epoch < self.first => NotHeard::Over,
            true => NotHeard::Forgotten,
            false => NotHeard::Unknown,
        }
    }

    /// All certificates of an aggregate, for another smoother that asks; for nobody else, since
    /// who has signed an entry says when.
    #[must_use]
    pub fn certificates(&self, aggregate: &Digest) -> Vec<Endorsed<Entry>> {
        self.certificates_from(aggregate, (0, usize::MAX))
    }

    /// So many of [`Smoother::certificates`] at most, from a slot on.
    #[must_use]
    pub fn certificates_from(
        &self,
        aggregate: &Digest,
        (from, most): (u32, usize),
    ) -> Vec<Endorsed<Entry>> {
        let running = self.running.get(aggregate);
        running.map(|running| running.certificates(from, most)).unwrap_or_default()
    }

    /// What other smoothers have signed ready for, as this one has heard it since it was started:
    /// for another smoother that asks, which may have forgotten its own.
    #[must_use]
    pub fn readies(&self, aggregate: &Digest) -> Vec<(SmootherId, Signed<Ready>)> {
        let running = self.running.get(aggregate);
        let heard = running.into_iter().flat_map(|running| &running.heard);
        heard.map(|(by, ready)| (*by, ready.clone())).collect()
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

    /// How an aggregate ended here, and the set that this smoother has agreed to, for everybody.
    #[must_use]
    pub fn end(&self, aggregate: &Digest) -> Option<End> {
        let outcome = self.signed_outcome(aggregate)?;
        let ready = self.running.get(aggregate).and_then(|running| running.ready);
        Some(End { outcome, ready: ready.map(|ready| Signed::new(&ready, &self.key)) })
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
