//! The ledger of slots of one aggregate, as one smoother keeps it: which slots it granted, which
//! entries it signed, and which are certified.
//!
//! It signs one entry per slot and one per key, ever. Two quorums share an honest smoother, so a
//! slot has at most one certified entry.

use crate::configuration::{PinnedConfiguration, SmootherId};
use crate::definition::{AgreedDefinition, Turn};
use crate::endorsement::Endorsed;
use crate::messages::{ConflictingEntry, Entry, Evidence, Grant, Receipt, SealedUpload};
use alpheus_crypto::onetime::OneTimePublic;
use alpheus_crypto::signed_message::Signed;
use rand_core::CryptoRng;
use std::collections::BTreeMap;

/// What a smoother knows about the slots of an aggregate.
#[derive(Default)]
pub(crate) struct Slots {
    /// Its own last grant of each slot.
    grants_by_slot: BTreeMap<u32, Grant>,
    /// Its own last grant to each key, as it was sent.
    grants_by_key: BTreeMap<OneTimePublic, (Turn, Signed<Grant>)>,
    /// The deposits that it has signed.
    deposits: BTreeMap<u32, StoredDeposit>,
    slot_by_key: BTreeMap<OneTimePublic, u32>,
    /// One receipt of each smoother for a slot.
    receipts: BTreeMap<u32, BTreeMap<SmootherId, (Entry, Signed<Entry>)>>,
    certificates: BTreeMap<u32, (Entry, Endorsed<Entry>)>,
    /// Unchecked receipts of certified entries, which add nothing. Read once their smoother has
    /// signed another entry of the slot.
    unread: BTreeMap<(u32, SmootherId), Signed<Entry>>,
    /// SealedUpload uploads fetched from others, for entries that this smoother has not signed.
    fetched_uploads: BTreeMap<u32, SealedUpload>,
}

/// How many random slots are tried before all free ones are listed.
const GUESSES: usize = 64;

/// Draws a number below `count` uniformly; none if `count` is zero.
fn below(count: u64, rng: &mut impl CryptoRng) -> Option<u64> {
    // Drawing below the highest multiple of the count favours no number.
    let bound = u64::MAX.checked_div(count)?.saturating_mul(count);
    loop {
        let drawn = rng.next_u64();
        if drawn < bound {
            return drawn.checked_rem(count);
        }
    }
}

/// A deposit that this smoother stores.
pub(crate) struct StoredDeposit {
    pub(crate) entry: Entry,
    pub(crate) keeper: SmootherId,
    pub(crate) grant: Signed<Grant>,
    pub(crate) sealed: SealedUpload,
    pub(crate) receipt: Signed<Entry>,
}

/// Why a smoother does not sign an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DepositConflict {
    /// It has signed another entry of this slot.
    Slot,
    /// It has signed another entry of this key.
    Key,
}

/// The effect of a receipt.
pub(crate) enum ReceiptEffect {
    /// Nothing new, or not enough receipts yet.
    Known,
    /// The receipt certifies the entry.
    Certified(Endorsed<Entry>),
    /// Its smoother has signed another entry of the slot before.
    Twice(Evidence),
}

impl Slots {
    /// The grant that a key has here, if it is of this turn.
    pub(crate) fn grant_at(&self, ephemeral: &OneTimePublic, turn: Turn) -> Option<&Signed<Grant>> {
        self.grants_by_key.get(ephemeral).filter(|(at, _)| *at == turn).map(|(_, signed)| signed)
    }

    /// Whether a key was granted a slot at another turn and let it lapse. After a clock has stepped
    /// back, that may be a later one.
    pub(crate) fn has_lapsed(&self, ephemeral: &OneTimePublic, turn: Turn) -> bool {
        self.grants_by_key.get(ephemeral).is_some_and(|(at, _)| *at != turn)
    }

    /// Whether a key has a receipt here.
    pub(crate) fn has_deposited(&self, ephemeral: &OneTimePublic) -> bool {
        self.slot_by_key.contains_key(ephemeral)
    }

