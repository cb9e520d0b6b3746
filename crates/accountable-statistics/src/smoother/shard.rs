//! One aggregate at a smoother, apart from all others: slots, deposits, receipts and tuples of
//! different aggregates have nothing in common that changes, so that each may be worked on by a
//! thread of its own, without a lock. What comes of it is committed together.

use super::records;
use super::running::Running;
use super::{Key, Smoother};
use crate::configuration::{KeyEpoch, Pinned, SmootherId};
use crate::definition::Turn;
use crate::endorsed::Endorsed;
use crate::logarithm::Table;
use crate::messages::{
    Deposit, Entry, Evidence, Grant, InPlace, Receipt, SlotRequest, Upload, encode, request_digest,
    showing_digest,
};
use crate::refused::NoSlot;
use crate::slots::{Held, Taken};
use alpheus_anonymous_credential::error::Refused as BadShowing;
use alpheus_anonymous_credential::messages::{Joint, TagId};
use alpheus_anonymous_credential::schedule::Time;
use alpheus_anonymous_credential::subjects::ProvenAbout;
use alpheus_anonymous_credential::verifier::Verifier;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::ledger::Step;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_crypto::signed::{Signed, Verified};
use rand_core::CryptoRng;
use std::collections::{BTreeMap, BTreeSet};

/// What is sealed is so much longer than what it holds.
const SEAL: usize = 48;
/// So many showings that hold are remembered of an aggregate, from a request to its deposit.
const REMEMBERED: usize = 4096;

/// What shards share: none of it changes while they are at work.
#[derive(Clone, Copy)]
pub(super) struct Common<'a> {
    pub(super) pinned: &'a Pinned,
    pub(super) id: SmootherId,
    pub(super) key: &'a SigningKey,
    pub(super) verifier: &'a Verifier,
    pub(super) keys: &'a BTreeMap<KeyEpoch, Key>,
    pub(super) table: &'a Table,
    pub(super) sits_out: Option<KeyEpoch>,
    pub(super) convicted: &'a BTreeSet<SmootherId>,
}

/// One aggregate, as [`Smoother::shards`] gives it.
pub struct Shard<'a> {
    pub(super) common: Common<'a>,
    pub(super) running: &'a mut Running,
}

/// What showings were found to be, by [`showing_digest`], and for whose upload they are.
pub(super) type Proven = BTreeMap<Digest, (VerifyingKey, Result<TagId, BadShowing>)>;

impl Smoother {
    /// All aggregates, each apart from the others.
    pub fn shards(&mut self) -> impl Iterator<Item = (Digest, Shard<'_>)> {
        self.convict();
        let (common, running) = self.apart();
        running.iter_mut().map(move |(name, running)| (*name, Shard { common, running }))
    }

    /// One of them.
    pub fn shard(&mut self, aggregate: &Digest) -> Option<Shard<'_>> {
        self.convict();
        let (common, running) = self.apart();
        running.get_mut(aggregate).map(|running| Shard { common, running })
    }

    fn apart(&mut self) -> (Common<'_>, &mut BTreeMap<Digest, Running>) {
        let Self { pinned, id, key, verifier, keys, table, sits_out, convicted, running, .. } =
            self;
        let (id, sits_out) = (*id, *sits_out);
        (Common { pinned, id, key, verifier, keys, table, sits_out, convicted }, running)
    }

    /// Notes of whom it is proven that they give slots twice or sign two entries of one, in any
    /// aggregate that is not forgotten: the first proof against each is kept, of either kind. What
    /// they give counts no more, or each slot that they give would be lost.
    fn convict(&mut self) {
        self.convicted = self.running.values().flat_map(|running| running.accused()).collect();
    }

    /// As [`Shard::request`].
    ///
    /// # Errors
    /// [`NoSlot`]: nothing has changed.
    pub fn request(
        &mut self,
        now: Time,
        request: &SlotRequest,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Signed<Grant>>, NoSlot> {
        self.shard(&request.aggregate).ok_or(NoSlot::Unknown)?.request(now, request, rng)
    }

    /// As [`Shard::deposit`].
    ///
    /// # Errors
    /// [`NoSlot`]: nothing has changed.
    pub fn deposit(&mut self, now: Time, deposit: Deposit) -> Result<Step<Receipt>, NoSlot> {
        let aggregate = deposit.said_to_be_for().ok_or(NoSlot::NotGranted)?;
        self.shard(&aggregate).ok_or(NoSlot::Unknown)?.deposit(now, deposit)
    }

    /// As [`Shard::in_place`].
    pub fn in_place(&mut self, deposit: &Deposit) -> Option<InPlace> {
        let aggregate = deposit.said_to_be_for()?;
        self.shard(&aggregate)?.in_place(deposit)
    }

    /// As [`Shard::compare_grants`].
    pub fn compare_grants(&mut self, deposit: &Deposit) -> Step<()> {
        let shard = deposit.said_to_be_for().and_then(|aggregate| self.shard(&aggregate));
        shard.map_or(Step::new(Vec::new(), ()), |mut shard| shard.compare_grants(deposit))
    }
}

