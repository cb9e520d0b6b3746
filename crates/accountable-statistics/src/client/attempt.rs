//! One upload: a slot is asked for, a tuple is deposited, receipts come in.

use super::{Abouts, Client, Records, UPLOADS, of_slots};
use crate::configuration::{Pinned, SmootherId};
use crate::definition::Agreed;
use crate::endorsed::Endorsed;
use crate::messages::{
    Deposit, Entry, Grant, InPlace, Receipt, SlotRequest, Upload, content_digest, decode, encode,
    request_digest, showing_digest, upload_digest,
};
use crate::refused::NotContributed;
use crate::tuple::{Binding, Contribution, Prover};
use alpheus_anonymous_credential::holder::show_together;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::ledger::{Change, Step};
use alpheus_crypto::seal::{Sealed, seal_bytes};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::{Signature, SigningKey, VerifyingKey};
use alpheus_crypto::signed::Signed;
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use zeroize::{Zeroize, Zeroizing};

/// One upload that is under way. Not `Clone`, not `Debug`.
pub struct Attempt {
    agreed: Agreed,
    seed: Secret<32>,
    /// What is given: kept until it counts, so that it can be given again.
    contribution: Contribution,
    /// Of the slot credentials, in the order of smoothers.
    showings: Vec<Vec<u8>>,
    /// In which order keepers are asked.
    order: Vec<SmootherId>,
    asked: usize,
    made: Option<Made>,
    receipts: BTreeMap<SmootherId, Signed<Entry>>,
    /// Who will never sign the deposit.
    refusals: BTreeSet<SmootherId>,
}

/// A deposit but for the showing, which is another for each smoother.
#[derive(Clone, Serialize, Deserialize)]
struct Made {
    keeper: SmootherId,
    grant: Signed<Grant>,
    entry: Entry,
    sealed: Sealed,
    signature: Signature,
}

/// An attempt as it is stored: seed, what is given (1 and a value, or 0), the rest.
#[derive(Serialize, Deserialize)]
struct Stored {
    aggregate: Digest,
    seed: [u8; 32],
    given: (bool, i64),
    showings: Vec<Vec<u8>>,
    order: Vec<SmootherId>,
    made: Option<Made>,
    receipts: Vec<Receipt>,
}

impl Drop for Stored {
    fn drop(&mut self) {
        self.seed.zeroize();
        self.given.1.zeroize();
        self.given.0.zeroize();
    }
}

const ATTEMPT: u8 = b'w';

impl Client {
    /// Begins an upload: burns a showing of each slot credential. A dummy is for the turns
    /// after the interval, when this client has given what it has.
    ///
    /// # Errors
    /// [`NotContributed`].
    ///
    /// # Privacy
    /// Smoothers learn that somebody wants a slot; nobody learns who, or what for. Use another
    /// connection for each upload and each party.
    pub fn begin(
        &mut self,
        now: Time,
        agreed: &Agreed,
        contribution: Contribution,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Attempt>, NotContributed> {
        let turn = agreed.turn(now).ok_or(NotContributed::NotNow)?;
        if matches!(contribution, Contribution::Dummy) && !agreed.fills(turn) {
            return Err(NotContributed::NotNow);
        }
        if self.left(agreed)? == 0 {
            return Err(alpheus_anonymous_credential::error::HolderRefused::Burnt.into());
        }
        let order = shuffled(self.pinned.ids().collect(), rng);
        let seed = Secret::random(rng);
        let message = request_digest(&agreed.name(), &ephemeral(&seed).verifying_key());
        let Abouts { slots, .. } = self.about(agreed)?;
        let shown = (0..).map(SmootherId).zip(show_together(slots, &message, rng)?);
        let steps: Vec<Step<Vec<u8>>> = shown.map(|(id, step)| step.under(&of_slots(id))).collect();
        let agreed = agreed.clone();
        Ok(Step::join(steps).then(|showings| {
            let attempt = Attempt {
                agreed,
                seed,
                contribution,
                showings,
                order,
                asked: 0,
                made: None,
                receipts: BTreeMap::new(),
                refusals: BTreeSet::new(),
            };
            Step::new(vec![attempt.change()], attempt)
        }))
    }
}

/// The key of one upload.
fn ephemeral(seed: &Secret<32>) -> SigningKey {
    SigningKey::from_seed(&derive(seed.expose(), labels::STATISTICS_EPHEMERAL, &[]))
}

/// Fisher and Yates: every order with the same chance, but for 2^-32.
fn shuffled(mut ids: Vec<SmootherId>, rng: &mut impl CryptoRng) -> Vec<SmootherId> {
    for last in (1..ids.len()).rev() {
        let drawn = rng.next_u64().checked_rem(last as u64 + 1).unwrap_or(0);
        ids.swap(last, usize::try_from(drawn).unwrap_or(0));
    }
    ids
}

impl Attempt {
    /// E.
    #[must_use]
    pub fn ephemeral(&self) -> VerifyingKey {
        ephemeral(&self.seed).verifying_key()
    }