    /// Draws a slot that this smoother keeps at a turn, has not granted at it and knows no entry
    /// of. The draw is uniform, so that slots reveal nothing.
    pub(crate) fn draw(
        &self,
        (agreed, pinned): (&AgreedDefinition, &PinnedConfiguration),
        keeper: SmootherId,
        turn: Turn,
        rng: &mut impl CryptoRng,
    ) -> Option<u32> {
        let free = |slot: &u32| {
            let given = self.grants_by_slot.get(slot).is_some_and(|grant| grant.turn >= turn);
            let kept = agreed.keeper(pinned, *slot, turn) == keeper;
            let known = self.deposits.contains_key(slot) || self.certificates.contains_key(slot);
            kept && !given && !known && !self.is_under_way(*slot, pinned.threshold.into())
        };
        // While many are free, one is found soon, and all have the same chance.
        for _ in 0..GUESSES {
            let guess = u32::try_from(below(agreed.slots.into(), rng)?).ok();
            if let Some(slot) = guess.filter(free) {
                return Some(slot);
            }
        }
        let free: Vec<u32> = (0..agreed.slots).filter(free).collect();
        free.get(usize::try_from(below(free.len() as u64, rng)?).ok()?).copied()
    }

    /// Whether so many smoothers, one of them honest, have signed one entry of a slot. Another
    /// entry would not be certified, so a client that got the slot would lose its upload.
    fn is_under_way(&self, slot: u32, enough: usize) -> bool {
        let Some(by_smoother) = self.receipts.get(&slot) else { return false };
        let alike =
            |entry: &Entry| by_smoother.values().filter(|(other, _)| other == entry).count();
        by_smoother.values().any(|(entry, _)| alike(entry) >= enough)
    }

    /// Records a grant.
    pub(crate) fn record_grant(&mut self, grant: Grant, signed: Signed<Grant>) {
        if self.grants_by_slot.get(&grant.slot).is_none_or(|known| known.turn < grant.turn) {
            self.grants_by_slot.insert(grant.slot, grant);
        }
        self.grants_by_key.insert(grant.ephemeral, (grant.turn, signed));
    }

    /// The deposit of a slot that it has signed.
    pub(crate) fn deposit(&self, slot: u32) -> Option<&StoredDeposit> {
        self.deposits.get(&slot)
    }

    /// Whether it may sign an entry.
    pub(crate) fn may_sign(&self, entry: &Entry) -> Result<(), DepositConflict> {
        let other = |known: &Entry| known != entry;
        let held = self.deposits.get(&entry.slot).is_some_and(|held| other(&held.entry));
        if held || self.certified(entry.slot).is_some_and(other) {
            return Err(DepositConflict::Slot);
        }
        if self.slot_by_key.get(&entry.ephemeral).is_some_and(|slot| *slot != entry.slot) {
            return Err(DepositConflict::Key);
        }
        Ok(())
    }

    /// The entry that conflicts with a deposit for a slot by a key: one that a quorum or this
    /// smoother has signed.
    pub(crate) fn conflict(
        &self,
        by: SmootherId,
        slot: u32,
        ephemeral: &OneTimePublic,
    ) -> Option<ConflictingEntry> {
        if let Some((_, certificate)) = self.certificates.get(&slot) {
            return Some(ConflictingEntry::Certified(certificate.clone()));
        }
        let of_key = || self.slot_by_key.get(ephemeral).and_then(|slot| self.deposits.get(slot));
        let held = self.deposits.get(&slot).or_else(of_key)?;
        Some(ConflictingEntry::Signed(Receipt { by, entry: held.receipt.clone() }))
    }

    /// Records a deposit that this smoother signs.
    pub(crate) fn record_deposit(&mut self, held: StoredDeposit) {
        self.slot_by_key.insert(held.entry.ephemeral, held.entry.slot);
        self.deposits.insert(held.entry.slot, held);
    }

    /// Whether this receipt was checked here.
    pub(crate) fn has_receipt(&self, by: SmootherId, slot: u32, receipt: &Signed<Entry>) -> bool {
        let known = self.receipts.get(&slot).and_then(|by_smoother| by_smoother.get(&by));
        known.is_some_and(|(_, known)| known == receipt)
    }

