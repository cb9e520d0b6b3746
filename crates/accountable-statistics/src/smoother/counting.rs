//! From the tuples that the aggregator shows to the one set that this smoother agrees to.

use super::running::Running;
use super::{Smoother, records};
use crate::closing::Trees;
use crate::messages::{Closing, Ready, Shown, content_digest};
use crate::refused::NotClosed;
use crate::tuple::{Binding, Checker, Tuple};
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::Step;
use alpheus_crypto::signed::Signed;

impl Smoother {
    /// The aggregate, if it may be closed now.
    fn at_closing(&mut self, aggregate: &Digest, now: Time) -> Result<&mut Running, NotClosed> {
        let sits_out = self.sits_out;
        let running = self.running.get_mut(aggregate).ok_or(NotClosed::Unknown)?;
        let agreed = running.agreed();
        if Some(agreed.key_epoch) <= sits_out {
            return Err(NotClosed::SitsOut);
        }
        if now < agreed.release() || now >= agreed.deadline() || running.outcome().is_some() {
            return Err(NotClosed::Time);
        }
        Ok(running)
    }

    /// Checks tuples, best some 64 at a time, in any order: whatever the aggregator says of
    /// them. One that is shown again is found good again.
    ///
    /// # Errors
    /// [`NotClosed`] for all of them, or for each.
    ///
    /// # Privacy
    /// Tuples under tags that nothing links: nothing about them can be read without t smoothers.
    pub fn check(
        &mut self,
        now: Time,
        aggregate: &Digest,
        shown: Vec<Shown>,
    ) -> Result<Vec<Result<(), NotClosed>>, NotClosed> {
        let running = self.at_closing(aggregate, now)?;
        if running.ready.is_some() {
            return Err(NotClosed::Latched);
        }
        Ok(running.check(shown))
    }

    /// Agrees to a closing, if it is what this smoother knows and has checked: to one of an
    /// aggregate, ever. The same closing gets the same answer, which is for all smoothers, this
    /// one included.
    ///
    /// # Errors
    /// [`NotClosed`]: nothing has changed.
    pub fn close(
        &mut self,
        now: Time,
        closing: &Signed<Closing>,
    ) -> Result<Step<Signed<Ready>>, NotClosed> {
        let closing = closing.open(&self.pinned.aggregator).map_err(|_| NotClosed::Signature)?;
        let (id, pinned) = (self.id, self.pinned.clone());
        let running = self.at_closing(&closing.aggregate, now)?;
        let key_epoch = running.agreed().key_epoch;
        let Closing { aggregate, ledger, tuples, .. } = *closing;
        let ready = Ready { aggregate, key_epoch, ledger, tuples };
        match running.ready {
            Some(known) if known != ready => return Err(NotClosed::Latched),
            Some(_) => {}
            None => {
                let missing = pinned.missing_at_most(running.agreed().slots);
                running.check_closing(&closing, missing)?;
                running.ready = Some(ready);
                running.readies.insert(id, ready);
            }
        }
        let change = records::ready(&ready, &running.sums.to_bytes());
        Ok(Step::new(vec![change], Signed::new(&ready, &self.key)))
    }
}

impl Running {
    fn check(&mut self, shown: Vec<Shown>) -> Vec<Result<(), NotClosed>> {
        let mut verdicts = Vec::with_capacity(shown.len());
        let (mut batch, mut places) = (Vec::new(), Vec::new());
        for shown in shown {
            match self.admit_tuple(&shown) {
                Ok(None) => verdicts.push(Ok(())),
                Ok(Some(item)) => {
                    places.push(verdicts.len());
                    verdicts.push(Ok(()));
                    batch.push(item);
                }
                Err(why) => verdicts.push(Err(why)),
            }
        }
        let terms = *self.agreed().terms();
        let checker = self.checker.get_or_insert_with(|| Checker::new(terms));
        let checked = checker.check_batch(batch);
        for (place, verdict) in places.into_iter().zip(checked) {
            let counted = match verdict {
                Ok(tuple) => self.count(&tuple),
                Err(why) => Err(NotClosed::Refused(why)),
            };
            if let Some(at) = verdicts.get_mut(place) {
                *at = counted;
            }
        }
        verdicts
    }

    /// Whether a tuple is that of its slot's entry; none if it counts already.
    fn admit_tuple(&self, shown: &Shown) -> Result<Option<(Binding, Tuple)>, NotClosed> {
        let entry = self.certified(shown.slot).ok_or(NotClosed::NotCertified)?;
        if content_digest(&shown.tag, &shown.tuple, &shown.showing) != entry.content {
            return Err(NotClosed::NotCertified);
        }
        if self.counted.contains(&shown.slot) {
            return Ok(None);
        }
        let tuple = Tuple::from_bytes(&shown.tuple, &self.agreed().interval)?;
        Ok(Some((entry.binding(shown.tag), tuple)))
    }

    /// Adds a checked tuple: once for its slot, once for its tag.
    fn count(&mut self, tuple: &crate::tuple::CheckedTuple) -> Result<(), NotClosed> {
        let (slot, tag) = (tuple.binding().slot, *tuple.binding().tag.as_bytes());
        if self.counted.contains(&slot) {
            return Ok(());
        }
        if self.tags.contains_key(&tag) {
            return Err(NotClosed::Duplicate);
        }
        self.sums.add(tuple).map_err(|_| NotClosed::NotCertified)?;
        self.tags.insert(tag, slot);
        self.counted.insert(slot);
        Ok(())
    }

    /// Both roots are those of what is certified and was checked here, and no more is missing
    /// than may be.
    fn check_closing(&self, closing: &Closing, missing: u32) -> Result<(), NotClosed> {
        let slots = self.agreed().slots;
        let lacking = u64::from(slots).saturating_sub(self.counted.len() as u64);
        if lacking > u64::from(missing) {
            return Err(NotClosed::TooManyMissing);
        }
        let trees = Trees::new(slots, &self.all_certified(), |slot| self.counted.contains(&slot));
        if trees.ledger() != closing.ledger {
            return Err(NotClosed::OtherLedger);
        }
        if trees.tuples() != closing.tuples {
            return Err(NotClosed::OtherTuples);
        }
        Ok(())
    }
}
