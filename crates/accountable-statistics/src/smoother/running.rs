//! One aggregate at one smoother: slots and deposits, until the release.

use super::opening::Read;
use super::records::{self, Line};
use super::{Output, Smoother};
use crate::configuration::{Pinned, SmootherId};
use crate::definition::{Agreed, Turn};
use crate::endorsed::Endorsed;
use crate::messages::{
    Deposit, Entry, Evidence, Grant, Listed, Opening, Outcome, Published, Ready, Reason, Receipt,
    Release, SlotRequest, Upload, encode, request_digest, sealed_digest,
};
use crate::refused::{NoSlot, NotReleased};
use crate::slots::{Held, Noted, Slots, Taken};
use crate::sums::{Part, Sums};
use crate::threshold::decrypting::VerifiedPartial;
use crate::tuple::{CheckedTuple, Checker};
use alpheus_anonymous_credential::error::Refused as BadShowing;
use alpheus_anonymous_credential::messages::{Login, TagId};
use alpheus_anonymous_credential::schedule::Time;
use alpheus_anonymous_credential::subjects::Subject;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::ledger::{Change, Step};
use alpheus_crypto::seal::Sealed;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_crypto::signed::{Signed, Verified};
use rand_core::CryptoRng;
use std::collections::BTreeMap;

/// What is sealed is so much longer than what it holds.
const SEAL: usize = 48;

/// One aggregate.
pub(super) struct Running {
    agreed: Agreed,
    /// Of this smoother's slot credential.
    subject: Subject,
    /// Which upload a showing was for.
    spent: BTreeMap<TagId, VerifyingKey>,
    slots: Slots,
    pub(super) checker: Option<Checker>,
    /// Tuples that were checked, until one set of them is agreed to.
    pub(super) checked: BTreeMap<u32, CheckedTuple>,
    /// Of that set.
    pub(super) sums: Sums,
    /// The one set that it has agreed to.
    pub(super) ready: Option<Ready>,
    pub(super) readies: BTreeMap<SmootherId, Ready>,
    pub(super) partials: BTreeMap<Part, BTreeMap<SmootherId, VerifiedPartial>>,
    pub(super) made: BTreeMap<Part, Signed<Opening>>,
    /// Sums that were searched for.
    pub(super) read: BTreeMap<Part, Read>,
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
            spent: BTreeMap::new(),
            slots: Slots::default(),
            checker: None,
            checked: BTreeMap::new(),
            sums,
            ready: None,
            readies: BTreeMap::new(),
            partials: BTreeMap::new(),
            made: BTreeMap::new(),
            read: BTreeMap::new(),
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
            Noted::Certified(certificate) => Some(records::certificate(&entry, &certificate)),
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
        let change = records::certificate(&entry, &certificate);
        self.slots.certify(entry, certificate);
        Some(change)
    }

    /// Keeps evidence, the first against each smoother.
    fn note(&mut self, evidence: Evidence) -> Option<Change> {
        let by = evidence.against();
        if self.evidence.contains_key(&by) {
            return None;
        }
        let change = records::evidence(&self.agreed.name(), by, &evidence);
        self.evidence.insert(by, evidence);
        Some(change)
    }

    pub(super) fn evidence(&self) -> impl Iterator<Item = &Evidence> {
        self.evidence.values()
    }

    pub(super) fn certificates(&self) -> Vec<Endorsed<Entry>> {
        self.slots.certificates().cloned().collect()
    }

    /// Certified slots whose deposit is elsewhere.
    pub(super) fn lacking(&self) -> Vec<u32> {
        let lacking = |entry: &&Entry| self.slots.sealed(entry).is_none();
        self.slots.all_certified().filter(lacking).map(|entry| entry.slot).collect()
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
        self.checker = None;
        self.checked.clear();
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

    /// The tag of a showing that entitles this upload, unless it was for another.
    fn admit(
        &self,
        smoother: &Smoother,
        ephemeral: &VerifyingKey,
        showing: &[u8],
    ) -> Result<TagId, NoSlot> {
        let login = Login::from_bytes(showing, self.subject.limit()).map_err(BadShowing::from)?;
        if login.message != request_digest(&self.agreed.name(), ephemeral) {
            return Err(NoSlot::OtherShowing);
        }
        let verdict = smoother.verifier.verify_about(&self.subject, vec![login]).pop();
        let proven = verdict.unwrap_or(Err(BadShowing::Proof))?;
        let tag = proven.name(&self.subject);
        let other = self.spent.get(&tag).is_some_and(|known| known != ephemeral);
        if other { Err(NoSlot::Spent) } else { Ok(tag) }
    }
}