    /// Stores a receipt unread if it adds nothing: its entry is certified, and its smoother is not
    /// known to have signed another one. False if the receipt must be read.
    pub(crate) fn set_aside(
        &mut self,
        by: SmootherId,
        entry: &Entry,
        receipt: &Signed<Entry>,
    ) -> bool {
        let heard =
            self.receipts.get(&entry.slot).is_some_and(|by_smoother| by_smoother.contains_key(&by));
        if heard || self.certified(entry.slot) != Some(entry) {
            return false;
        }
        self.unread.entry((entry.slot, by)).or_insert_with(|| receipt.clone()) == receipt
    }

    /// The unread receipt of a smoother for a slot, now that it has signed another entry of it.
    pub(crate) fn take_unread(&mut self, by: SmootherId, slot: u32) -> Option<Signed<Entry>> {
        self.unread.remove(&(slot, by))
    }

    /// Records a receipt.
    pub(crate) fn record_receipt(
        &mut self,
        by: SmootherId,
        entry: Entry,
        signed: Signed<Entry>,
        quorum: usize,
    ) -> ReceiptEffect {
        let by_smoother = self.receipts.entry(entry.slot).or_default();
        let (known, first) = by_smoother.entry(by).or_insert((entry, signed.clone()));
        if *known != entry {
            return ReceiptEffect::Twice(Evidence::Entries(by, first.clone(), signed));
        }
        let alike = || by_smoother.iter().filter(|(_, (known, _))| *known == entry);
        if self.certificates.contains_key(&entry.slot) || alike().count() < quorum {
            return ReceiptEffect::Known;
        }
        let mut certificate = Endorsed::default();
        alike().for_each(|(by, (_, signed))| certificate.add(*by, signed.clone()));
        self.record_certificate(entry, certificate.clone());
        ReceiptEffect::Certified(certificate)
    }

    /// Records that a quorum has signed an entry.
    pub(crate) fn record_certificate(&mut self, entry: Entry, certificate: Endorsed<Entry>) {
        self.certificates.entry(entry.slot).or_insert((entry, certificate));
    }

    /// The certified entry of a slot.
    pub(crate) fn certified(&self, slot: u32) -> Option<&Entry> {
        self.certificates.get(&slot).map(|(entry, _)| entry)
    }

    /// All certified entries from a slot on, in order.
    pub(crate) fn all_certified(&self, from: u32) -> impl Iterator<Item = &Entry> {
        self.certificates.range(from..).map(|(_, (entry, _))| entry)
    }

    /// All certificates from a slot on, in order.
    pub(crate) fn certificates(&self, from: u32) -> impl Iterator<Item = &Endorsed<Entry>> {
        self.certificates.range(from..).map(|(_, (_, certificate))| certificate)
    }

    /// How many slots are certified.
    pub(crate) fn certified_count(&self) -> usize {
        self.certificates.len()
    }

    /// The sealed upload of a certified entry.
    pub(crate) fn sealed(&self, entry: &Entry) -> Option<&SealedUpload> {
        let own = self.deposits.get(&entry.slot).filter(|held| held.entry == *entry);
        own.map(|held| &held.sealed).or_else(|| self.fetched_uploads.get(&entry.slot))
    }

    /// Stores the sealed upload of a certified entry.
    pub(crate) fn record_upload(&mut self, slot: u32, sealed: SealedUpload) {
        self.fetched_uploads.insert(slot, sealed);
    }

    /// Receipts of uncertified entries, for a smoother that lacks some.
    pub(crate) fn receipts(&self) -> Vec<Receipt> {
        let open = self.receipts.iter().filter(|(slot, _)| !self.certificates.contains_key(slot));
        let receipt = |(by, (_, entry)): (&SmootherId, &(Entry, Signed<Entry>))| Receipt {
            by: *by,
            entry: entry.clone(),
        };
        open.flat_map(|(_, by_smoother)| by_smoother.iter().map(receipt)).collect()
    }

    /// Slots with an entry and keys with a grant: the names of their stored records.
    pub(crate) fn names(&self) -> (Vec<u32>, Vec<OneTimePublic>) {
        let signed =
            self.deposits.keys().chain(self.certificates.keys()).chain(self.fetched_uploads.keys());
        (signed.copied().collect(), self.grants_by_key.keys().copied().collect())
    }
}
