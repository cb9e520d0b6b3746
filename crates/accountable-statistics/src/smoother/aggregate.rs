//! One aggregate at one smoother: slots and deposits, until the release.

use super::openings::SumState;
use super::records::{self, AggregateRecord};
use super::shard::PresentationVerdicts;
use super::{Output, Smoother};
use crate::configuration::{PinnedConfiguration, SmootherId};
use crate::definition::AgreedDefinition;
use crate::disclosure::Finding;
use crate::endorsement::Endorsed;
use crate::messages::{
    Entry, Evidence, NoResultError, Opening, Outcome, PublishedResult, Ready, Receipt, Release,
    ReleasedSlot, SealedUpload, sealed_digest,
};
use crate::role_error::ReleaseError;
use crate::slots::{ReceiptEffect, Slots, StoredDeposit};
use crate::sums::{Part, Sums};
use crate::threshold::decryption::VerifiedPartial;
use crate::tuple::{CheckedTuple, Checker};
use alpheus_anonymous_credential::messages::TagId;
use alpheus_anonymous_credential::subjects::Subject;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::Change;
use alpheus_crypto::onetime::OneTimePublic;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_crypto::signed_message::Signed;
use alpheus_time::Timestamp;
use std::collections::BTreeMap;

/// The state of one aggregate.
pub(super) struct AggregateState {
    definition: AgreedDefinition,
    /// Of this smoother's slot credential.
    pub(super) subject: Subject,
    /// This smoother's position among all: the order of a client's joint presentations.
    pub(super) position: (usize, usize),
    /// The upload that each spent tag is for.
    pub(super) spent: BTreeMap<TagId, OneTimePublic>,
    /// Presentations checked but not used yet.
    pub(super) verdicts: PresentationVerdicts,
    pub(super) slots: Slots,
    pub(super) checker: Option<Checker>,
    /// Tuples checked before one set of them is agreed to.
    pub(super) checked_tuples: BTreeMap<u32, CheckedTuple>,
    /// What was found in uploads that the aggregator has disclosed.
    pub(super) disclosed: BTreeMap<u32, Finding>,
    /// The sums of that set.
    pub(super) sums: Sums,
    /// The one set that it has agreed to.
    pub(super) ready: Option<Ready>,
    pub(super) ready_by: BTreeMap<SmootherId, Ready>,
    /// Those of others as they signed them: a smoother that has forgotten its own is shown it.
    pub(super) signed_ready_by: BTreeMap<SmootherId, Signed<Ready>>,
    pub(super) partials: BTreeMap<Part, BTreeMap<SmootherId, VerifiedPartial>>,
    pub(super) openings: BTreeMap<Part, Signed<Opening>>,
    /// Sums that have been searched for.
    pub(super) sums_read: BTreeMap<Part, SumState>,
    /// Nothing that a release needs is missing.
    complete: bool,
    outcome: Option<Outcome>,
    evidence: BTreeMap<SmootherId, Evidence>,
}

impl AggregateState {
    pub(super) fn new(
        agreed: AgreedDefinition,
        pinned: &PinnedConfiguration,
        id: SmootherId,
    ) -> Option<Self> {
        let subject = agreed.subject(pinned.slots(id)?);
        let sums = Sums::new(agreed.terms(), agreed.name());
        Some(Self {
            definition: agreed,
            subject,
            position: (id.0.into(), pinned.smoothers.len()),
            spent: BTreeMap::new(),
            verdicts: PresentationVerdicts::new(),
            slots: Slots::default(),
            checker: None,
            checked_tuples: BTreeMap::new(),
            disclosed: BTreeMap::new(),
            sums,
            ready: None,
            ready_by: BTreeMap::new(),
            signed_ready_by: BTreeMap::new(),
            partials: BTreeMap::new(),
            openings: BTreeMap::new(),
            sums_read: BTreeMap::new(),
            complete: false,
            outcome: None,
            evidence: BTreeMap::new(),
        })
    }

    /// Puts a record back; none if it is damaged.
    pub(super) fn restore_record(
        &mut self,
        line: AggregateRecord,
        pinned: &PinnedConfiguration,
        (id, signer): (SmootherId, &VerifyingKey),
    ) -> Option<()> {
        let quorum = pinned.quorum();
        match line {
            AggregateRecord::Definition(_) => {}
            AggregateRecord::Tag(tag, ephemeral) => drop(self.spent.insert(tag, ephemeral)),
            AggregateRecord::Grant(signed) => {
                let grant = signed.open(signer).ok()?.into_inner();
                self.slots.record_grant(grant, signed);
            }
            AggregateRecord::Entry(keeper, grant, sealed, receipt) => {
                let entry = receipt.open(signer).ok()?.into_inner();
                self.slots.record_receipt(id, entry, receipt.clone(), quorum);
                self.slots.record_deposit(StoredDeposit { entry, keeper, grant, sealed, receipt });
            }
            AggregateRecord::Certificate(certificate) => {
                let entry = certificate.open(pinned, quorum).ok()?.into_inner();
                self.slots.record_certificate(entry, certificate);
            }
            AggregateRecord::Fetched(slot, sealed) => self.slots.record_upload(slot, sealed),
            AggregateRecord::Evidence(evidence) => {
                drop(self.evidence.insert(evidence.against(), evidence))
            }
            AggregateRecord::Ready(ready, sums) => {
                self.sums =
                    Sums::from_bytes(&sums, self.definition.terms(), self.definition.name())
                        .ok()?;
                self.ready_by.insert(id, ready);
                self.ready = Some(ready);
            }
            AggregateRecord::Outcome(outcome) => self.outcome = Some(outcome),
        }
        Some(())
    }

