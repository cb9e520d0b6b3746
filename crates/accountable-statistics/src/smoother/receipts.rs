//! What other smoothers and clients report about deposits: receipts, and certificates of them.
//!
//! A signature is checked once. Further receipts of a certified slot are stored unread, until it
//! matters who has signed what.

use super::Smoother;
use super::shard::Shard;
use crate::configuration::SmootherId;
use crate::endorsement::Endorsed;
use crate::messages::{Entry, Receipt};
use crate::role_error::StatementError;
use alpheus_crypto::ledger::{Change, Step};
use alpheus_crypto::signed_message::Signed;
use alpheus_time::Timestamp;

impl Smoother {
    /// Records another smoother's receipt.
    ///
    /// # Errors
    /// [`StatementError`]. A receipt of its own that it has no record of makes it sit out: its
    /// ledger is an old copy, or somebody else has its key.
    pub fn handle_receipt(
        &mut self,
        receipt: &Receipt,
        now: Timestamp,
    ) -> Result<Step<()>, StatementError> {
        let by = receipt.by;
        let said = receipt.entry.dangerous_unverified().ok_or(StatementError::Signature(by))?;
        let over = said.key_epoch < self.first_epoch;
        let heard = match self.shard(&said.aggregate) {
            Some(mut shard) => shard.handle_receipt(receipt),
            None if over => Err(StatementError::Over),
            None => {
                let key = self.pinned.key(by).ok_or(StatementError::Signature(by))?;
                receipt.entry.open(key).map_err(|_| StatementError::Signature(by))?;
                Err(self.not_here(said.key_epoch, by == self.id))
            }
        };
        match heard {
            Err(StatementError::Forgotten) => Ok(self.sit_out_for(said.key_epoch, now)),
            heard => heard,
        }
    }

    /// Records that a quorum has signed an entry, as a client or another smoother reports.
    ///
    /// # Errors
    /// [`StatementError`]. Its own signature that it has no record of makes it sit out.
    pub fn handle_certificate(
        &mut self,
        certificate: &Endorsed<Entry>,
        now: Timestamp,
    ) -> Result<Step<()>, StatementError> {
        let said = certificate.dangerous_unverified().ok_or(StatementError::NotCertified)?;
        if let Some(mut shard) = self.shard(&said.aggregate) {
            match shard.handle_certificate(certificate) {
                Err(StatementError::Forgotten) => {}
                heard => return heard,
            }
        }
        // The first one listed may have signed something else, or nothing.
        let sifted = certificate.sift(&self.pinned, self.pinned.quorum(), |_, _| false);
        let (entry, certificate) = sifted.map_err(|_| StatementError::NotCertified)?;
        let heard = match self.shard(&entry.aggregate) {
            Some(mut shard) => shard.handle_certificate(&certificate),
            None => Err(self.not_here(entry.key_epoch, certificate.has(self.id))),
        };
        match heard {
            Err(StatementError::Forgotten) => Ok(self.sit_out_for(entry.key_epoch, now)),
            heard => heard,
        }
    }
}

impl Shard<'_> {
    /// Records another smoother's receipt.
    ///
    /// # Errors
    /// [`StatementError`]; [`StatementError::Forgotten`] is for [`Smoother::handle_receipt`].
    pub fn handle_receipt(&mut self, receipt: &Receipt) -> Result<Step<()>, StatementError> {
        let (by, nothing) = (receipt.by, || Step::default());
        let key = self.smoother.pinned.key(by).ok_or(StatementError::Signature(by))?;
        let said = receipt.entry.dangerous_unverified().ok_or(StatementError::Signature(by))?;
        let own = by == self.smoother.id;
        let slots = &mut self.state.slots;
        if slots.has_receipt(by, said.slot, &receipt.entry)
            || (!own && slots.set_aside(by, &said, &receipt.entry))
        {
            return Ok(nothing());
        }
        let entry =
            receipt.entry.open(key).map_err(|_| StatementError::Signature(by))?.into_inner();
        if entry.aggregate != self.state.definition().name() {
            return Err(StatementError::Unknown);
        }
        if own && self.state.has_forgotten(&entry) {
            return Err(StatementError::Forgotten);
        }
        if !self.state.owns(&entry) {
            return Err(StatementError::OtherSet);
        }
        Ok(Step::new(self.heard(by, entry, &receipt.entry), ()))
    }

    /// Records a valid receipt, after the unread one of the same smoother and slot.
    fn heard(&mut self, by: SmootherId, entry: Entry, receipt: &Signed<Entry>) -> Vec<Change> {
        let quorum = self.smoother.pinned.quorum();
        let unread = self.state.slots.take_unread(by, entry.slot);
        let before = unread.filter(|unread| unread != receipt).and_then(|unread| {
            let opened = unread.open(self.smoother.pinned.key(by)?).ok()?.into_inner();
            self.state.record_receipt(by, opened, unread, quorum)
        });
        before
            .into_iter()
            .chain(self.state.record_receipt(by, entry, receipt.clone(), quorum))
            .collect()
    }

    /// Records that a quorum has signed an entry.
    ///
    /// # Errors
    /// [`StatementError`]; [`StatementError::Forgotten`] is for [`Smoother::handle_certificate`].
    pub fn handle_certificate(
        &mut self,
        certificate: &Endorsed<Entry>,
    ) -> Result<Step<()>, StatementError> {
        let said = certificate.dangerous_unverified().ok_or(StatementError::NotCertified)?;
        let forgotten = certificate.has(self.smoother.id) && self.state.has_forgotten(&said);
        if !forgotten && self.state.certified(said.slot) == Some(&said) {
            return Ok(Step::default());
        }
        let (pinned, state) = (self.smoother.pinned, &*self.state);
        let known =
            |by: SmootherId, signed: &Signed<Entry>| state.slots.has_receipt(by, said.slot, signed);
        let sifted = certificate.sift(pinned, pinned.quorum(), known);
        let (entry, certificate) = sifted.map_err(|_| StatementError::NotCertified)?;
        if entry.aggregate != state.definition().name() {
            return Err(StatementError::Unknown);
        }
        if certificate.has(self.smoother.id) && state.has_forgotten(&entry) {
            return Err(StatementError::Forgotten);
        }
        if !state.owns(&entry) || state.outcome().is_some() {
            return Err(StatementError::OtherSet);
        }
        Ok(Step::new(self.state.record_certificate(entry, certificate).into_iter().collect(), ()))
    }
}
