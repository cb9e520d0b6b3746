//! One aggregate at a smoother, separate from all others. Slots, deposits, receipts and tuples of
//! different aggregates share nothing that changes. So each may have its own thread, without a
//! lock, and one commit makes the work of all durable.

use super::aggregate::AggregateState;
use super::records;
use super::{Key, Smoother};
use crate::configuration::{KeyEpoch, PinnedConfiguration, SmootherId};
use crate::definition::Turn;
use crate::endorsement::Endorsed;
use crate::logarithm::Table;
use crate::messages::{
    ConflictingEntry, Deposit, Entry, Evidence, Grant, Receipt, SealedUpload, SlotRequest,
    presentation_digest, request_digest,
};
use crate::role_error::SlotError;
use crate::slots::{DepositConflict, StoredDeposit};
use alpheus_anonymous_credential::error::VerifierError as PresentationError;
use alpheus_anonymous_credential::messages::{JointPresentation, TagId};
use alpheus_anonymous_credential::subjects::ProvenPresentation;
use alpheus_anonymous_credential::verifier::Verifier;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::ledger::Step;
use alpheus_crypto::onetime::OneTimePublic;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::{Signed, Verified};
use alpheus_time::Timestamp;
use rand_core::CryptoRng;
use std::collections::{BTreeMap, BTreeSet};

/// How many valid presentations of an aggregate are remembered from a request to its deposit.
const REMEMBERED: usize = 4096;

/// What shards share. None of it changes while they work.
#[derive(Clone, Copy)]
pub(super) struct SmootherView<'a> {
    pub(super) pinned: &'a PinnedConfiguration,
    pub(super) id: SmootherId,
    pub(super) key: &'a SigningKey,
    pub(super) verifier: &'a Verifier,
    pub(super) keys: &'a BTreeMap<KeyEpoch, Key>,
    pub(super) table: &'a Table,
    pub(super) sits_out: Option<KeyEpoch>,
    pub(super) convicted: &'a BTreeSet<SmootherId>,
}

/// One aggregate, from [`Smoother::shards`].
pub struct Shard<'a> {
    pub(super) smoother: SmootherView<'a>,
    pub(super) state: &'a mut AggregateState,
}

/// Verdicts on presentations by [`presentation_digest`], each with the upload that it is for.
pub(super) type PresentationVerdicts =
    BTreeMap<Digest, (OneTimePublic, Result<TagId, PresentationError>)>;

impl Smoother {
    /// All aggregates, each separate from the others.
    pub fn shards(&mut self) -> impl Iterator<Item = (Digest, Shard<'_>)> {
        self.convict();
        let (smoother, aggregates) = self.split();
        aggregates.iter_mut().map(move |(name, state)| (*name, Shard { smoother, state }))
    }

    /// One of them.
    pub fn shard(&mut self, aggregate: &Digest) -> Option<Shard<'_>> {
        self.convict();
        let (smoother, aggregates) = self.split();
        aggregates.get_mut(aggregate).map(|state| Shard { smoother, state })
    }

    fn split(&mut self) -> (SmootherView<'_>, &mut BTreeMap<Digest, AggregateState>) {
        let Self {
            pinned, id, key, verifier, keys, table, sits_out, convicted, aggregates, ..
        } = self;
        let (id, sits_out) = (*id, *sits_out);
        (SmootherView { pinned, id, key, verifier, keys, table, sits_out, convicted }, aggregates)
    }

    /// Collects the smoothers proven to grant slots twice or to sign two entries of one, in any
    /// aggregate that is not pruned. The first proof against each is stored, of either kind. Their
    /// grants no longer count, or every slot that they grant would be lost.
    fn convict(&mut self) {
        self.convicted = self.aggregates.values().flat_map(|state| state.accused()).collect();
    }

    /// As [`Shard::handle_request`].
    ///
    /// # Errors
    /// [`SlotError`]: nothing has changed.
    pub fn handle_request(
        &mut self,
        request: &SlotRequest,
        now: Timestamp,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Signed<Grant>>, SlotError> {
        self.shard(&request.aggregate).ok_or(SlotError::Unknown)?.handle_request(request, now, rng)
    }

    /// As [`Shard::handle_deposit`].
    ///
    /// # Errors
    /// [`SlotError`]: nothing has changed.
    pub fn handle_deposit(
        &mut self,
        deposit: Deposit,
        now: Timestamp,
    ) -> Result<Step<Receipt>, SlotError> {
        let aggregate = deposit.unverified_aggregate().ok_or(SlotError::NotGranted)?;
        self.shard(&aggregate).ok_or(SlotError::Unknown)?.handle_deposit(deposit, now)
    }

    /// As [`Shard::conflict`].
    pub fn conflict(&mut self, deposit: &Deposit) -> Option<ConflictingEntry> {
        let aggregate = deposit.unverified_aggregate()?;
        self.shard(&aggregate)?.conflict(deposit)
    }

    /// As [`Shard::compare_grants`].
    pub fn compare_grants(&mut self, deposit: &Deposit) -> Step<()> {
        let shard = deposit.unverified_aggregate().and_then(|aggregate| self.shard(&aggregate));
        shard.map_or(Step::default(), |mut shard| shard.compare_grants(deposit))
    }
}

