//! The ledger of slots of one aggregate, as one smoother keeps it: which slots it gave
//! away, which entries it signed, and which are certified.
//!
//! One entry for a slot and one for a key, ever: two quorums share a smoother that keeps
//! to that, so a slot has one certified entry at most.

use crate::configuration::{Pinned, SmootherId};
use crate::definition::{Agreed, Turn};
use crate::endorsed::Endorsed;
use crate::messages::{Entry, Evidence, Grant, InPlace, Receipt};
use alpheus_crypto::seal::Sealed;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed::Signed;
use rand_core::CryptoRng;
use std::collections::BTreeMap;

/// What a smoother knows of the slots of an aggregate.
#[derive(Default)]
pub(crate) struct Slots {
    /// What it gave away as a keeper, last for each slot.
    given: BTreeMap<u32, Grant>,
    /// The same by key, as it was sent.
    grants: BTreeMap<VerifyingKey, (Turn, Signed<Grant>)>,
    /// What it has signed itself.
    signed: BTreeMap<u32, Held>,
    keys: BTreeMap<VerifyingKey, u32>,
    /// One receipt of each smoother for a slot.
    receipts: BTreeMap<u32, BTreeMap<SmootherId, (Entry, Signed<Entry>)>>,
    certified: BTreeMap<u32, (Entry, Endorsed<Entry>)>,
    /// Receipts of certified entries that were not checked, since they add nothing: until their
    /// smoother has signed another entry of the slot.
    unread: BTreeMap<(u32, SmootherId), Signed<Entry>>,
    /// What others keep of entries that this smoother has not signed.
    fetched: BTreeMap<u32, Sealed>,
}

/// So often a slot is guessed before all free ones are listed.
const GUESSES: usize = 64;

/// Draws a number below another, each with the same chance; none below zero.
fn below(count: u64, rng: &mut impl CryptoRng) -> Option<u64> {
    // The highest multiple of the count bounds what is drawn, so that none is favoured.
    let bound = u64::MAX.checked_div(count)?.saturating_mul(count);
    loop {
        let drawn = rng.next_u64();
        if drawn < bound {
            return drawn.checked_rem(count);
        }
    }
}

/// A deposit that this smoother keeps.
pub(crate) struct Held {
    pub(crate) entry: Entry,
    pub(crate) keeper: SmootherId,
    pub(crate) grant: Signed<Grant>,
    pub(crate) sealed: Sealed,
    pub(crate) receipt: Signed<Entry>,
}

/// Why a smoother does not sign an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Another entry of this slot is signed.
    Slot,
    /// Another entry of this key is signed.
    Key,
}

/// What a receipt comes to.
pub(crate) enum Noted {
    /// Nothing new, or not enough yet.
    Known,
    /// The entry is certified by it.
    Certified(Endorsed<Entry>),
    /// Its smoother has signed another entry of the slot before.
    Twice(Evidence),
}

impl Slots {
    /// The grant that a key has here, if it was given at this turn.
    pub(crate) fn grant_at(&self, ephemeral: &VerifyingKey, turn: Turn) -> Option<&Signed<Grant>> {
        self.grants.get(ephemeral).filter(|(at, _)| *at == turn).map(|(_, signed)| signed)
    }

    /// Whether a key was given a slot at an earlier turn, and has let it lapse.
    pub(crate) fn has_lapsed(&self, ephemeral: &VerifyingKey, turn: Turn) -> bool {
        self.grants.get(ephemeral).is_some_and(|(at, _)| *at < turn)
    }

    /// Whether a key has a receipt here.
    pub(crate) fn has_deposited(&self, ephemeral: &VerifyingKey) -> bool {
        self.keys.contains_key(ephemeral)
    }

