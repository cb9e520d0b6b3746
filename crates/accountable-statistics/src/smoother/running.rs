//! One aggregate at one smoother: slots and deposits, until the release.

use super::records::{self, Line};
use super::{Output, Smoother};
use crate::configuration::{Pinned, SmootherId};
use crate::definition::{Agreed, Turn};
use crate::messages::{
    Deposit, Entry, Grant, Listed, Opening, Outcome, Published, Ready, Reason, Receipt, Release,
    SlotRequest, Upload, deposit_bytes, request_digest,
};
use crate::refused::{NoSlot, NotReleased};
use crate::slots::{Held, Slots, Taken};
use crate::sums::{Part, Sums};
use crate::threshold::decrypting::VerifiedPartial;
use crate::tuple::Checker;
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
use std::collections::{BTreeMap, BTreeSet};

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
    /// Tuples that were checked: by tag, in which slots, and their sum.
    pub(super) tags: BTreeMap<[u8; 32], u32>,
    pub(super) counted: BTreeSet<u32>,
    pub(super) sums: Sums,
    /// The one set that it has agreed to.
    pub(super) ready: Option<Ready>,
    pub(super) readies: BTreeMap<SmootherId, Ready>,
    pub(super) partials: BTreeMap<Part, BTreeMap<SmootherId, VerifiedPartial>>,
    pub(super) made: BTreeMap<Part, Signed<Opening>>,
    outcome: Option<Outcome>,
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
            tags: BTreeMap::new(),
            counted: BTreeSet::new(),
            sums,
            ready: None,
            readies: BTreeMap::new(),
            partials: BTreeMap::new(),
            made: BTreeMap::new(),
            outcome: None,
        })
    }

    /// Puts a record back; none if it is damaged.
    pub(super) fn put_back(
        &mut self,
        line: Line,
        id: SmootherId,
        signer: &VerifyingKey,
        quorum: usize,
    ) -> Option<()> {
        match line {
            Line::Definition(_) => {}
            Line::Tag(tag, ephemeral) => drop(self.spent.insert(tag, ephemeral)),
            Line::Grant(signed) => {
                let grant = signed.open(signer).ok()?.into_inner();
                self.slots.give(grant, signed);
            }
            Line::Entry(sealed, receipt) => {
                let entry = receipt.open(signer).ok()?.into_inner();
                self.sign(Held { entry, sealed, receipt }, id, quorum);
            }
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

    fn sign(&mut self, held: Held, id: SmootherId, quorum: usize) {
        self.slots.hear(id, held.entry, held.receipt.clone(), quorum);
        self.slots.sign(held);
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

    pub(super) fn all_certified(&self) -> BTreeMap<u32, Entry> {
        self.slots.all_certified().map(|entry| (entry.slot, *entry)).collect()
    }

    /// Whether this smoother has signed an entry that it does not hold.
    pub(super) fn has_forgotten(&self, entry: &Entry) -> bool {
        let over = self.outcome.is_some();
        !over && self.slots.held(entry.slot).is_none_or(|held| held.entry != *entry)
    }

    pub(super) fn hear(
        &mut self,
        by: SmootherId,
        entry: Entry,
        signed: Signed<Entry>,
        quorum: usize,
    ) {
        self.slots.hear(by, entry, signed, quorum);
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
        let entries = entries.into_iter().map(|slot| records::no_entry(&name, slot));
        let grants = grants.into_iter().map(|key| records::no_grant(&name, &key));
        self.checker = None;
        self.tags.clear();
        tags.chain(entries).chain(grants).collect()
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
        let (running, turn) = self.at_turn(aggregate, now)?;
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
        let Grant { aggregate, slot, revision, ephemeral, .. } = *grant;
        let entry = Entry { aggregate, slot, revision, ephemeral, content: deposit.content };
        let (running, turn) = self.at_turn(&aggregate, now)?;
        if let Some(held) = running.slots.held(slot).filter(|held| held.entry == entry) {
            let change = records::entry(&entry, &held.sealed, &held.receipt);
            let receipt = Receipt { by: self.id, entry: held.receipt.clone() };
            return Ok(Step::new(vec![change], receipt));
        }
        let tag = self.may_receive(running, turn, &grant, &entry, &deposit)?;
        let receipt = Signed::new(&entry, &self.key);
        let changes = vec![
            records::tag(&aggregate, &tag, &ephemeral),
            records::entry(&entry, &deposit.sealed, &receipt),
        ];
        let (id, quorum) = (self.id, self.pinned.quorum());
        if let Some(running) = self.running.get_mut(&aggregate) {
            running.spent.insert(tag, ephemeral);
            let held = Held { entry, sealed: deposit.sealed, receipt: receipt.clone() };
            running.sign(held, id, quorum);
        }
        Ok(Step::new(changes, Receipt { by: id, entry: receipt }))
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
        if grant.turn != turn || !kept || grant.slot >= running.agreed.slots {
            return Err(NoSlot::NotGranted);
        }
        if deposit.sealed.length() != Upload::length(&running.agreed) + SEAL {
            return Err(NoSlot::Size);
        }
        running.slots.may_sign(entry).map_err(|taken| match taken {
            Taken::Slot => NoSlot::SlotTaken,
            Taken::Key => NoSlot::KeyTaken,
        })?;
        let bytes = deposit_bytes(entry, &deposit.sealed);
        let signed = grant.ephemeral.verify(labels::STATISTICS_DEPOSIT, &bytes, &deposit.signature);
        signed.map_err(|_| NoSlot::Signature)?;
        running.admit(self, &grant.ephemeral, &deposit.showing)
    }

    /// The ledger and all that is sealed, once the time has come and all slots are filled:
    /// the same for every caller and at every time after.
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
        let sealed = |entry: &Entry| -> Option<Sealed> {
            let held = running.slots.held(entry.slot).filter(|held| held.entry == *entry);
            held.map(|held| held.sealed.clone())
        };
        let listed = running.slots.all_certified();
        let listed = listed.map(|entry| Listed { entry: *entry, sealed: sealed(entry) });
        Ok(Release { aggregate: *aggregate, listed: listed.collect() })
    }
}