impl Shard<'_> {
    /// Whether the aggregate has ended here: nothing that is said of it changes that.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.running.outcome().is_some()
    }

    /// The turn, if slots are given or filled now.
    fn turn(&self, now: Time) -> Result<Turn, NoSlot> {
        let agreed = self.running.agreed();
        if Some(agreed.key_epoch) <= self.common.sits_out {
            return Err(NoSlot::SitsOut);
        }
        let turn = agreed.turn(now).ok_or(NoSlot::NotNow)?;
        if self.running.outcome().is_some() { Err(NoSlot::NotNow) } else { Ok(turn) }
    }

    /// Checks the showings of many requests and deposits together, for about half the price of
    /// one after the other. What it finds is remembered until they are answered.
    pub fn prove<'b>(
        &mut self,
        now: Time,
        requests: impl IntoIterator<Item = &'b SlotRequest>,
        deposits: impl IntoIterator<Item = &'b Deposit>,
    ) {
        self.running.proven.retain(|_, (_, verdict)| verdict.is_ok());
        if self.running.proven.len() > REMEMBERED {
            self.running.proven.clear();
        }
        if self.turn(now).is_err() {
            return;
        }
        let requests = requests.into_iter().map(|asked| (asked.ephemeral, &asked.showing));
        let deposits = deposits.into_iter().filter_map(|deposit| {
            let grant = deposit.grant.dangerous_unverified()?;
            // Of a slot that is signed for, the same deposit is answered by its receipt.
            let open = self.running.slots.held(grant.slot).is_none();
            open.then_some((grant.ephemeral, &deposit.showing))
        });
        let (mut names, mut logins) = (BTreeMap::new(), Vec::new());
        for (ephemeral, showing) in requests.chain(deposits) {
            let name = showing_digest(showing);
            if self.running.proven.contains_key(&name) || names.contains_key(&name) {
                continue;
            }
            if let Ok(login) = self.running.login(&ephemeral, showing) {
                names.insert(name, (ephemeral, logins.len()));
                logins.push(login);
            }
        }
        let verdicts = self.common.verifier.verify_joint(&self.running.subject, logins);
        let tag = |proven: &ProvenAbout| proven.name(&self.running.subject);
        let tags: Vec<_> = verdicts.iter().map(|v| v.as_ref().map(tag).map_err(|e| *e)).collect();
        for (name, (ephemeral, at)) in names {
            let verdict = tags.get(at).copied().unwrap_or(Err(BadShowing::Proof));
            self.running.proven.insert(name, (ephemeral, verdict));
        }
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
        self.turn(now)?;
        let turn = self.running.agreed().granting(now).ok_or(NoSlot::NotNow)?;
        let tag = self.admit(ephemeral, showing)?;
        let slots = &self.running.slots;
        if let Some(known) = slots.grant_at(ephemeral, turn) {
            // Written again, in case the first commit is still on its way to the disk.
            let changes = vec![
                records::tag(aggregate, &tag, ephemeral),
                records::grant(aggregate, ephemeral, known),
            ];
            return Ok(Step::new(changes, known.clone()));
        }
        if slots.has_deposited(ephemeral) {
            return Err(NoSlot::KeyTaken);
        }
        if slots.has_lapsed(ephemeral, turn) {
            return Err(NoSlot::Lapsed);
        }
        let of = (self.running.agreed(), self.common.pinned);
        let slot = slots.draw(of, self.common.id, turn, rng).ok_or(NoSlot::Full)?;
        let revision = rng.next_u64();
        let grant = Grant { aggregate: *aggregate, slot, turn, revision, ephemeral: *ephemeral };
        let signed = Signed::new(&grant, self.common.key);
        let changes = vec![
            records::tag(aggregate, &tag, ephemeral),
            records::grant(aggregate, ephemeral, &signed),
        ];
        self.running.spent.insert(tag, *ephemeral);
        self.running.slots.give(grant, signed.clone());
        Ok(Step::new(changes, signed))
    }

    /// Keeps a deposit and signs its entry. The same deposit gets the same receipt; it is for
    /// the client and for all other smoothers.
    ///
    /// # Errors
    /// [`NoSlot`]: nothing has changed.
    ///
    /// # Privacy
    /// As of [`Shard::request`]. What is sealed opens for the aggregator alone.
    pub fn deposit(&mut self, now: Time, deposit: Deposit) -> Result<Step<Receipt>, NoSlot> {
        let by = self.common.id;
        let keeper = self.common.pinned.key(deposit.keeper).ok_or(NoSlot::NotGranted)?;
        let grant = deposit.grant.open(keeper).map_err(|_| NoSlot::NotGranted)?;
        let key_epoch = self.running.agreed().key_epoch;
        let entry = Entry::of(&grant, key_epoch, deposit.content, &deposit.sealed);
        if entry.aggregate != self.running.agreed().name() {
            return Err(NoSlot::Unknown);
        }
        let turn = self.turn(now)?;
        let held = self.running.slots.held(entry.slot).filter(|held| held.entry == entry);
        if let Some(held) = held {
            let receipt = Receipt { by, entry: held.receipt.clone() };
            return Ok(Step::new(vec![records::entry(held)], receipt));
        }
        let tag = self.may_receive(turn, &grant, &entry, &deposit)?;
        self.running.proven.remove(&showing_digest(&deposit.showing));
        let receipt = Signed::new(&entry, self.common.key);
        let Deposit { keeper, grant, sealed, .. } = deposit;
        let held = Held { entry, keeper, grant, sealed, receipt: receipt.clone() };
        let Entry { aggregate, ephemeral, .. } = entry;
        let mut changes = vec![records::tag(&aggregate, &tag, &ephemeral), records::entry(&held)];
        self.running.spent.insert(tag, ephemeral);
        self.running.slots.sign(held);
        let quorum = self.common.pinned.quorum();
        changes.extend(self.running.hear(by, entry, receipt.clone(), quorum));
        Ok(Step::new(changes, Receipt { by, entry: receipt }))
    }

    /// What stands in the place of a deposit that was refused with [`NoSlot::SlotTaken`] or
    /// [`NoSlot::KeyTaken`].
    #[must_use]
    pub fn in_place(&self, deposit: &Deposit) -> Option<InPlace> {
        let grant = deposit.grant.dangerous_unverified()?;
        self.running.slots.in_place(self.common.id, grant.slot, &grant.ephemeral)
    }

    /// Notes two grants of one slot at one turn, if a deposit that was refused and what is held
    /// show them: for a deposit that [`Shard::deposit`] has refused with
    /// [`NoSlot::SlotTaken`].
    pub fn compare_grants(&mut self, deposit: &Deposit) -> Step<()> {
        let nothing = || Step::new(Vec::new(), ());
        let Some(key) = self.common.pinned.key(deposit.keeper) else { return nothing() };
        let Ok(grant) = deposit.grant.open(key) else { return nothing() };
        let held = self.running.slots.held(grant.slot);
        let held = held.filter(|held| held.keeper == deposit.keeper);
        let Some(known) = held.map(|held| held.grant.clone()) else { return nothing() };
        let twice = known.open(key).is_ok_and(|known| {
            known.aggregate == grant.aggregate
                && known.turn == grant.turn
                && known.ephemeral != grant.ephemeral
        });
        let evidence = Evidence::Grants(deposit.keeper, known, deposit.grant.clone());
        let change = if twice { self.running.note(evidence) } else { None };
        Step::new(change.into_iter().collect(), ())
    }

    fn may_receive(
        &self,
        turn: Turn,
        grant: &Verified<Grant>,
        entry: &Entry,
        deposit: &Deposit,
    ) -> Result<TagId, NoSlot> {
        let agreed = self.running.agreed();
        let kept = agreed.keeper(self.common.pinned, grant.slot, grant.turn) == deposit.keeper;
        if !kept || grant.slot >= agreed.slots || grant.turn > turn {
            return Err(NoSlot::NotGranted);
        }
        let late = grant.turn < turn || self.is_convicted(deposit.keeper);
        if late && !self.vouched(entry, &deposit.receipts) {
            return Err(NoSlot::NotGranted);
        }
        if deposit.sealed.length() != Upload::length(agreed) + SEAL {
            return Err(NoSlot::Size);
        }
        let bytes = encode(entry);
        let signed = grant.ephemeral.verify(labels::STATISTICS_DEPOSIT, &bytes, &deposit.signature);
        signed.map_err(|_| NoSlot::Signature)?;
        self.running.slots.may_sign(entry).map_err(|taken| match taken {
            Taken::Slot => NoSlot::SlotTaken,
            Taken::Key => NoSlot::KeyTaken,
        })?;
        self.admit(&grant.ephemeral, &deposit.showing)
    }

    /// In this aggregate, or in another before this work began.
    fn is_convicted(&self, keeper: SmootherId) -> bool {
        self.common.convicted.contains(&keeper) || self.running.accused().any(|by| by == keeper)
    }

    /// Whether others have signed an entry in its turn, one of whom keeps to the protocol.
    fn vouched(&self, entry: &Entry, receipts: &[Receipt]) -> bool {
        let mut endorsed = Endorsed::default();
        let others = receipts.iter().filter(|receipt| receipt.by != self.common.id);
        others.for_each(|receipt| endorsed.add(receipt.by, receipt.entry.clone()));
        let pinned = self.common.pinned;
        let opened = endorsed.open(pinned, usize::from(pinned.threshold));
        opened.is_ok_and(|opened| *opened == *entry)
    }

    /// The tag of a showing that entitles this upload, unless it was for another.
    fn admit(&self, ephemeral: &VerifyingKey, showing: &[u8]) -> Result<TagId, NoSlot> {
        let known = self.running.proven.get(&showing_digest(showing));
        let tag = match known {
            Some((of, verdict)) if of == ephemeral => (*verdict)?,
            _ => {
                let login = self.running.login(ephemeral, showing)?;
                let verdict = self.common.verifier.verify_joint(&self.running.subject, vec![login]);
                let proven = verdict.into_iter().next().unwrap_or(Err(BadShowing::Proof))?;
                proven.name(&self.running.subject)
            }
        };
        let other = self.running.spent.get(&tag).is_some_and(|known| known != ephemeral);
        if other { Err(NoSlot::Spent) } else { Ok(tag) }
    }
}

impl Running {
    /// A showing for an upload, not checked yet.
    fn login(&self, ephemeral: &VerifyingKey, showing: &[u8]) -> Result<Joint, NoSlot> {
        let joint = Joint::from_bytes(showing, self.subject.limit(), self.place);
        let joint = joint.map_err(BadShowing::from)?;
        let message = request_digest(&self.agreed().name(), ephemeral);
        if joint.login.message == message { Ok(joint) } else { Err(NoSlot::OtherShowing) }
    }
}
