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
        let aggregate = receipt.said_to_be_for().ok_or(NotHeard::Signature(by))?;
        let heard = match self.shard(&aggregate) {
            Some(mut shard) => shard.hear_receipt(receipt),
            None => {
                let key = self.pinned.key(by).ok_or(NotHeard::Signature(by))?;
                receipt.entry.open(key).map_err(|_| NotHeard::Signature(by))?;
                Err(if by == self.id { NotHeard::Forgotten } else { NotHeard::Unknown })
            }
        };
        match heard {
            Err(NotHeard::Forgotten) => Ok(self.sit_out_for(&aggregate, now)),
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
        let aggregate = said.aggregate;
        let heard = match self.shard(&aggregate) {
            Some(mut shard) => shard.hear_certificate(certificate),
            None => {
                let opened = certificate.open(&self.pinned, self.pinned.quorum());
                let entry = opened.map_err(|_| NotHeard::NotCertified)?.into_inner();
                let own = certificate.signatures().any(|(by, signed)| {
                    let key = self.key.verifying_key();
                    *by == self.id && signed.open(&key).is_ok_and(|own| *own == entry)
                });
                Err(if own { NotHeard::Forgotten } else { NotHeard::Unknown })
            }
        };
        match heard {
            Err(NotHeard::Forgotten) => Ok(self.sit_out_for(&aggregate, now)),
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
        if entry.slot >= self.running.agreed().slots {
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
        let by_us = certificate.signatures().any(|(by, _)| *by == self.common.id);
        let forgotten = by_us && self.running.has_forgotten(&said);
        if !forgotten && self.running.certified(said.slot) == Some(&said) {
            return Ok(Step::new(Vec::new(), ()));
        }
        let (pinned, running) = (self.common.pinned, &*self.running);
        let known =
            |by: SmootherId, signed: &Signed<Entry>| running.slots.knows(by, said.slot, signed);
        let opened = certificate.open_knowing(pinned, pinned.quorum(), known);
        let entry = opened.map_err(|_| NotHeard::NotCertified)?;
        if entry.aggregate != running.agreed().name() {
            return Err(NotHeard::Unknown);
        }
        if by_us && running.has_forgotten(&entry) && self.has_signed(certificate, &entry) {
            return Err(NotHeard::Forgotten);
        }
        if entry.slot >= running.agreed().slots || running.outcome().is_some() {
            return Err(NotHeard::OtherSet);
        }
        Ok(Step::new(self.running.certify(entry, certificate).into_iter().collect(), ()))
    }

    /// Whether one of a certificate's signatures is this smoother's own.
    fn has_signed(&self, certificate: &Endorsed<Entry>, entry: &Entry) -> bool {
        let key = self.common.key.verifying_key();
        certificate.signatures().any(|(by, signed)| {
            *by == self.common.id && signed.open(&key).is_ok_and(|own| *own == *entry)
        })
    }
}