    pub(super) fn definition(&self) -> &AgreedDefinition {
        &self.definition
    }

    pub(super) fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    pub(super) fn certified(&self, slot: u32) -> Option<&Entry> {
        self.slots.certified(slot)
    }

    /// Whether this smoother has signed an entry that it does not store.
    pub(super) fn has_forgotten(&self, entry: &Entry) -> bool {
        let over = self.outcome.is_some();
        !over && self.slots.deposit(entry.slot).is_none_or(|held| held.entry != *entry)
    }

    /// Records a receipt and what it proves.
    pub(super) fn record_receipt(
        &mut self,
        by: SmootherId,
        entry: Entry,
        signed: Signed<Entry>,
        quorum: usize,
    ) -> Option<Change> {
        match self.slots.record_receipt(by, entry, signed, quorum) {
            ReceiptEffect::Known => None,
            ReceiptEffect::Certified(certificate) => {
                self.complete = false;
                Some(records::certificate(&entry, &certificate))
            }
            ReceiptEffect::Twice(evidence) => self.record_evidence(evidence),
        }
    }

    /// Whether an entry belongs to this aggregate.
    pub(super) fn owns(&self, entry: &Entry) -> bool {
        let agreed = &self.definition;
        let ours = (entry.aggregate, entry.key_epoch) == (agreed.name(), agreed.key_epoch);
        ours && entry.slot < agreed.slots
    }

    /// Records a certificate, all of whose signatures have been checked.
    pub(super) fn record_certificate(
        &mut self,
        entry: Entry,
        certificate: Endorsed<Entry>,
    ) -> Option<Change> {
        if self.slots.certified(entry.slot).is_some() {
            return None;
        }
        self.complete = false;
        let change = records::certificate(&entry, &certificate);
        self.slots.record_certificate(entry, certificate);
        Some(change)
    }

    /// Stores evidence: the first against each smoother.
    pub(super) fn record_evidence(&mut self, evidence: Evidence) -> Option<Change> {
        let by = evidence.against();
        if self.evidence.contains_key(&by) {
            return None;
        }
        let change = records::evidence(&self.definition.name(), by, &evidence);
        self.evidence.insert(by, evidence);
        Some(change)
    }

    /// The smoothers that there is evidence against.
    pub(super) fn accused(&self) -> impl Iterator<Item = SmootherId> {
        self.evidence.keys().copied()
    }

    pub(super) fn evidence(&self) -> impl Iterator<Item = &Evidence> {
        self.evidence.values()
    }

    pub(super) fn certificates(&self, from: u32, most: usize) -> Vec<Endorsed<Entry>> {
        self.slots.certificates(from).take(most).cloned().collect()
    }

    /// Certified slots whose deposit is missing here.
    pub(super) fn missing_deposits(&self) -> Vec<u32> {
        let lacking = |entry: &&Entry| self.slots.sealed(entry).is_none();
        self.slots.all_certified(0).filter(lacking).map(|entry| entry.slot).collect()
    }

    /// The sealed upload of a certified slot.
    pub(super) fn sealed_upload(&self, slot: u32) -> Option<&SealedUpload> {
        self.slots.certified(slot).and_then(|entry| self.slots.sealed(entry))
    }

    /// Stores the sealed upload of a certified slot, if it matches the entry.
    pub(super) fn store_sealed_upload(
        &mut self,
        slot: u32,
        sealed: SealedUpload,
    ) -> Option<Change> {
        let entry = self.slots.certified(slot)?;
        if sealed_digest(&sealed) != entry.sealed || self.slots.sealed(entry).is_some() {
            return None;
        }
        let change = records::fetched(&self.definition.name(), slot, &sealed);
        self.slots.record_upload(slot, sealed);
        Some(change)
    }

    pub(super) fn receipts(&self) -> Vec<Receipt> {
        self.slots.receipts()
    }

    /// Whether the empty slots are within the tolerance.
    pub(super) fn is_filled(&self, pinned: &PinnedConfiguration) -> bool {
        let missing = pinned.max_missing(self.definition.slots) as usize;
        self.slots.certified_count() + missing >= self.definition.slots as usize
    }

