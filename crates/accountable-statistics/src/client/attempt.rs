//! One upload: it is made, a slot is requested, it is deposited, receipts arrive.

use super::{Client, Records, SubjectPresentations, UPLOADS, slots_prefix};
use crate::configuration::{PinnedConfiguration, SmootherId};
use crate::definition::AgreedDefinition;
use crate::endorsement::Endorsed;
use crate::messages::{
    ConflictingEntry, Deposit, Entry, ForwardedDeposit, Grant, Receipt, SealedUpload, SlotRequest,
    Upload, content_digest, decode, encode, presentation_digest, request_digest, upload_digest,
};
use crate::role_error::ContributionError;
use crate::tuple::{Binding, Contribution, Prover};
use alpheus_anonymous_credential::holder::{SubjectPresenter, present_together};
use alpheus_crypto::group::Element;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::ledger::{Change, Step};
use alpheus_crypto::onetime::{OneTimeKey, OneTimePublic, OneTimeSignature};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::Timestamp;
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use zeroize::{Zeroize, Zeroizing};

/// One upload under way. Not `Clone`, not `Debug`.
pub struct Attempt {
    definition: AgreedDefinition,
    seed: Secret<32>,
    /// E, from the seed.
    key: OneTimeKey,
    /// Stored until it counts, so that it can be contributed again.
    contribution: Contribution,
    /// Of the slot credentials, in the order of smoothers.
    presentations: Vec<Vec<u8>>,
    /// The order in which keepers are asked.
    order: Vec<SmootherId>,
    next_keeper: usize,
    upload: PreparedUpload,
    deposit: Option<PreparedDeposit>,
    receipts: BTreeMap<SmootherId, Signed<Entry>>,
    /// Smoothers that will never sign the deposit.
    refusals: BTreeSet<SmootherId>,
}

/// An upload as it is sealed. It is for any slot, so it is made before there is one.
#[derive(Clone, Serialize, Deserialize)]
struct PreparedUpload {
    content: Digest,
    sealed: SealedUpload,
}

/// A deposit without the upload, and without the presentation, which differs for each smoother.
#[derive(Clone, Serialize, Deserialize)]
struct PreparedDeposit {
    keeper: SmootherId,
    grant: Signed<Grant>,
    entry: Entry,
    signature: OneTimeSignature,
}

/// The stored form of an attempt. A contribution is (true, value) or (false, 0).
#[derive(Serialize, Deserialize)]
struct AttemptRecord {
    aggregate: Digest,
    seed: [u8; 32],
    contribution: (bool, i64),
    presentations: Vec<Vec<u8>>,
    order: Vec<SmootherId>,
    upload: PreparedUpload,
    deposit: Option<PreparedDeposit>,
    receipts: Vec<Receipt>,
}

impl Drop for AttemptRecord {
    fn drop(&mut self) {
        self.seed.zeroize();
        self.contribution.1.zeroize();
        self.contribution.0.zeroize();
    }
}

const ATTEMPT: u8 = b'w';

