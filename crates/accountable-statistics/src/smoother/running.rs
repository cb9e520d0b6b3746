//! One aggregate at one smoother: slots and deposits, until the release.

use super::opening::Read;
use super::records::{self, Line};
use super::shard::Proven;
use super::{Output, Smoother};
use crate::configuration::{Pinned, SmootherId};
use crate::definition::Agreed;
use crate::endorsed::Endorsed;
use crate::messages::{
    Entry, Evidence, Listed, Opening, Outcome, Published, Ready, Reason, Receipt, Release,
    sealed_digest,
};
use crate::refused::NotReleased;
use crate::slots::{Held, Noted, Slots};
use crate::sums::{Part, Sums};
use crate::threshold::decrypting::VerifiedPartial;
use crate::tuple::{CheckedTuple, Checker};
use alpheus_anonymous_credential::messages::TagId;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_anonymous_credential::subjects::Subject;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::Change;
use alpheus_crypto::seal::Sealed;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_crypto::signed::Signed;
use std::collections::BTreeMap;

/// One aggregate.
pub(super) struct Running {
    agreed: Agreed,
    /// Of this smoother's slot credential.
    pub(super) subject: Subject,
    /// This smoother's place among all, in whose order a client's showings are made together.
    pub(super) place: (usize, usize),
    /// Which upload a showing was for.
    pub(super) spent: BTreeMap<TagId, VerifyingKey>,
    /// Showings that were checked, until they are used.
    pub(super) proven: Proven,
    pub(super) slots: Slots,
    pub(super) checker: Option<Checker>,
    /// Tuples that were checked, until one set of them is agreed to.
    pub(super) checked: BTreeMap<u32, CheckedTuple>,
    /// Of that set.
    pub(super) sums: Sums,
    /// The one set that it has agreed to.
    pub(super) ready: Option<Ready>,
    pub(super) readies: BTreeMap<SmootherId, Ready>,
    /// Those of others as they signed them: one that has forgotten its own is shown it.
    pub(super) heard: BTreeMap<SmootherId, Signed<Ready>>,
    pub(super) partials: BTreeMap<Part, BTreeMap<SmootherId, VerifiedPartial>>,
    pub(super) made: BTreeMap<Part, Signed<Opening>>,
    /// Sums that were searched for.
    pub(super) read: BTreeMap<Part, Read>,
    /// Nothing of a release is lacking.
    complete: bool,
    outcome: Option<Outcome>,
    evidence: BTreeMap<SmootherId, Evidence>,
}

impl Running {
    pub(super) fn new(agreed: Agreed, pinned: &Pinned, id: SmootherId) -> Option<Self> {
        let subject = agreed.subject(pinned.slots(id)?);
        let sums = Sums::new(agreed.terms(), agreed.name());
        Some(Self {
            agreed,
            subject,
            place: (id.0.into(), pinned.smoothers.len()),
            spent: BTreeMap::new(),
            proven: Proven::new(),
            slots: Slots::default(),
            checker: None,
            checked: BTreeMap::new(),
            sums,
            ready: None,
            readies: BTreeMap::new(),
            heard: BTreeMap::new(),
            partials: BTreeMap::new(),
            made: BTreeMap::new(),
            read: BTreeMap::new(),
            complete: false,
            outcome: None,
            evidence: BTreeMap::new(),
        })
    }

    /// Puts a record back; none if it is damaged.
    pub(super) fn put_back(
        &mut self,
        line: Line,
        pinned: &Pinned,
        (id, signer): (SmootherId, &VerifyingKey),
    ) -> Option<()> {
        let quorum = pinned.quorum();
        match line {
            Line::Definition(_) => {}
            Line::Tag(tag, ephemeral) => drop(self.spent.insert(tag, ephemeral)),
            Line::Grant(signed) => {
                let grant = signed.open(signer).ok()?.into_inner();
                self.slots.give(grant, signed);
            }
            Line::Entry(keeper, grant, sealed, receipt) => {
                let entry = receipt.open(signer).ok()?.into_inner();
                self.slots.hear(id, entry, receipt.clone(), quorum);
                self.slots.sign(Held { entry, keeper, grant, sealed, receipt });
            }
            Line::Certificate(certificate) => {
                let entry = certificate.open(pinned, quorum).ok()?.into_inner();
                self.slots.certify(entry, certificate);
            }
            Line::Fetched(slot, sealed) => self.slots.fetch(slot, sealed),
            Line::Evidence(evidence) => drop(self.evidence.insert(evidence.against(), evidence)),
            Line::Ready(ready, sums) => {
                self.sums =
                    Sums::from_bytes(&sums, self.agreed.terms(), self.agreed.name()).ok()?;
                self.readies.insert(id, ready);
                self.ready = Some(ready);
            }
            Line::Outcome(outcome) => self.outcome = Some(outcome),
        }
        Some(())
    }