impl Shard<'_> {
    /// Whether the aggregate has ended here. No statement about it changes that.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.state.outcome().is_some()
    }

    /// The turn, if slots are granted or filled now.
    fn turn(&self, now: Timestamp) -> Result<Turn, SlotError> {
        let agreed = self.state.definition();
        if Some(agreed.key_epoch) <= self.smoother.sits_out {
            return Err(SlotError::SitsOut);
        }
        let turn = agreed.turn(now).ok_or(SlotError::NotNow)?;
        if self.state.outcome().is_some() { Err(SlotError::NotNow) } else { Ok(turn) }
    }

    /// Checks the presentations of many requests and deposits together, for about half the price of
    /// one by one. The verdicts are remembered until the messages are handled.
    pub fn verify_presentations<'b>(
        &mut self,
        requests: impl IntoIterator<Item = &'b SlotRequest>,
        deposits: impl IntoIterator<Item = &'b Deposit>,
        now: Timestamp,
    ) {
        self.state.verdicts.retain(|_, (_, verdict)| verdict.is_ok());
        if self.state.verdicts.len() > REMEMBERED {
            self.state.verdicts.clear();
        }
        if self.turn(now).is_err() {
            return;
        }
        let requests = requests.into_iter().map(|asked| (asked.ephemeral, &asked.presentation));
        let deposits = deposits.into_iter().filter_map(|deposit| {
            let grant = deposit.grant.dangerous_unverified()?;
            // A deposit of a signed slot is answered by its receipt.
            let open = self.state.slots.deposit(grant.slot).is_none();
            open.then_some((grant.ephemeral, &deposit.presentation))
        });
        let (mut names, mut logins) = (BTreeMap::new(), Vec::new());
        for (ephemeral, presentation) in requests.chain(deposits) {
            let name = presentation_digest(presentation);
            if self.state.verdicts.contains_key(&name) || names.contains_key(&name) {
                continue;
            }
            if let Ok(login) = self.state.login(&ephemeral, presentation) {
                names.insert(name, (ephemeral, logins.len()));
                logins.push(login);
            }
        }
        let verdicts = self.smoother.verifier.verify_joint(&self.state.subject, logins);
        let tag = |proven: &ProvenPresentation| proven.name(&self.state.subject);
        let tags: Vec<_> = verdicts.iter().map(|v| v.as_ref().map(tag).map_err(|e| *e)).collect();
        for (name, (ephemeral, at)) in names {
            let verdict = tags.get(at).copied().unwrap_or(Err(PresentationError::Proof));
            self.state.verdicts.insert(name, (ephemeral, verdict));
        }
    }

    /// Grants a slot, as its keeper. The same request gets the same slot at the same turn.
    ///
    /// # Errors
    /// [`SlotError`]: nothing has changed.
    ///
    /// # Privacy
    /// The smoother learns that somebody with a credential of the period wants to upload, and when.
    /// It does not learn who, or whether it is a sample.
    pub fn handle_request(
        &mut self,
        request: &SlotRequest,
        now: Timestamp,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Signed<Grant>>, SlotError> {
        let SlotRequest { aggregate, ephemeral, presentation } = request;
        self.turn(now)?;
        let turn = self.state.definition().granting(now).ok_or(SlotError::NotNow)?;
        let tag = self.admit(ephemeral, presentation)?;
        let slots = &self.state.slots;
        if let Some(known) = slots.grant_at(ephemeral, turn) {
            // Written again, in case the first commit is still on its way to the disk.
            let changes = vec![
                records::tag(aggregate, &tag, ephemeral),
                records::grant(aggregate, ephemeral, known),
            ];
            return Ok(Step::new(changes, known.clone()));
        }
        if slots.has_deposited(ephemeral) {
            return Err(SlotError::KeyTaken);
        }
        if slots.has_lapsed(ephemeral, turn) {
            return Err(SlotError::Lapsed);
        }
        let of = (self.state.definition(), self.smoother.pinned);
        let slot = slots.draw(of, self.smoother.id, turn, rng).ok_or(SlotError::Full)?;
        let revision = rng.next_u64();
        let grant = Grant { aggregate: *aggregate, slot, turn, revision, ephemeral: *ephemeral };
        let signed = Signed::new(&grant, self.smoother.key);
        let changes = vec![
            records::tag(aggregate, &tag, ephemeral),
            records::grant(aggregate, ephemeral, &signed),
        ];
        self.state.spent.insert(tag, *ephemeral);
        self.state.slots.record_grant(grant, signed.clone());
        Ok(Step::new(changes, signed))
    }

    /// Stores a deposit and signs its entry. The same deposit gets the same receipt, which is for
    /// the client and for all other smoothers.
    ///
    /// # Errors
    /// [`SlotError`]: nothing has changed.
    ///
    /// # Privacy
    /// As for [`Shard::handle_request`]. Only the aggregator can open the sealed upload.
    pub fn handle_deposit(
        &mut self,
        deposit: Deposit,
        now: Timestamp,
    ) -> Result<Step<Receipt>, SlotError> {
        let by = self.smoother.id;
        let keeper = self.smoother.pinned.key(deposit.keeper).ok_or(SlotError::NotGranted)?;
        let grant = deposit.grant.open(keeper).map_err(|_| SlotError::NotGranted)?;
        let key_epoch = self.state.definition().key_epoch;
        let entry = Entry::of(&grant, key_epoch, deposit.content, &deposit.sealed);
        if entry.aggregate != self.state.definition().name() {
            return Err(SlotError::Unknown);
        }
        let turn = self.turn(now)?;
        let held = self.state.slots.deposit(entry.slot).filter(|held| held.entry == entry);
        if let Some(held) = held {
            let receipt = Receipt { by, entry: held.receipt.clone() };
            return Ok(Step::new(vec![records::entry(held)], receipt));
        }
        let tag = self.may_receive(turn, &grant, &entry, &deposit)?;
        self.state.verdicts.remove(&presentation_digest(&deposit.presentation));
        let receipt = Signed::new(&entry, self.smoother.key);
        let Deposit { keeper, grant, sealed, .. } = deposit;
        let held = StoredDeposit { entry, keeper, grant, sealed, receipt: receipt.clone() };
        let Entry { aggregate, ephemeral, .. } = entry;
        let mut changes = vec![records::tag(&aggregate, &tag, &ephemeral), records::entry(&held)];
        self.state.spent.insert(tag, ephemeral);
        self.state.slots.record_deposit(held);
        let quorum = self.smoother.pinned.quorum();
        changes.extend(self.state.record_receipt(by, entry, receipt.clone(), quorum));
        Ok(Step::new(changes, Receipt { by, entry: receipt }))
    }

    /// The entry that conflicts with a deposit refused with [`SlotError::SlotTaken`] or
    /// [`SlotError::KeyTaken`].
    #[must_use]
    pub fn conflict(&self, deposit: &Deposit) -> Option<ConflictingEntry> {
        let grant = deposit.grant.dangerous_unverified()?;
        self.state.slots.conflict(self.smoother.id, grant.slot, &grant.ephemeral)
    }

    /// Records two grants of one slot at one turn, if a deposit refused with
    /// [`SlotError::SlotTaken`] and the stored one show them.
    pub fn compare_grants(&mut self, deposit: &Deposit) -> Step<()> {
        let nothing = || Step::default();
        let Some(key) = self.smoother.pinned.key(deposit.keeper) else { return nothing() };
        let Ok(grant) = deposit.grant.open(key) else { return nothing() };
        let held = self.state.slots.deposit(grant.slot);
        let held = held.filter(|held| held.keeper == deposit.keeper);
        let Some(known) = held.map(|held| held.grant.clone()) else { return nothing() };
        let twice = known.open(key).is_ok_and(|known| {
            known.aggregate == grant.aggregate
                && known.turn == grant.turn
                && known.ephemeral != grant.ephemeral
        });
        let evidence = Evidence::Grants(deposit.keeper, known, deposit.grant.clone());
        let change = if twice { self.state.record_evidence(evidence) } else { None };
        Step::new(change.into_iter().collect(), ())
    }

    fn may_receive(
        &self,
        turn: Turn,
        grant: &Verified<Grant>,
        entry: &Entry,
        deposit: &Deposit,
    ) -> Result<TagId, SlotError> {
        let agreed = self.state.definition();
        let kept = agreed.keeper(self.smoother.pinned, grant.slot, grant.turn) == deposit.keeper;
        if !kept || grant.slot >= agreed.slots || grant.turn > turn {
            return Err(SlotError::NotGranted);
        }
        let late = grant.turn < turn || self.is_convicted(deposit.keeper);
        if late && !self.vouched(entry, &deposit.receipts) {
            return Err(SlotError::NotGranted);
        }
        if deposit.sealed.as_bytes().len() != SealedUpload::length(agreed) {
            return Err(SlotError::Size);
        }
        let (label, bytes) = (labels::STATISTICS_DEPOSIT, entry.bytes());
        let signed = grant.ephemeral.verify(label, &bytes, &deposit.signature);
        signed.map_err(|_| SlotError::Signature)?;
        self.state.slots.may_sign(entry).map_err(|taken| match taken {
            DepositConflict::Slot => SlotError::SlotTaken,
            DepositConflict::Key => SlotError::KeyTaken,
        })?;
        self.admit(&grant.ephemeral, &deposit.presentation)
    }

    /// Whether there is proof in this aggregate, or in another before this work began.
    fn is_convicted(&self, keeper: SmootherId) -> bool {
        self.smoother.convicted.contains(&keeper) || self.state.accused().any(|by| by == keeper)
    }

    /// Whether t others, one of them honest, have signed an entry in its turn.
    fn vouched(&self, entry: &Entry, receipts: &[Receipt]) -> bool {
        let mut endorsed = Endorsed::default();
        let others = receipts.iter().filter(|receipt| receipt.by != self.smoother.id);
        others.for_each(|receipt| endorsed.add(receipt.by, receipt.entry.clone()));
        let pinned = self.smoother.pinned;
        let opened = endorsed.open(pinned, usize::from(pinned.threshold));
        opened.is_ok_and(|opened| *opened == *entry)
    }

    /// The tag of a valid presentation for this upload, unless it was used for another.
    fn admit(&self, ephemeral: &OneTimePublic, presentation: &[u8]) -> Result<TagId, SlotError> {
        let known = self.state.verdicts.get(&presentation_digest(presentation));
        let tag = match known {
            Some((of, verdict)) if of == ephemeral => (*verdict)?,
            _ => {
                let login = self.state.login(ephemeral, presentation)?;
                let verdict = self.smoother.verifier.verify_joint(&self.state.subject, vec![login]);
                let proven = verdict.into_iter().next().unwrap_or(Err(PresentationError::Proof))?;
                proven.name(&self.state.subject)
            }
        };
        let other = self.state.spent.get(&tag).is_some_and(|known| known != ephemeral);
        if other { Err(SlotError::Spent) } else { Ok(tag) }
    }
}

impl AggregateState {
    /// A presentation for an upload, not checked yet.
    fn login(
        &self,
        ephemeral: &OneTimePublic,
        presentation: &[u8],
    ) -> Result<JointPresentation, SlotError> {
        let joint =
            JointPresentation::from_bytes(presentation, self.subject.limit(), self.position);
        let joint = joint.map_err(PresentationError::from)?;
        let message = request_digest(&self.definition().name(), ephemeral);
        if joint.login.message == message { Ok(joint) } else { Err(SlotError::OtherPresentation) }
    }
}
