//! What other smoothers and clients say of deposits: receipts, and certificates of them.
//!
//! A signature is checked once. What a certified slot's receipts say more is put aside unread,
//! until it matters who has signed what.

use super::Smoother;
use super::shard::Shard;
use crate::configuration::SmootherId;
use crate::endorsed::Endorsed;
use crate::messages::{Entry, Receipt};
use crate::refused::NotHeard;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::ledger::{Change, Step};
use alpheus_crypto::signed::Signed;

impl Smoother {
    /// Notes another smoother's receipt.
    ///
    /// # Errors
    /// [`NotHeard`]. One of its own that it does not remember makes it sit out: its ledger is an
    /// old copy, or somebody else has its key.
    pub fn hear_receipt(&mut self, receipt: &Receipt, now: Time) -> Result<Step<()>, NotHeard> {
        let by = receipt.by;
        let said = receipt.entry.dangerous_unverified().ok_or(NotHeard::Signature(by))?;
        let over = said.key_epoch < self.first;
        let heard = match self.shard(&said.aggregate) {
            Some(mut shard) => shard.hear_receipt(receipt),
            None if over => Err(NotHeard::Over),
            None => {
                let key = self.pinned.key(by).ok_or(NotHeard::Signature(by))?;
                receipt.entry.open(key).map_err(|_| NotHeard::Signature(by))?;
                Err(self.not_here(said.key_epoch, by == self.id))
            }
        };
        match heard {
            Err(NotHeard::Forgotten) => Ok(self.sit_out_for(said.key_epoch, now)),
            heard => heard,
        }
    }

    /// Notes that a quorum has signed an entry: from the client, or from another smoother.
    ///
    /// # Errors
    /// [`NotHeard`]. A signature of its own that it does not remember makes it sit out.
    pub fn hear_certificate(
        &mut self,
        now: Time,
        certificate: &Endorsed<Entry>,
    ) -> Result<Step<()>, NotHeard> {
        let said = certificate.dangerous_unverified().ok_or(NotHeard::NotCertified)?;
        if let Some(mut shard) = self.shard(&said.aggregate) {
            match shard.hear_certificate(certificate) {
                Err(NotHeard::Forgotten) => {}
                heard => return heard,
            }
        }
        // Whoever is named first may have signed something else, or nothing.
        let sifted = certificate.sift(&self.pinned, self.pinned.quorum(), |_, _| false);
        let (entry, certificate) = sifted.map_err(|_| NotHeard::NotCertified)?;
        let heard = match self.shard(&entry.aggregate) {
            Some(mut shard) => shard.hear_certificate(&certificate),
            None => Err(self.not_here(entry.key_epoch, certificate.has(self.id))),
        };
        match heard {
            Err(NotHeard::Forgotten) => Ok(self.sit_out_for(entry.key_epoch, now)),
            heard => heard,
        }
    }
}

impl Shard<'_> {
    /// Notes another smoother's receipt.
    ///
    /// # Errors
    /// [`NotHeard`]; [`NotHeard::Forgotten`] is for [`Smoother::hear_receipt`].
    pub fn hear_receipt(&mut self, receipt: &Receipt) -> Result<Step<()>, NotHeard> {
        let (by, nothing) = (receipt.by, || Step::new(Vec::new(), ()));
        let key = self.common.pinned.key(by).ok_or(NotHeard::Signature(by))?;
        let said = receipt.entry.dangerous_unverified().ok_or(NotHeard::Signature(by))?;
        let own = by == self.common.id;
        let slots = &mut self.running.slots;
        if slots.knows(by, said.slot, &receipt.entry)
            || (!own && slots.put_aside(by, &said, &receipt.entry))
        {
            return Ok(nothing());
        }
        let entry = receipt.entry.open(key).map_err(|_| NotHeard::Signature(by))?.into_inner();
        if entry.aggregate != self.running.agreed().name() {
            return Err(NotHeard::Unknown);
        }
        if own && self.running.has_forgotten(&entry) {
            return Err(NotHeard::Forgotten);
        }
        if !self.running.lists(&entry) {
            return Err(NotHeard::OtherSet);
        }
        Ok(Step::new(self.heard(by, entry, &receipt.entry), ()))
    }

    /// Notes a receipt that holds, and before it what was put aside of the same smoother and slot.
    fn heard(&mut self, by: SmootherId, entry: Entry, receipt: &Signed<Entry>) -> Vec<Change> {
        let quorum = self.common.pinned.quorum();
        let unread = self.running.slots.take_unread(by, entry.slot);
        let before = unread.filter(|unread| unread != receipt).and_then(|unread| {
            let opened = unread.open(self.common.pinned.key(by)?).ok()?.into_inner();
            self.running.hear(by, opened, unread, quorum)
        });
        before.into_iter().chain(self.running.hear(by, entry, receipt.clone(), quorum)).collect()
    }

    /// Notes that a quorum has signed an entry.
    ///
    /// # Errors
    /// [`NotHeard`]; [`NotHeard::Forgotten`] is for [`Smoother::hear_certificate`].
    pub fn hear_certificate(
        &mut self,
        certificate: &Endorsed<Entry>,
    ) -> Result<Step<()>, NotHeard> {
        let said = certificate.dangerous_unverified().ok_or(NotHeard::NotCertified)?;
        let forgotten = certificate.has(self.common.id) && self.running.has_forgotten(&said);
        if !forgotten && self.running.certified(said.slot) == Some(&said) {
            return Ok(Step::new(Vec::new(), ()));
        }
        let (pinned, running) = (self.common.pinned, &*self.running);
        let known =
            |by: SmootherId, signed: &Signed<Entry>| running.slots.knows(by, said.slot, signed);
        let sifted = certificate.sift(pinned, pinned.quorum(), known);
        let (entry, certificate) = sifted.map_err(|_| NotHeard::NotCertified)?;
        if entry.aggregate != running.agreed().name() {
            return Err(NotHeard::Unknown);
        }
        if certificate.has(self.common.id) && running.has_forgotten(&entry) {
            return Err(NotHeard::Forgotten);
        }
        if !running.lists(&entry) || running.outcome().is_some() {
            return Err(NotHeard::OtherSet);
        }
        Ok(Step::new(self.running.certify(entry, certificate).into_iter().collect(), ()))
    }
}