    /// Draws a slot that this smoother keeps at a turn, has not given away at it, and knows no
    /// entry of: each with the same chance, so that slots say nothing.
    pub(crate) fn draw(
        &self,
        (agreed, pinned): (&Agreed, &Pinned),
        keeper: SmootherId,
        turn: Turn,
        rng: &mut impl CryptoRng,
    ) -> Option<u32> {
        let free = |slot: &u32| {
            let given = self.given.get(slot).is_some_and(|grant| grant.turn >= turn);
            let kept = agreed.keeper(pinned, *slot, turn) == keeper;
            let known = self.signed.contains_key(slot) || self.certified.contains_key(slot);
            kept && !given && !known && !self.is_under_way(*slot, pinned.threshold.into())
        };
        // While many are free, one is found soon, with the same chance as any other.
        for _ in 0..GUESSES {
            let guess = u32::try_from(below(agreed.slots.into(), rng)?).ok();
            if let Some(slot) = guess.filter(free) {
                return Some(slot);
            }
        }
        let free: Vec<u32> = (0..agreed.slots).filter(free).collect();
        free.get(usize::try_from(below(free.len() as u64, rng)?).ok()?).copied()
    }

    /// Whether so many smoothers, one of whom keeps to the protocol, have signed one entry of a
    /// slot: another one would not be certified, and whoever got the slot would lose an upload.
    fn is_under_way(&self, slot: u32, enough: usize) -> bool {
        let Some(of_slot) = self.receipts.get(&slot) else { return false };
        let alike = |entry: &Entry| of_slot.values().filter(|(other, _)| other == entry).count();
        of_slot.values().any(|(entry, _)| alike(entry) >= enough)
    }

    /// Notes a grant. A slot is given once at a turn, so two grants of one are a proof.
    pub(crate) fn give(&mut self, grant: Grant, signed: Signed<Grant>) {
        if self.given.get(&grant.slot).is_none_or(|known| known.turn < grant.turn) {
            self.given.insert(grant.slot, grant);
        }
        self.grants.insert(grant.ephemeral, (grant.turn, signed));
    }

    /// What it has signed of a slot.
    pub(crate) fn held(&self, slot: u32) -> Option<&Held> {
        self.signed.get(&slot)
    }

    /// Whether an entry may be signed.
    pub(crate) fn may_sign(&self, entry: &Entry) -> Result<(), Taken> {
        let other = |known: &Entry| known != entry;
        let held = self.signed.get(&entry.slot).is_some_and(|held| other(&held.entry));
        if held || self.certified(entry.slot).is_some_and(other) {
            return Err(Taken::Slot);
        }
        if self.keys.get(&entry.ephemeral).is_some_and(|slot| *slot != entry.slot) {
            return Err(Taken::Key);
        }
        Ok(())
    }

    /// What stands in the place of a deposit for a slot by a key: what a quorum or this smoother
    /// has signed.
    pub(crate) fn in_place(
        &self,
        by: SmootherId,
        slot: u32,
        ephemeral: &VerifyingKey,
    ) -> Option<InPlace> {
        if let Some((_, certificate)) = self.certified.get(&slot) {
            return Some(InPlace::Certified(certificate.clone()));
        }
        let of_key = || self.keys.get(ephemeral).and_then(|slot| self.signed.get(slot));
        let held = self.signed.get(&slot).or_else(of_key)?;
        Some(InPlace::Signed(Receipt { by, entry: held.receipt.clone() }))
    }

    /// Notes an entry that this smoother signs.
    pub(crate) fn sign(&mut self, held: Held) {
        self.keys.insert(held.entry.ephemeral, held.entry.slot);
        self.signed.insert(held.entry.slot, held);
    }

    /// Whether this receipt was checked here.
    pub(crate) fn knows(&self, by: SmootherId, slot: u32, receipt: &Signed<Entry>) -> bool {
        let known = self.receipts.get(&slot).and_then(|of_slot| of_slot.get(&by));
        known.is_some_and(|(_, known)| known == receipt)
    }