impl Smoother {
    /// The aggregate, if it gives or fills slots now, and its turn.
    fn at_turn(&self, aggregate: &Digest, now: Time) -> Result<(&Running, Turn), NoSlot> {
        let running = self.running.get(aggregate).ok_or(NoSlot::Unknown)?;
        if self.sits_out(running.agreed.key_epoch) {
            return Err(NoSlot::SitsOut);
        }
        let turn = running.agreed.turn(now).ok_or(NoSlot::NotNow)?;
        if running.outcome.is_some() { Err(NoSlot::NotNow) } else { Ok((running, turn)) }
    }

    /// Gives a slot, as its keeper. The same request gets the same slot at the same turn.
    ///
    /// # Errors
    /// [`NoSlot`]: nothing has changed.
    ///
    /// # Privacy
    /// The smoother learns that somebody with a credential of the period wants to upload, and
    /// when; not who, nor whether it is a sample.
    pub fn request(
        &mut self,
        now: Time,
        request: &SlotRequest,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Signed<Grant>>, NoSlot> {
        let SlotRequest { aggregate, ephemeral, showing } = request;
        let (running, _) = self.at_turn(aggregate, now)?;
        let turn = running.agreed.granting(now).ok_or(NoSlot::NotNow)?;
        let tag = running.admit(self, ephemeral, showing)?;
        if let Some(known) = running.slots.grant_at(ephemeral, turn) {
            // Written again, in case the first commit is still on its way to the disk.
            let changes = vec![
                records::tag(aggregate, &tag, ephemeral),
                records::grant(aggregate, ephemeral, known),
            ];
            return Ok(Step::new(changes, known.clone()));
        }
        if running.slots.has_deposited(ephemeral) {
            return Err(NoSlot::KeyTaken);
        }
        if running.slots.has_lapsed(ephemeral, turn) {
            return Err(NoSlot::Lapsed);
        }
        let of = (&running.agreed, &self.pinned);
        let slot = running.slots.draw(of, self.id, turn, rng).ok_or(NoSlot::Full)?;
        let revision = rng.next_u64();
        let grant = Grant { aggregate: *aggregate, slot, turn, revision, ephemeral: *ephemeral };
        let signed = Signed::new(&grant, &self.key);
        let changes = vec![
            records::tag(aggregate, &tag, ephemeral),
            records::grant(aggregate, ephemeral, &signed),
        ];
        if let Some(running) = self.running.get_mut(aggregate) {
            running.spent.insert(tag, *ephemeral);
            running.slots.give(grant, signed.clone());
        }
        Ok(Step::new(changes, signed))
    }

    /// Keeps a deposit and signs its entry. The same deposit gets the same receipt; it is for
    /// the client and for all other smoothers.
    ///
    /// # Errors
    /// [`NoSlot`]: nothing has changed.
    ///
    /// # Privacy
    /// As of [`Smoother::request`]. What is sealed opens for the aggregator alone.
    pub fn deposit(&mut self, now: Time, deposit: Deposit) -> Result<Step<Receipt>, NoSlot> {
        let keeper = self.pinned.key(deposit.keeper).ok_or(NoSlot::NotGranted)?;
        let grant = deposit.grant.open(keeper).map_err(|_| NoSlot::NotGranted)?;
        let Grant { aggregate, slot, ephemeral, .. } = *grant;
        let (running, turn) = self.at_turn(&aggregate, now)?;
        let key_epoch = running.agreed.key_epoch;
        let entry = Entry::of(&grant, key_epoch, deposit.content, &deposit.sealed);
        if let Some(held) = running.slots.held(slot).filter(|held| held.entry == entry) {
            let receipt = Receipt { by: self.id, entry: held.receipt.clone() };
            return Ok(Step::new(vec![records::entry(held)], receipt));
        }
        let tag = self.may_receive(running, turn, &grant, &entry, &deposit)?;
        let receipt = Signed::new(&entry, &self.key);
        let Deposit { keeper, grant, sealed, .. } = deposit;
        let held = Held { entry, keeper, grant, sealed, receipt: receipt.clone() };
        let mut changes = vec![records::tag(&aggregate, &tag, &ephemeral), records::entry(&held)];
        let (id, quorum) = (self.id, self.pinned.quorum());
        if let Some(running) = self.running.get_mut(&aggregate) {
            running.spent.insert(tag, ephemeral);
            running.slots.sign(held);
            changes.extend(running.hear(id, entry, receipt.clone(), quorum));
        }
        Ok(Step::new(changes, Receipt { by: id, entry: receipt }))
    }

    /// Notes two grants of one slot at one turn, if a deposit that was refused and what is held
    /// show them: for a deposit that [`Smoother::deposit`] has refused with
    /// [`NoSlot::SlotTaken`].
    pub fn compare_grants(&mut self, deposit: &Deposit) -> Step<()> {
        let nothing = || Step::new(Vec::new(), ());
        let Some(Ok(grant)) = self.pinned.key(deposit.keeper).map(|key| deposit.grant.open(key))
        else {
            return nothing();
        };
        let Some(key) = self.pinned.key(deposit.keeper) else { return nothing() };
        let Some(running) = self.running.get_mut(&grant.aggregate) else { return nothing() };
        let held = running.slots.held(grant.slot).filter(|held| held.keeper == deposit.keeper);
        let Some(known) = held.map(|held| held.grant.clone()) else { return nothing() };
        let twice = known
            .open(key)
            .is_ok_and(|known| known.turn == grant.turn && known.ephemeral != grant.ephemeral);
        let evidence = Evidence::Grants(deposit.keeper, known, deposit.grant.clone());
        let change = if twice { running.note(evidence) } else { None };
        Step::new(change.into_iter().collect(), ())
    }

    fn may_receive(
        &self,
        running: &Running,
        turn: Turn,
        grant: &Verified<Grant>,
        entry: &Entry,
        deposit: &Deposit,
    ) -> Result<TagId, NoSlot> {
        let kept = running.agreed.keeper(&self.pinned, grant.slot, grant.turn) == deposit.keeper;
        if !kept || grant.slot >= running.agreed.slots || grant.turn > turn {
            return Err(NoSlot::NotGranted);
        }
        let late = grant.turn < turn || self.is_convicted(deposit.keeper);
        if late && !self.vouched(entry, &deposit.receipts) {
            return Err(NoSlot::NotGranted);
        }
        if deposit.sealed.length() != Upload::length(&running.agreed) + SEAL {
            return Err(NoSlot::Size);
        }
        let bytes = encode(entry);
        let signed = grant.ephemeral.verify(labels::STATISTICS_DEPOSIT, &bytes, &deposit.signature);
        signed.map_err(|_| NoSlot::Signature)?;
        running.slots.may_sign(entry).map_err(|taken| match taken {
            Taken::Slot => NoSlot::SlotTaken,
            Taken::Key => NoSlot::KeyTaken,
        })?;
        running.admit(self, &grant.ephemeral, &deposit.showing)
    }

    /// Whether it is proven of a keeper that it gives slots twice, in any aggregate that is not over.
    /// What it gives counts no more, or each slot that it gives would be lost.
    fn is_convicted(&self, keeper: SmootherId) -> bool {
        self.running.values().any(|running| running.evidence.contains_key(&keeper))
    }

    /// Whether others have signed an entry in its turn, one of whom keeps to the protocol.
    fn vouched(&self, entry: &Entry, receipts: &[Receipt]) -> bool {
        let mut endorsed = Endorsed::default();
        let others = receipts.iter().filter(|receipt| receipt.by != self.id);
        others.for_each(|receipt| endorsed.add(receipt.by, receipt.entry.clone()));
        let opened = endorsed.open(&self.pinned, usize::from(self.pinned.threshold));
        opened.is_ok_and(|opened| *opened == *entry)
    }

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
        if now < running.agreed.release() {
            return Err(NotReleased::Early);
        }
        if !running.is_filled(&self.pinned) {
            return Err(NotReleased::NotFilled);
        }
        let listed = running.slots.all_certified().map(|entry| {
            let sealed = running.slots.sealed(entry)?.clone();
            Some(Listed { entry: *entry, sealed })
        });
        // What one smoother lacks would say when it was away, and so when that was deposited.
        let listed = listed.collect::<Option<_>>().ok_or(NotReleased::NotFilled)?;
        Ok(Release { aggregate: *aggregate, listed })
    }
}
