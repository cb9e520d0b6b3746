//! A holder's login codes. All epochs of a code are burnt at once, and the same bytes are shown
//! each time.

use super::{Holder, OutboundMessage, StoredPresentation, Timing, records, session_key};
use crate::codes::Code;
use crate::configuration::ConfigurationMatch;
use crate::error::HolderError;
use crate::ledger::Step;
use crate::limit::Limit;
use crate::messages::{Login, ReUp, SessionId, TagId};
use crate::schedule::Epoch;
use alpheus_crypto::hash::Digest;
use alpheus_time::Timestamp;
use rand_core::CryptoRng;

impl Holder {
    /// Returns a code for the running epoch: a login, and re-ups to the following epochs. Called
    /// again in that epoch, it returns the same code. The epochs are burnt even if no gate ever
    /// reads the code, and nothing of the code is ever sent to a gateway.
    ///
    /// # Errors
    /// [`HolderError`].
    ///
    /// # Privacy
    /// As for a login. Gates learn that the tags of the code's epochs belong to one holder.
    pub fn code(
        &mut self,
        compared: &ConfigurationMatch,
        now: Timestamp,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<OutboundMessage>, HolderError> {
        if self.pinned.schedule.ahead == 0 {
            return Err(HolderError::NoCodes);
        }
        if self.pinned.limit != Limit::ONE {
            return Err(HolderError::LimitForbids);
        }
        if compared.0 != self.pinned.fingerprint() {
            return Err(HolderError::OtherConfiguration);
        }
        let epoch = self.epoch(Timing::Running, now)?;
        if self.pinned.schedule.period_of(epoch) != self.period {
            return Err(HolderError::OtherPeriod);
        }
        let last = Epoch(epoch.0 + self.pinned.schedule.carried_by_code(epoch));
        if self.presentations.range((epoch, 0)..=(last, u32::MAX)).next().is_some() {
            return self.code_again(epoch, last);
        }
        let hedge = self.hedge(epoch, 0, rng);
        let login = self.present((epoch, 0), &hedge, &Digest([0; 32]), rng)?.login;
        let tag = TagId::of(&self.pinned.fingerprint(), epoch, &login.tag);
        let session = SessionId(tag);
        let mut burnt = vec![(epoch, login.to_bytes())];
        for from in (epoch.0..last.0).map(Epoch) {
            burnt.push((from.next(), self.carry(from, session, rng)?.to_bytes()));
        }
        let mut changes = Vec::with_capacity(2 * burnt.len());
        for (epoch, bytes) in burnt {
            let stored = StoredPresentation { session, seed: hedge.seed(), bytes };
            changes.push(records::presentation(self.period, epoch, 0, &stored));
            changes.push(records::code(self.period, epoch));
            self.presentations.insert((epoch, 0), stored);
            self.codes.insert(epoch);
        }
        let bytes = self.code_bytes(epoch, last).ok_or(HolderError::Damaged)?;
        Ok(Step::new(changes, OutboundMessage { session, epoch, bytes }))
    }

    /// The code for which all of these epochs were burnt.
    fn code_again(&self, first: Epoch, last: Epoch) -> Result<Step<OutboundMessage>, HolderError> {
        let bytes = self.code_bytes(first, last).ok_or(HolderError::Burnt)?;
        let stored = self.presentations.get(&(first, 0)).ok_or(HolderError::Burnt)?;
        let ours = self.presentations.range((first, 0)..=(last, 0));
        let again = |((epoch, index), stored): (&(Epoch, u32), &StoredPresentation)| {
            let code = records::code(self.period, *epoch);
            [records::presentation(self.period, *epoch, *index, stored), code]
        };
        // Stored again, since the first commit may not have reached the disk yet.
        Ok(Step::new(
            ours.flat_map(again).collect(),
            OutboundMessage { session: stored.session, epoch: first, bytes },
        ))
    }

    /// Rebuilds a code from stored presentations, if they were made for one.
    fn code_bytes(&self, first: Epoch, last: Epoch) -> Option<Vec<u8>> {
        if !(first.0..=last.0).all(|epoch| self.codes.contains(&Epoch(epoch))) {
            return None;
        }
        let stored = self.presentations.get(&(first, 0))?;
        let login = Login::from_bytes(&stored.bytes, Limit::ONE).ok()?;
        let ours = login.holder == session_key(&stored.seed).verifying_key();
        let onward = |epoch| {
            let next = self.presentations.get(&(Epoch(epoch), 0))?;
            let re_up = ReUp::from_bytes(&next.bytes).ok()?;
            (re_up.session == stored.session).then_some((re_up.tag, re_up.proof))
        };
        let onward = (first.0 + 1..=last.0).map(onward).collect::<Option<_>>()?;
        ours.then(|| Code { login, onward }.to_bytes())
    }
}