    /// Puts a receipt that says nothing new aside, unread: what it is for is certified, and its
    /// smoother is not known to have signed anything else. False if it must be read.
    pub(crate) fn put_aside(
        &mut self,
        by: SmootherId,
        entry: &Entry,
        receipt: &Signed<Entry>,
    ) -> bool {
        let heard = self.receipts.get(&entry.slot).is_some_and(|of_slot| of_slot.contains_key(&by));
        if heard || self.certified(entry.slot) != Some(entry) {
            return false;
        }
        self.unread.entry((entry.slot, by)).or_insert_with(|| receipt.clone()) == receipt
    }

    /// What was put aside of a smoother, for a slot of which it has signed another entry.
    pub(crate) fn take_unread(&mut self, by: SmootherId, slot: u32) -> Option<Signed<Entry>> {
        self.unread.remove(&(slot, by))
    }

    /// Notes a receipt.
    pub(crate) fn hear(
        &mut self,
        by: SmootherId,
        entry: Entry,
        signed: Signed<Entry>,
        quorum: usize,
    ) -> Noted {
        let of_slot = self.receipts.entry(entry.slot).or_default();
        let (known, first) = of_slot.entry(by).or_insert((entry, signed.clone()));
        if *known != entry {
            return Noted::Twice(Evidence::Entries(by, first.clone(), signed));
        }
        let alike = || of_slot.iter().filter(|(_, (known, _))| *known == entry);
        if self.certified.contains_key(&entry.slot) || alike().count() < quorum {
            return Noted::Known;
        }
        let mut certificate = Endorsed::default();
        alike().for_each(|(by, (_, signed))| certificate.add(*by, signed.clone()));
        self.certify(entry, certificate.clone());
        Noted::Certified(certificate)
    }

    /// Notes that a quorum has signed an entry.
    pub(crate) fn certify(&mut self, entry: Entry, certificate: Endorsed<Entry>) {
        self.certified.entry(entry.slot).or_insert((entry, certificate));
    }

    /// The certified entry of a slot.
    pub(crate) fn certified(&self, slot: u32) -> Option<&Entry> {
        self.certified.get(&slot).map(|(entry, _)| entry)
    }

    /// All certified entries from a slot on, by slot.
    pub(crate) fn all_certified(&self, from: u32) -> impl Iterator<Item = &Entry> {
        self.certified.range(from..).map(|(_, (entry, _))| entry)
    }

    /// Their certificates, from a slot on.
    pub(crate) fn certificates(&self, from: u32) -> impl Iterator<Item = &Endorsed<Entry>> {
        self.certified.range(from..).map(|(_, (_, certificate))| certificate)
    }

    /// How many slots are filled.
    pub(crate) fn filled(&self) -> usize {
        self.certified.len()
    }

    /// What is sealed for a certified entry.
    pub(crate) fn sealed(&self, entry: &Entry) -> Option<&Sealed> {
        let own = self.signed.get(&entry.slot).filter(|held| held.entry == *entry);
        own.map(|held| &held.sealed).or_else(|| self.fetched.get(&entry.slot))
    }

    /// Keeps what is sealed for a certified entry.
    pub(crate) fn fetch(&mut self, slot: u32, sealed: Sealed) {
        self.fetched.insert(slot, sealed);
    }

    /// Receipts of what is not certified, for a smoother that lacks some.
    pub(crate) fn receipts(&self) -> Vec<Receipt> {
        let open = self.receipts.iter().filter(|(slot, _)| !self.certified.contains_key(slot));
        let receipt = |(by, (_, entry)): (&SmootherId, &(Entry, Signed<Entry>))| Receipt {
            by: *by,
            entry: entry.clone(),
        };
        open.flat_map(|(_, of_slot)| of_slot.iter().map(receipt)).collect()
    }

    /// Slots with an entry and keys with a grant: what is stored of them.
    pub(crate) fn names(&self) -> (Vec<u32>, Vec<VerifyingKey>) {
        let signed = self.signed.keys().chain(self.certified.keys()).chain(self.fetched.keys());
        (signed.copied().collect(), self.grants.keys().copied().collect())
    }
}
