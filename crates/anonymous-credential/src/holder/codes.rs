//! Login codes of a holder: burnt for all of their epochs at once, shown again
//! as they were.

use super::{Holder, Outgoing, Shown, Which, records, session_key};
use crate::codes::Code;
use crate::configuration::Compared;
use crate::error::HolderRefused;
use crate::ledger::Step;
use crate::limit::Limit;
use crate::messages::{Login, ReUp, SessionId, TagId};
use crate::schedule::{Epoch, Time};
use alpheus_crypto::hash::Digest;
use rand_core::CryptoRng;

impl Holder {
    /// A code for the running epoch: a login, and re-ups to the epochs after it.
    /// Asked for again in that epoch, it is the same code. Its epochs are burnt,
    /// whether or not a gate ever reads it.
    ///
    /// # Errors
    /// [`HolderRefused`].
    ///
    /// # Privacy
    /// As a login; gates learn that the tags of the code's epochs are one holder's.
    pub fn code(
        &mut self,
        now: Time,
        compared: &Compared,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Outgoing>, HolderRefused> {
        if self.pinned.schedule.ahead == 0 {
            return Err(HolderRefused::NoCodes);
        }
        if self.pinned.limit != Limit::ONE {
            return Err(HolderRefused::LimitForbids);
        }
        if compared.0 != self.pinned.fingerprint() {
            return Err(HolderRefused::OtherConfiguration);
        }
        let epoch = self.epoch(now, Which::Running)?;
        if self.pinned.schedule.period_of(epoch) != self.period {
            return Err(HolderRefused::OtherPeriod);
        }
        let last = Epoch(epoch.0 + self.pinned.schedule.carried_by_code(epoch));
        if self.shown.range((epoch, 0)..=(last, u32::MAX)).next().is_some() {
            return self.code_again(epoch, last);
        }
        let hedge = self.hedge(epoch, 0, rng);
        let login = self.show((epoch, 0), &hedge, &Digest([0; 32]), rng)?;
        let tag = TagId::of(&self.pinned.fingerprint(), epoch, &login.tag);
        let session = SessionId(tag);
        let mut burnt = vec![(epoch, login.to_bytes())];
        for from in (epoch.0..last.0).map(Epoch) {
            burnt.push((from.next(), self.carry(from, session, rng)?.to_bytes()));
        }
        let mut changes = Vec::with_capacity(burnt.len());
        for (epoch, bytes) in burnt {
            let shown = Shown { session, seed: hedge.seed(), bytes };
            changes.push(records::shown(self.period, epoch, 0, &shown));
            self.shown.insert((epoch, 0), shown);
        }
        let bytes = self.code_bytes(epoch, last).ok_or(HolderRefused::Damaged)?;
        Ok(Step::new(changes, Outgoing { session, epoch, bytes }))
    }

    /// The code that all of these epochs were burnt for.
    fn code_again(&self, first: Epoch, last: Epoch) -> Result<Step<Outgoing>, HolderRefused> {
        let bytes = self.code_bytes(first, last).ok_or(HolderRefused::Burnt)?;
        let shown = self.shown.get(&(first, 0)).ok_or(HolderRefused::Burnt)?;
        let ours = self.shown.range((first, 0)..=(last, 0));
        let again = |((epoch, index), shown): (&(Epoch, u32), &Shown)| {
            records::shown(self.period, *epoch, *index, shown)
        };
        // Stored again, in case the first commit is still on its way to the disk.
        Ok(Step::new(
            ours.map(again).collect(),
            Outgoing { session: shown.session, epoch: first, bytes },
        ))
    }

    /// A code of what was shown, if that is a login and its re-ups.
    fn code_bytes(&self, first: Epoch, last: Epoch) -> Option<Vec<u8>> {
        let shown = self.shown.get(&(first, 0))?;
        let login = Login::from_bytes(&shown.bytes, Limit::ONE).ok()?;
        let ours = login.holder == session_key(&shown.seed).verifying_key();
        let onward = |epoch| {
            let next = self.shown.get(&(Epoch(epoch), 0))?;
            let re_up = ReUp::from_bytes(&next.bytes).ok()?;
            (re_up.session == shown.session).then_some((re_up.tag, re_up.proof))
        };
        let onward = (first.0 + 1..=last.0).map(onward).collect::<Option<_>>()?;
        ours.then(|| Code { login, onward }.to_bytes())
    }
}