impl Client {
    /// Begins an upload: burns a presentation of each credential, proves the tuple and seals it. So
    /// nothing expensive is left to do once a slot is granted. Dummies are for the turns after the
    /// interval, when this client has contributed its samples.
    ///
    /// # Errors
    /// [`ContributionError`].
    ///
    /// # Privacy
    /// Smoothers learn that somebody wants a slot. Nobody learns who, or what for. Use another
    /// connection for each upload and each party.
    pub fn begin(
        &mut self,
        (agreed, prover): (&AgreedDefinition, &Prover),
        contribution: Contribution,
        now: Timestamp,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Attempt>, ContributionError> {
        let turn = agreed.turn(now).ok_or(ContributionError::NotNow)?;
        if matches!(contribution, Contribution::Dummy) && !agreed.fills(turn) {
            return Err(ContributionError::NotNow);
        }
        if self.left(agreed)? == 0 {
            return Err(alpheus_anonymous_credential::error::HolderError::Burnt.into());
        }
        let order = shuffled(self.pinned.ids().collect(), rng);
        let seed = Secret::random(rng);
        let key = one_time(&seed)?;
        let message = request_digest(&agreed.name(), &key.public());
        let sealing = self.pinned.sealing;
        let SubjectPresentations { uploads, slots } = self.about(agreed)?;
        let shown = (0..).map(SmootherId).zip(present_together(slots, &message, rng)?);
        let steps: Vec<Step<Vec<u8>>> =
            shown.map(|(id, step)| step.under(&slots_prefix(id))).collect();
        let (tag, aggregate, ephemeral) = (uploads.next_tag()?, agreed.name(), key.public());
        let binding = Binding { tag, aggregate, ephemeral };
        let tuple = prover.prove(contribution, &binding, rng)?.to_bytes();
        let (burnt, upload) = prepared(uploads, (&key, &sealing), &binding, tuple, rng)?;
        let definition = agreed.clone();
        Ok(Step::join(steps).then(|presentations| {
            burnt.then(|()| {
                let attempt = Attempt {
                    definition,
                    seed,
                    key,
                    contribution,
                    presentations,
                    order,
                    next_keeper: 0,
                    upload,
                    deposit: None,
                    receipts: BTreeMap::new(),
                    refusals: BTreeSet::new(),
                };
                Step::new(vec![attempt.change()], attempt)
            })
        }))
    }
}

/// The key of one upload.
fn one_time(seed: &Secret<32>) -> Result<OneTimeKey, ContributionError> {
    OneTimeKey::from_seed(labels::STATISTICS_EPHEMERAL, seed)
        .map_err(|_| ContributionError::Generator)
}

/// Presents the upload credential for a tuple and seals both.
fn prepared(
    uploads: &mut SubjectPresenter,
    keys: (&OneTimeKey, &Element),
    binding: &Binding,
    tuple: Vec<u8>,
    rng: &mut impl CryptoRng,
) -> Result<(Step<()>, PreparedUpload), ContributionError> {
    let shown = uploads.present_openly(&upload_digest(binding, &tuple), rng)?.under(UPLOADS);
    let mut sealed = None;
    let burnt = shown.map(|presentation| {
        sealed = Some(seal(keys, binding, &Upload { tuple, presentation }));
    });
    Ok((burnt, sealed.ok_or(ContributionError::Damaged)??))
}

/// Seals an upload for the aggregator, in a context that names its content: if the same key ever
/// sealed another upload, it would be in another context.
fn seal(
    (key, to): (&OneTimeKey, &Element),
    binding: &Binding,
    upload: &Upload,
) -> Result<PreparedUpload, ContributionError> {
    let shown = presentation_digest(&upload.presentation);
    let content = content_digest(&binding.tag, &upload.tuple, &shown);
    let context = Entry::context(&binding.aggregate, &content);
    let context = (labels::STATISTICS_UPLOAD_SEALING, context.as_slice());
    let sealed = key.seal(to, context, &encode(upload));
    let sealed = sealed.map_err(|_| ContributionError::Generator)?;
    Ok(PreparedUpload { content, sealed: SealedUpload::from_bytes(sealed) })
}

/// Fisher and Yates: every order has the same chance, up to 2^-32.
fn shuffled(mut ids: Vec<SmootherId>, rng: &mut impl CryptoRng) -> Vec<SmootherId> {
    for last in (1..ids.len()).rev() {
        let drawn = rng.next_u64().checked_rem(last as u64 + 1).unwrap_or(0);
        ids.swap(last, usize::try_from(drawn).unwrap_or(0));
    }
    ids
}

impl Attempt {
    /// E, the key of this upload.
    #[must_use]
    pub fn ephemeral(&self) -> OneTimePublic {
        self.key.public()
    }

    /// The aggregate's definition.
    #[must_use]
    pub fn definition(&self) -> &AgreedDefinition {
        &self.definition
    }