    /// The aggregate.
    #[must_use]
    pub fn agreed(&self) -> &Agreed {
        &self.agreed
    }

    /// Whom to ask for a slot, and with what; as often as it takes.
    ///
    /// # Errors
    /// [`NotContributed::Full`] once all were asked; the next call begins anew, for a later turn.
    pub fn request(&mut self) -> Result<(SmootherId, SlotRequest), NotContributed> {
        let Some(keeper) = self.order.get(self.asked).copied() else {
            self.asked = 0;
            return Err(NotContributed::Full);
        };
        let showing = self.showings.get(usize::from(keeper.0)).ok_or(NotContributed::Damaged)?;
        let (aggregate, showing) = (self.agreed.name(), showing.clone());
        Ok((keeper, SlotRequest { aggregate, ephemeral: self.ephemeral(), showing }))
    }

    /// The keeper gives nothing: the next one is asked.
    pub fn refused(&mut self) {
        self.asked = self.asked.saturating_add(1);
    }

    /// Takes a grant: proves the tuple for it, shows the upload credential, seals both. Then
    /// there are [`Attempt::deposits`]. A second grant changes nothing.
    ///
    /// # Errors
    /// [`NotContributed`].
    pub fn granted(
        &mut self,
        client: &mut Client,
        prover: &Prover,
        (keeper, grant): (SmootherId, &Signed<Grant>),
        now: Time,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<()>, NotContributed> {
        let key = client.pinned.key(keeper).ok_or(NotContributed::Grant)?;
        let opened = grant.open(key).map_err(|_| NotContributed::Grant)?.into_inner();
        let kept = self.agreed.keeper(&client.pinned, opened.slot, opened.turn) == keeper;
        let mine = opened.aggregate == self.agreed.name() && opened.ephemeral == self.ephemeral();
        let runs = self.agreed.turn(now) == Some(opened.turn);
        if self.made.is_some() {
            return Ok(Step::new(Vec::new(), ()));
        }
        if !kept || !mine || !runs || opened.slot >= self.agreed.slots {
            return Err(NotContributed::Grant);
        }
        let pinned = client.pinned.clone();
        let about = &mut client.about(&self.agreed)?.uploads;
        let binding = Binding {
            tag: about.next_tag()?,
            aggregate: opened.aggregate,
            slot: opened.slot,
            revision: opened.revision,
            ephemeral: opened.ephemeral,
        };
        let tuple = prover.prove(self.contribution, &binding, rng)?.to_bytes();
        let shown = about.show(&upload_digest(&binding, &tuple), rng)?.under(UPLOADS);
        let mut sealing = None;
        let step = shown.then(|showing| {
            sealing = Some(self.seal(
                &pinned,
                (keeper, grant),
                (&opened, &binding),
                Upload { tuple, showing },
                rng,
            ));
            Step::new(Vec::new(), ())
        });
        let made = sealing.ok_or(NotContributed::Damaged)??;
        self.made = Some(made);
        Ok(step.then(|()| Step::new(vec![self.change()], ())))
    }

    fn seal(
        &self,
        pinned: &Pinned,
        (keeper, grant): (SmootherId, &Signed<Grant>),
        (opened, binding): (&Grant, &Binding),
        upload: Upload,
        rng: &mut impl CryptoRng,
    ) -> Result<Made, NotContributed> {
        let Binding { tag, aggregate, slot, revision, ephemeral: key } = *binding;
        let content = content_digest(&tag, &upload.tuple, &showing_digest(&upload.showing));
        let context = Entry::context(&aggregate, slot, revision, &key);
        let context = context.each_ref().map(Vec::as_slice);
        let (to, bytes) = (&pinned.sealing, encode(&upload));
        let sealed = seal_bytes(to, labels::STATISTICS_SEALED, &context, &bytes, rng)?;
        let entry = Entry::of(opened, self.agreed.key_epoch, content, &sealed);
        let signature = ephemeral(&self.seed).sign(labels::STATISTICS_DEPOSIT, &encode(&entry));
        Ok(Made { keeper, grant: grant.clone(), entry, sealed, signature })
    }

    /// A smoother shows what stands in the place of the deposit, so that it never signs this one.
    /// If a quorum has signed that, nobody does.
    ///
    /// # Errors
    /// [`NotContributed::Refusal`] if what it shows is not that: it may sign the deposit yet.
    pub fn refused_deposit(
        &mut self,
        pinned: &Pinned,
        by: SmootherId,
        shown: &InPlace,
    ) -> Result<(), NotContributed> {
        let made = self.made.as_ref().ok_or(NotContributed::Refusal)?.entry;
        let (other, all) = match shown {
            InPlace::Signed(receipt) => {
                let key = pinned.key(by).filter(|_| receipt.by == by);
                let opened = receipt.entry.open(key.ok_or(NotContributed::Refusal)?);
                (opened.map_err(|_| NotContributed::Refusal)?.into_inner(), false)
            }
            InPlace::Certified(certificate) => {
                let opened = certificate.open(pinned, pinned.quorum());
                (opened.map_err(|_| NotContributed::Refusal)?.into_inner(), true)
            }
        };
        let of_key = other.ephemeral == made.ephemeral;
        let in_place = other.slot == made.slot || of_key;
        if other.aggregate != made.aggregate || other == made || !in_place {
            return Err(NotContributed::Refusal);
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
    pub fn is_lost(&self, pinned: &Pinned) -> bool {
        pinned.smoothers.len().saturating_sub(self.refusals.len()) < pinned.quorum()
    }

    /// The slot cannot be had. The same is given by another key, which costs another showing of
    /// each credential.
    ///
    /// # Errors
    /// [`NotContributed::MayCount`] while the deposit may still be certified, by receipts that
    /// did not arrive here: it would count twice. All of [`Client::begin`]'s.
    pub fn again(
        self,
        client: &mut Client,
        now: Time,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Self>, NotContributed> {
        if self.made.is_some() && !self.is_lost(&client.pinned) {
            return Err(NotContributed::MayCount);
        }
        let next = client.begin(now, &self.agreed, self.contribution, rng)?;
        Ok(self.forget().then(|()| next))
    }

    /// What to send to each smoother whose receipt is not there yet; none before a grant.
    #[must_use]
    pub fn deposits(&self) -> Vec<(SmootherId, Deposit)> {
        let Some(made) = &self.made else { return Vec::new() };
        let all = (0..).map(SmootherId).zip(&self.showings);
        let open = all.filter(|(id, _)| !self.receipts.contains_key(id));
        let deposit = |(id, showing): (SmootherId, &Vec<u8>)| {
            let Made { keeper, grant, entry, sealed, signature } = made.clone();
            let (content, showing, receipts) = (entry.content, showing.clone(), self.receipts());
            (id, Deposit { keeper, grant, content, sealed, signature, showing, receipts })
        };
        open.map(deposit).collect()
    }

    /// Takes a receipt; says whether there are enough, so that the upload counts whatever
    /// fails now.
    ///
    /// # Errors
    /// [`NotContributed::Receipt`].
    pub fn receipt(
        &mut self,
        pinned: &Pinned,
        receipt: &Receipt,
    ) -> Result<Step<bool>, NotContributed> {
        let made = self.made.as_ref().ok_or(NotContributed::Receipt)?;
        let key = pinned.key(receipt.by).ok_or(NotContributed::Receipt)?;
        let entry = receipt.entry.open(key).map_err(|_| NotContributed::Receipt)?;
        if *entry != made.entry {
            return Err(NotContributed::Receipt);
        }
        self.receipts.insert(receipt.by, receipt.entry.clone());
        let enough = self.receipts.len() >= pinned.quorum();
        Ok(Step::new(vec![self.change()], enough))
    }

    /// What to send to all smoothers in the end, once a quorum has given receipts: with that, none
    /// of them can leave the upload out, and the client need not come back.
    #[must_use]
    pub fn certificate(&self, pinned: &Pinned) -> Option<Endorsed<Entry>> {
        let mut certificate = Endorsed::default();
        self.receipts.iter().for_each(|(by, entry)| certificate.add(*by, entry.clone()));
        (self.receipts.len() >= pinned.quorum()).then_some(certificate)
    }

    /// The entry of the deposit.
    #[must_use]
    pub fn entry(&self) -> Option<&Entry> {
        self.made.as_ref().map(|made| &made.entry)
    }

    /// The receipts: with a quorum, proof that the entry must be counted.
    #[must_use]
    pub fn receipts(&self) -> Vec<Receipt> {
        let receipt =
            |(by, entry): (&SmootherId, &Signed<Entry>)| Receipt { by: *by, entry: entry.clone() };
        self.receipts.iter().map(receipt).collect()
    }

    /// Forgets it: it is done, or given up.
    pub fn forget(self) -> Step<()> {
        Step::new(vec![Change { key: self.record(), value: None }], ())
    }

    fn record(&self) -> Vec<u8> {
        [[ATTEMPT].as_slice(), self.ephemeral().as_bytes()].concat()
    }

    fn change(&self) -> Change {
        let given = match self.contribution {
            Contribution::Sample(value) => (true, value),
            Contribution::Dummy => (false, 0),
        };
        let stored = Stored {
            aggregate: self.agreed.name(),
            seed: *self.seed.expose(),
            given,
            showings: self.showings.clone(),
            order: self.order.clone(),
            made: self.made.clone(),
            receipts: self.receipts(),
        };
        Change { key: self.record(), value: Some(Zeroizing::new(encode(&stored))) }
    }

    /// All that is under way for an aggregate, from the client's ledger.
    ///
    /// # Errors
    /// [`NotContributed::Damaged`].
    pub fn restore_all(agreed: &Agreed, records: &Records) -> Result<Vec<Self>, NotContributed> {
        let ours = records.iter().filter(|(key, _)| key.first() == Some(&ATTEMPT));
        let mut attempts = Vec::new();
        for (_, value) in ours {
            let stored: Stored = decode(value).ok_or(NotContributed::Damaged)?;
            if stored.aggregate == agreed.name() {
                attempts.push(Self::read(agreed, stored));
            }
        }
        Ok(attempts)
    }

    /// Forgets all that is under way for other aggregates than these, and what is damaged.
    pub(super) fn not_about(open: &[Agreed], records: &Records) -> Step<()> {
        let is_open = |value: &Vec<u8>| {
            let stored = decode::<Stored>(value);
            stored.is_some_and(|stored| open.iter().any(|a| a.name() == stored.aggregate))
        };
        let ours = records.iter().filter(|(key, _)| key.first() == Some(&ATTEMPT));
        let over = ours.filter(|(_, value)| !is_open(value));
        Step::new(over.map(|(key, _)| Change { key: key.clone(), value: None }).collect(), ())
    }

    fn read(agreed: &Agreed, mut stored: Stored) -> Self {
        let (real, value) = stored.given;
        let receipts = std::mem::take(&mut stored.receipts).into_iter();
        Self {
            agreed: agreed.clone(),
            seed: Secret::from_bytes(stored.seed),
            contribution: if real { Contribution::Sample(value) } else { Contribution::Dummy },
            showings: std::mem::take(&mut stored.showings),
            order: std::mem::take(&mut stored.order),
            asked: 0,
            made: stored.made.take(),
            receipts: receipts.map(|Receipt { by, entry }| (by, entry)).collect(),
            refusals: BTreeSet::new(),
        }
    }
}