    pub(super) fn agreed(&self) -> &Agreed {
        &self.agreed
    }

    pub(super) fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    pub(super) fn certified(&self, slot: u32) -> Option<&Entry> {
        self.slots.certified(slot)
    }

    /// Whether this smoother has signed an entry that it does not hold.
    pub(super) fn has_forgotten(&self, entry: &Entry) -> bool {
        let over = self.outcome.is_some();
        !over && self.slots.held(entry.slot).is_none_or(|held| held.entry != *entry)
    }

    /// Notes a receipt, and what it proves.
    pub(super) fn hear(
        &mut self,
        by: SmootherId,
        entry: Entry,
        signed: Signed<Entry>,
        quorum: usize,
    ) -> Option<Change> {
        match self.slots.hear(by, entry, signed, quorum) {
            Noted::Known => None,
            Noted::Certified(certificate) => {
                self.complete = false;
                Some(records::certificate(&entry, &certificate))
            }
            Noted::Twice(evidence) => self.note(evidence),
        }
    }

    /// Whether an entry is one of this aggregate's.
    pub(super) fn lists(&self, entry: &Entry) -> bool {
        let agreed = &self.agreed;
        let ours = (entry.aggregate, entry.key_epoch) == (agreed.name(), agreed.key_epoch);
        ours && entry.slot < agreed.slots
    }

    /// Notes a certificate of which all signatures were checked.
    pub(super) fn certify(&mut self, entry: Entry, certificate: Endorsed<Entry>) -> Option<Change> {
        if self.slots.certified(entry.slot).is_some() {
            return None;
        }
        self.complete = false;
        let change = records::certificate(&entry, &certificate);
        self.slots.certify(entry, certificate);
        Some(change)
    }

    /// Keeps evidence, the first against each smoother.
    pub(super) fn note(&mut self, evidence: Evidence) -> Option<Change> {
        let by = evidence.against();
        if self.evidence.contains_key(&by) {
            return None;
        }
        let change = records::evidence(&self.agreed.name(), by, &evidence);
        self.evidence.insert(by, evidence);
        Some(change)
    }

    /// Against whom there is evidence.
    pub(super) fn accused(&self) -> impl Iterator<Item = SmootherId> {
        self.evidence.keys().copied()
    }

    pub(super) fn evidence(&self) -> impl Iterator<Item = &Evidence> {
        self.evidence.values()
    }

    pub(super) fn certificates(&self, from: u32, most: usize) -> Vec<Endorsed<Entry>> {
        self.slots.certificates(from).take(most).cloned().collect()
    }

    /// Certified slots whose deposit is elsewhere.
    pub(super) fn lacking(&self) -> Vec<u32> {
        let lacking = |entry: &&Entry| self.slots.sealed(entry).is_none();
        self.slots.all_certified(0).filter(lacking).map(|entry| entry.slot).collect()
    }

    /// What is sealed for a slot.
    pub(super) fn kept(&self, slot: u32) -> Option<&Sealed> {
        self.slots.certified(slot).and_then(|entry| self.slots.sealed(entry))
    }

    /// Keeps what another smoother has of a certified slot, if it is that.
    pub(super) fn keep(&mut self, slot: u32, sealed: Sealed) -> Option<Change> {
        let entry = self.slots.certified(slot)?;
        if sealed_digest(&sealed) != entry.sealed || self.slots.sealed(entry).is_some() {
            return None;
        }
        let change = records::fetched(&self.agreed.name(), slot, &sealed);
        self.slots.fetch(slot, sealed);
        Some(change)
    }

    pub(super) fn receipts(&self) -> Vec<Receipt> {
        self.slots.receipts()
    }