    /// The next keeper and the slot request for it, as often as needed.
    ///
    /// # Errors
    /// [`ContributionError::Full`] once all have been asked. The next call starts over, for a later
    /// turn.
    pub fn request(&mut self) -> Result<(SmootherId, SlotRequest), ContributionError> {
        let Some(keeper) = self.order.get(self.next_keeper).copied() else {
            self.next_keeper = 0;
            return Err(ContributionError::Full);
        };
        let presentation =
            self.presentations.get(usize::from(keeper.0)).ok_or(ContributionError::Damaged)?;
        let (aggregate, presentation) = (self.definition.name(), presentation.clone());
        Ok((keeper, SlotRequest { aggregate, ephemeral: self.ephemeral(), presentation }))
    }

    /// The keeper granted nothing: the next one is asked.
    pub fn handle_refusal(&mut self) {
        self.next_keeper = self.next_keeper.saturating_add(1);
    }

    /// Handles a grant: signs the entry of the upload in its slot. Then there are
    /// [`Attempt::deposits`]. A second grant changes nothing.
    ///
    /// # Errors
    /// [`ContributionError`].
    pub fn handle_grant(
        &mut self,
        (keeper, grant): (SmootherId, &Signed<Grant>),
        pinned: &PinnedConfiguration,
        now: Timestamp,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<()>, ContributionError> {
        let key = pinned.key(keeper).ok_or(ContributionError::Grant)?;
        let opened = grant.open(key).map_err(|_| ContributionError::Grant)?.into_inner();
        let kept = self.definition.keeper(pinned, opened.slot, opened.turn) == keeper;
        let mine =
            opened.aggregate == self.definition.name() && opened.ephemeral == self.ephemeral();
        let runs = self.definition.turn(now) == Some(opened.turn);
        if self.deposit.is_some() {
            return Ok(Step::default());
        }
        if !kept || !mine || !runs || opened.slot >= self.definition.slots {
            return Err(ContributionError::Grant);
        }
        let PreparedUpload { content, sealed } = &self.upload;
        let entry = Entry::of(&opened, self.definition.key_epoch, *content, sealed);
        let signature = self.key.sign(labels::STATISTICS_DEPOSIT, &entry.bytes(), rng);
        let signature = signature.map_err(|_| ContributionError::Generator)?;
        self.deposit = Some(PreparedDeposit { keeper, grant: grant.clone(), entry, signature });
        Ok(Step::new(vec![self.change()], ()))
    }

    /// Handles a smoother's refusal of the deposit: it shows a conflicting entry, so it never signs
    /// this one. If a quorum has signed that entry, nobody signs this one.
    ///
    /// # Errors
    /// [`ContributionError::Refusal`] if the entry does not conflict: the smoother may sign the
    /// deposit yet.
    pub fn handle_conflict(
        &mut self,
        shown: &ConflictingEntry,
        by: SmootherId,
        pinned: &PinnedConfiguration,
    ) -> Result<(), ContributionError> {
        let made = self.deposit.as_ref().ok_or(ContributionError::Refusal)?.entry;
        let (other, all) = match shown {
            ConflictingEntry::Signed(receipt) => {
                let key = pinned.key(by).filter(|_| receipt.by == by);
                let opened = receipt.entry.open(key.ok_or(ContributionError::Refusal)?);
                (opened.map_err(|_| ContributionError::Refusal)?.into_inner(), false)
            }
            ConflictingEntry::Certified(certificate) => {
                let opened = certificate.open(pinned, pinned.quorum());
                (opened.map_err(|_| ContributionError::Refusal)?.into_inner(), true)
            }
        };
        let of_key = other.ephemeral == made.ephemeral;
        let in_place = other.slot == made.slot || of_key;
        if other.aggregate != made.aggregate || other == made || !in_place {
            return Err(ContributionError::Refusal);
        }
        if all {
            self.refusals.extend(pinned.ids());
        } else {
            self.refusals.insert(by);
        }
        Ok(())
    }

    /// Whether too few smoothers are left that could sign the deposit.
    #[must_use]
    pub fn is_lost(&self, pinned: &PinnedConfiguration) -> bool {
        pinned.smoothers.len().saturating_sub(self.refusals.len()) < pinned.quorum()
    }

    /// Contributes the same by another key, because the slot is not available. That costs another
    /// presentation of each credential.
    ///
    /// # Errors
    /// [`ContributionError::MayCount`] while the deposit may still be certified by receipts that
    /// did not arrive here: it would count twice. All errors of [`Client::begin`].
    pub fn retry(
        self,
        client: &mut Client,
        prover: &Prover,
        now: Timestamp,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Self>, ContributionError> {
        if self.deposit.is_some() && !self.is_lost(&client.pinned) {
            return Err(ContributionError::MayCount);
        }
        let next = client.begin((&self.definition, prover), self.contribution, now, rng)?;
        Ok(self.forget().then(|()| next))
    }

    /// The deposit for each smoother whose receipt is still missing; none before a grant.
    #[must_use]
    pub fn deposits(&self) -> Vec<(SmootherId, Deposit)> {
        let Some(made) = &self.deposit else { return Vec::new() };
        let all = (0..).map(SmootherId).zip(&self.presentations);
        let open = all.filter(|(id, _)| !self.receipts.contains_key(id));
        let deposit = |(id, presentation): (SmootherId, &Vec<u8>)| {
            let PreparedDeposit { keeper, grant, signature, .. } = made.clone();
            let PreparedUpload { content, sealed } = self.upload.clone();
            let (presentation, receipts) = (presentation.clone(), self.receipts());
            (id, Deposit { keeper, grant, content, sealed, signature, presentation, receipts })
        };
        open.map(deposit).collect()
    }

    /// The same for the keeper, to be forwarded to all others; none before a grant, and none once
    /// receipts have arrived.
    ///
    /// # Privacy
    /// The keeper sees the other presentations, which it cannot use: it knows that they belong
    /// together, since all of them name E. The others do not see the client's address.
    #[must_use]
    pub fn forwarded(&self) -> Option<(SmootherId, ForwardedDeposit)> {
        let keeper = self.deposit.as_ref()?.keeper;
        if !self.receipts.is_empty() {
            return None;
        }
        let (mut own, mut others) = (None, BTreeMap::new());
        for (to, deposit) in self.deposits() {
            if to == keeper {
                own = Some(deposit);
            } else {
                others.insert(to, deposit.presentation);
            }
        }
        Some((keeper, ForwardedDeposit { own: own?, others }))
    }

    /// Handles a receipt. Returns whether there are enough, so that the upload counts whatever
    /// fails from now on.
    ///
    /// # Errors
    /// [`ContributionError::Receipt`].
    pub fn handle_receipt(
        &mut self,
        receipt: &Receipt,
        pinned: &PinnedConfiguration,
    ) -> Result<Step<bool>, ContributionError> {
        let made = self.deposit.as_ref().ok_or(ContributionError::Receipt)?;
        let key = pinned.key(receipt.by).ok_or(ContributionError::Receipt)?;
        let entry = receipt.entry.open(key).map_err(|_| ContributionError::Receipt)?;
        if *entry != made.entry {
            return Err(ContributionError::Receipt);
        }
        self.receipts.insert(receipt.by, receipt.entry.clone());
        let enough = self.receipts.len() >= pinned.quorum();
        Ok(Step::new(vec![self.change()], enough))
    }

    /// The certificate to send to all smoothers in the end, once a quorum has signed receipts. None
    /// of them can then leave the upload out, and the client need not come back.
    #[must_use]
    pub fn certificate(&self, pinned: &PinnedConfiguration) -> Option<Endorsed<Entry>> {
        let mut certificate = Endorsed::default();
        self.receipts.iter().for_each(|(by, entry)| certificate.add(*by, entry.clone()));
        (self.receipts.len() >= pinned.quorum()).then_some(certificate)
    }

    /// Whether the certificate need not be sent: q + f smoothers have signed, so q honest ones, who
    /// show each other their receipts.
    #[must_use]
    pub fn is_certified_everywhere(&self, pinned: &PinnedConfiguration) -> bool {
        self.receipts.len() >= pinned.quorum() + pinned.faulty()
    }

    /// The entry of the deposit.
    #[must_use]
    pub fn entry(&self) -> Option<&Entry> {
        self.deposit.as_ref().map(|made| &made.entry)
    }

    /// The receipts. A quorum of them proves that the entry must be counted.
    #[must_use]
    pub fn receipts(&self) -> Vec<Receipt> {
        let receipt =
            |(by, entry): (&SmootherId, &Signed<Entry>)| Receipt { by: *by, entry: entry.clone() };
        self.receipts.iter().map(receipt).collect()
    }

    /// Forgets the attempt: it is done, or given up.
    pub fn forget(self) -> Step<()> {
        Step::new(vec![Change::remove(self.record())], ())
    }

    fn record(&self) -> Vec<u8> {
        [[ATTEMPT].as_slice(), self.ephemeral().as_bytes()].concat()
    }

    fn change(&self) -> Change {
        let contribution = match self.contribution {
            Contribution::Sample(value) => (true, value),
            Contribution::Dummy => (false, 0),
        };
        let stored = AttemptRecord {
            aggregate: self.definition.name(),
            seed: *self.seed.expose(),
            contribution,
            presentations: self.presentations.clone(),
            order: self.order.clone(),
            upload: self.upload.clone(),
            deposit: self.deposit.clone(),
            receipts: self.receipts(),
        };
        Change { key: self.record(), value: Some(Zeroizing::new(encode(&stored))) }
    }

    /// All attempts for an aggregate in the client's ledger.
    ///
    /// # Errors
    /// [`ContributionError::Damaged`].
    pub fn restore_all(
        agreed: &AgreedDefinition,
        records: &Records,
    ) -> Result<Vec<Self>, ContributionError> {
        let ours = records.iter().filter(|(key, _)| key.first() == Some(&ATTEMPT));
        let mut attempts = Vec::new();
        for (_, value) in ours {
            let stored: AttemptRecord = decode(value).ok_or(ContributionError::Damaged)?;
            if stored.aggregate == agreed.name() {
                attempts.push(Self::read(agreed, stored)?);
            }
        }
        Ok(attempts)
    }

    /// Forgets all attempts for aggregates that are not `open`, and damaged ones.
    pub(super) fn forget_others(open: &[AgreedDefinition], records: &Records) -> Step<()> {
        let is_open = |value: &Vec<u8>| {
            let stored = decode::<AttemptRecord>(value);
            stored.is_some_and(|stored| open.iter().any(|a| a.name() == stored.aggregate))
        };
        let ours = records.iter().filter(|(key, _)| key.first() == Some(&ATTEMPT));
        let over = ours.filter(|(_, value)| !is_open(value));
        Step::new(over.map(|(key, _)| Change::remove(key.clone())).collect(), ())
    }

    fn read(
        agreed: &AgreedDefinition,
        mut stored: AttemptRecord,
    ) -> Result<Self, ContributionError> {
        let (real, value) = stored.contribution;
        let receipts = std::mem::take(&mut stored.receipts).into_iter();
        let seed = Secret::from_bytes(stored.seed);
        Ok(Self {
            definition: agreed.clone(),
            key: one_time(&seed)?,
            seed,
            contribution: if real { Contribution::Sample(value) } else { Contribution::Dummy },
            presentations: std::mem::take(&mut stored.presentations),
            order: std::mem::take(&mut stored.order),
            next_keeper: 0,
            upload: stored.upload.clone(),
            deposit: stored.deposit.take(),
            receipts: receipts.map(|Receipt { by, entry }| (by, entry)).collect(),
            refusals: BTreeSet::new(),
        })
    }
}