    /// Whether the release time has come and enough slots are filled.
    fn may_release(
        &self,
        now: Timestamp,
        pinned: &PinnedConfiguration,
    ) -> Result<(), ReleaseError> {
        if now < self.definition.release() {
            return Err(ReleaseError::Early);
        }
        if self.is_filled(pinned) { Ok(()) } else { Err(ReleaseError::NotFilled) }
    }

    /// Certified entries from a slot on, each with its sealed upload.
    fn released_slots(&self, from: u32) -> impl Iterator<Item = Option<ReleasedSlot>> {
        self.slots.all_certified(from).map(|entry| {
            let sealed = self.slots.sealed(entry)?.clone();
            Some(ReleasedSlot { entry: *entry, sealed })
        })
    }

    /// Ends the aggregate here.
    pub(super) fn end(
        &mut self,
        result: Result<PublishedResult, NoResultError>,
    ) -> (Change, Outcome) {
        let outcome = Outcome { aggregate: self.definition.name(), result };
        self.outcome = Some(outcome);
        (records::outcome(&outcome), outcome)
    }

    /// Whether there are records that [`AggregateState::forget`] would remove.
    pub(super) fn has_records(&self) -> bool {
        let (entries, grants) = self.slots.names();
        !self.spent.is_empty() || !entries.is_empty() || !grants.is_empty()
    }

    /// Forgets everything but how it ended.
    pub(super) fn forget(&mut self) -> Vec<Change> {
        let name = self.definition.name();
        let slots = std::mem::take(&mut self.slots);
        let (entries, grants) = slots.names();
        let spent = std::mem::take(&mut self.spent);
        let tags = spent.keys().map(|tag| records::no_tag(&name, tag));
        let entries = entries.into_iter().flat_map(|slot| records::no_entry(&name, slot));
        let grants = grants.into_iter().map(|key| records::no_grant(&name, &key));
        self.complete = false;
        self.checker = None;
        self.checked_tuples.clear();
        self.disclosed.clear();
        self.verdicts.clear();
        self.signed_ready_by.clear();
        tags.chain(entries).chain(grants).collect()
    }

    /// Forgets what is left then.
    pub(super) fn remove_all(&self, name: &Digest) -> Vec<Change> {
        let evidence = self.evidence.keys().map(|by| records::no_evidence(name, *by));
        records::no_aggregate(name).into_iter().chain(evidence).collect()
    }

    pub(super) fn messages_to_resend(&self, key: &SigningKey) -> Vec<Output> {
        let ready = self.ready.iter().map(|ready| Output::Ready(Signed::new(ready, key)));
        let made = self.openings.values().map(|opening| Output::Opening(opening.clone()));
        let over = self.outcome.iter().map(|o| Output::Outcome(Signed::new(o, key)));
        ready.chain(made).chain(over).collect()
    }
}

impl Smoother {
    /// The ledger and all sealed uploads, once the release time has come, enough slots are filled
    /// (see [`PinnedConfiguration::max_missing`]) and no certified deposit is missing: see
    /// [`Smoother::missing_deposits`].
    ///
    /// # Errors
    /// [`ReleaseError`].
    ///
    /// # Privacy
    /// The aggregator gets U uploads at a time that the definition fixes. It gets neither turns nor
    /// receipts, which would show when the uploads came.
    pub fn release(&self, aggregate: &Digest, now: Timestamp) -> Result<Release, ReleaseError> {
        let state = self.aggregates.get(aggregate).ok_or(ReleaseError::Unknown)?;
        state.may_release(now, &self.pinned)?;
        // What one smoother lacks would reveal when it was down, and so when that was deposited.
        let slots =
            state.released_slots(0).collect::<Option<_>>().ok_or(ReleaseError::NotFilled)?;
        Ok(Release { aggregate: *aggregate, slots })
    }

    /// At most so many slots of [`Smoother::release`], from a slot on. A shorter part is the last
    /// one.
    ///
    /// # Errors
    /// As [`Smoother::release`], the same for each part.
    ///
    /// # Privacy
    /// As for [`Smoother::release`].
    pub fn release_from(
        &mut self,
        aggregate: &Digest,
        (from, most): (u32, usize),
        now: Timestamp,
    ) -> Result<Release, ReleaseError> {
        let state = self.aggregates.get_mut(aggregate).ok_or(ReleaseError::Unknown)?;
        state.may_release(now, &self.pinned)?;
        // What is complete stays complete, and is not searched again for each part.
        state.complete = state.complete || state.missing_deposits().is_empty();
        let slots = state.complete.then(|| state.released_slots(from).take(most).collect());
        let slots = slots.flatten().ok_or(ReleaseError::NotFilled)?;
        Ok(Release { aggregate: *aggregate, slots })
    }
}
