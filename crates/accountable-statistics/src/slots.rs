//! The ledger of slots of one aggregate, as one smoother keeps it: which slots it gave
//! away, which entries it signed, and which are certified.
//!
//! One entry for a slot and one for a key, ever: two quorums share a smoother that keeps
//! to that, so a slot has one certified entry at most.

use crate::configuration::{Pinned, SmootherId};
use crate::definition::{Agreed, Turn};
use crate::messages::{Entry, Grant, Receipt};
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
    /// Whose receipts there are.
    receipts: BTreeMap<u32, BTreeMap<Entry, BTreeMap<SmootherId, Signed<Entry>>>>,
    certified: BTreeMap<u32, Entry>,
}

/// A deposit that this smoother keeps.
pub(crate) struct Held {
    pub(crate) entry: Entry,
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

impl Slots {
    /// The grant that a key has here, if it was given at this turn.
    pub(crate) fn grant_at(&self, ephemeral: &VerifyingKey, turn: Turn) -> Option<&Signed<Grant>> {
        self.grants.get(ephemeral).filter(|(at, _)| *at == turn).map(|(_, signed)| signed)
    }

    /// Whether a key has a receipt here.
    pub(crate) fn has_deposited(&self, ephemeral: &VerifyingKey) -> bool {
        self.keys.contains_key(ephemeral)
    }

    /// Draws a slot that this smoother keeps at a turn, is not given away at it, and has no
    /// entry of this smoother's: each with the same chance, so that slots say nothing.
    pub(crate) fn draw(
        &self,
        (agreed, pinned): (&Agreed, &Pinned),
        keeper: SmootherId,
        turn: Turn,
        rng: &mut impl CryptoRng,
    ) -> Option<u32> {
        let free = |slot: &u32| {
            let given = self.given.get(slot).is_some_and(|grant| grant.turn >= turn);
            let moved = given && self.has_moved(*slot);
            let kept = agreed.keeper(pinned, *slot, turn) == keeper;
            let known = self.signed.contains_key(slot) || self.certified.contains_key(slot);
            kept && (!given || moved) && !known
        };
        let free: Vec<u32> = (0..agreed.slots).filter(free).collect();
        let count = free.len() as u64;
        // The highest multiple of the count bounds what is drawn, so that none is favoured.
        let bound = (u64::MAX / count.max(1)).saturating_mul(count);
        loop {
            let drawn = rng.next_u64();
            if free.is_empty() {
                return None;
            }
            if drawn < bound {
                let at = usize::try_from(drawn.checked_rem(count)?).ok()?;
                return free.get(at).copied();
            }
        }
    }

    /// Whether whom a slot was given to has deposited in another one.
    fn has_moved(&self, slot: u32) -> bool {
        let whose = self.given.get(&slot).map(|grant| grant.ephemeral);
        whose.and_then(|key| self.keys.get(&key)).is_some_and(|elsewhere| *elsewhere != slot)
    }

    /// Notes a grant.
    pub(crate) fn give(&mut self, grant: Grant, signed: Signed<Grant>) {
        if self.given.get(&grant.slot).is_none_or(|known| known.turn <= grant.turn) {
            self.given.insert(grant.slot, grant);
        }
        self.grants.insert(grant.ephemeral, (grant.turn, signed));
    }

    /// The receipt of this very entry, if it is signed.
    pub(crate) fn held(&self, slot: u32) -> Option<&Held> {
        self.signed.get(&slot)
    }

    /// Whether an entry may be signed.
    pub(crate) fn may_sign(&self, entry: &Entry) -> Result<(), Taken> {
        if self.signed.get(&entry.slot).is_some_and(|held| held.entry != *entry) {
            return Err(Taken::Slot);
        }
        if self.keys.get(&entry.ephemeral).is_some_and(|slot| *slot != entry.slot) {
            return Err(Taken::Key);
        }
        Ok(())
    }

    /// Notes an entry that this smoother signs.
    pub(crate) fn sign(&mut self, held: Held) {
        self.keys.insert(held.entry.ephemeral, held.entry.slot);
        self.signed.insert(held.entry.slot, held);
    }

    /// Notes a receipt; says whether it was new.
    pub(crate) fn hear(
        &mut self,
        by: SmootherId,
        entry: Entry,
        signed: Signed<Entry>,
        quorum: usize,
    ) -> bool {
        let alike = self.receipts.entry(entry.slot).or_default().entry(entry).or_default();
        let new = alike.insert(by, signed).is_none();
        if alike.len() >= quorum {
            self.certified.insert(entry.slot, entry);
        }
        new
    }

    /// The certified entry of a slot.
    pub(crate) fn certified(&self, slot: u32) -> Option<&Entry> {
        self.certified.get(&slot)
    }

    /// All certified entries, by slot.
    pub(crate) fn all_certified(&self) -> impl Iterator<Item = &Entry> {
        self.certified.values()
    }

    /// How many slots are filled.
    pub(crate) fn filled(&self) -> usize {
        self.certified.len()
    }

    /// All receipts that it knows, for a smoother that lacks some.
    pub(crate) fn receipts(&self) -> Vec<Receipt> {
        let entries = self.receipts.values().flat_map(BTreeMap::values);
        let receipt =
            |(by, entry): (&SmootherId, &Signed<Entry>)| Receipt { by: *by, entry: entry.clone() };
        entries.flat_map(|alike| alike.iter().map(receipt)).collect()
    }

    /// Slots with an entry, and keys with a grant: what is stored of them.
    pub(crate) fn names(&self) -> (Vec<u32>, Vec<VerifyingKey>) {
        (self.signed.keys().copied().collect(), self.grants.keys().copied().collect())
    }
}