    /// Whether no more slots are empty than may be.
    pub(super) fn is_filled(&self, pinned: &Pinned) -> bool {
        let missing = pinned.missing_at_most(self.agreed.slots) as usize;
        self.slots.filled() + missing >= self.agreed.slots as usize
    }

    /// Whether the time has come and all slots are filled.
    fn may_release(&self, now: Time, pinned: &Pinned) -> Result<(), NotReleased> {
        if now < self.agreed.release() {
            return Err(NotReleased::Early);
        }
        if self.is_filled(pinned) { Ok(()) } else { Err(NotReleased::NotFilled) }
    }

    /// Certified entries from a slot on, with what is sealed for them.
    fn listed(&self, from: u32) -> impl Iterator<Item = Option<Listed>> {
        self.slots.all_certified(from).map(|entry| {
            let sealed = self.slots.sealed(entry)?.clone();
            Some(Listed { entry: *entry, sealed })
        })
    }

    /// Ends the aggregate here.
    pub(super) fn end(&mut self, result: Result<Published, Reason>) -> (Change, Outcome) {
        let outcome = Outcome { aggregate: self.agreed.name(), result };
        self.outcome = Some(outcome);
        (records::outcome(&outcome), outcome)
    }

    /// Forgets all but how it ended.
    pub(super) fn forget(&mut self) -> Vec<Change> {
        let name = self.agreed.name();
        let slots = std::mem::take(&mut self.slots);
        let (entries, grants) = slots.names();
        let spent = std::mem::take(&mut self.spent);
        let tags = spent.keys().map(|tag| records::no_tag(&name, tag));
        let entries = entries.into_iter().flat_map(|slot| records::no_entry(&name, slot));
        let grants = grants.into_iter().map(|key| records::no_grant(&name, &key));
        self.complete = false;
        self.checker = None;
        self.checked.clear();
        self.proven.clear();
        self.heard.clear();
        tags.chain(entries).chain(grants).collect()
    }

    /// What is left of it then.
    pub(super) fn forget_all(&self, name: &Digest) -> Vec<Change> {
        let evidence = self.evidence.keys().map(|by| records::no_evidence(name, *by));
        records::no_aggregate(name).into_iter().chain(evidence).collect()
    }

    pub(super) fn repeat(&self, key: &SigningKey) -> Vec<Output> {
        let ready = self.ready.iter().map(|ready| Output::Ready(Signed::new(ready, key)));
        let made = self.made.values().map(|opening| Output::Opening(opening.clone()));
        let over = self.outcome.iter().map(|o| Output::Outcome(Signed::new(o, key)));
        ready.chain(made).chain(over).collect()
    }
}

impl Smoother {
    /// The ledger and all that is sealed, once the time has come, all slots are filled and
    /// nothing is lacking: see [`Smoother::lacking`].
    ///
    /// # Errors
    /// [`NotReleased`].
    ///
    /// # Privacy
    /// For the aggregator: U uploads at a time that the definition fixes. Neither turns nor
    /// receipts are with them, which would say when they came.
    pub fn release(&self, now: Time, aggregate: &Digest) -> Result<Release, NotReleased> {
        let running = self.running.get(aggregate).ok_or(NotReleased::Unknown)?;
        running.may_release(now, &self.pinned)?;
        // What one smoother lacks would say when it was away, and so when that was deposited.
        let listed = running.listed(0).collect::<Option<_>>().ok_or(NotReleased::NotFilled)?;
        Ok(Release { aggregate: *aggregate, listed })
    }

    /// So much of [`Smoother::release`] at most, from a slot on: what is less is the last of it.
    ///
    /// # Errors
    /// As [`Smoother::release`], for each part of it alike.
    ///
    /// # Privacy
    /// As of [`Smoother::release`].
    pub fn release_from(
        &mut self,
        now: Time,
        aggregate: &Digest,
        (from, most): (u32, usize),
    ) -> Result<Release, NotReleased> {
        let running = self.running.get_mut(aggregate).ok_or(NotReleased::Unknown)?;
        running.may_release(now, &self.pinned)?;
        // What is complete stays so, and is not looked through for each part.
        running.complete = running.complete || running.lacking().is_empty();
        let listed = running.complete.then(|| running.listed(from).take(most).collect());
        let listed = listed.flatten().ok_or(NotReleased::NotFilled)?;
        Ok(Release { aggregate: *aggregate, listed })
    }
}
