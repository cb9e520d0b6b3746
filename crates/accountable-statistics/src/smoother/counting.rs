//! From the tuples that the aggregator shows to the one set that this smoother agrees to.

use super::running::Running;
use super::shard::Shard;
use super::{Smoother, records};
use crate::closing::Trees;
use crate::messages::{Closing, Ready, Shown, content_digest};
use crate::refused::NotClosed;
use crate::sums::Sums;
use crate::tuple::{Binding, Checker, Tuple};
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::Step;
use alpheus_crypto::signed::Signed;
use std::collections::{BTreeMap, BTreeSet};

impl Smoother {
    /// As [`Shard::check`].
    ///
    /// # Errors
    /// [`NotClosed`] for all of them, or for each.
    pub fn check(
        &mut self,
        now: Time,
        aggregate: &Digest,
        shown: Vec<Shown>,
    ) -> Result<Vec<Result<(), NotClosed>>, NotClosed> {
        self.shard(aggregate).ok_or(NotClosed::Unknown)?.check(now, shown)
    }

    /// As [`Shard::close`].
    ///
    /// # Errors
    /// [`NotClosed`]: nothing has changed.
    pub fn close(
        &mut self,
        now: Time,
        closing: &Signed<Closing>,
    ) -> Result<Step<Signed<Ready>>, NotClosed> {
        let said = closing.dangerous_unverified().ok_or(NotClosed::Signature)?;
        match self.shard(&said.aggregate) {
            Some(mut shard) => shard.close(now, closing),
            None => {
                let opened = closing.open(&self.pinned.aggregator);
                Err(opened.map_or(NotClosed::Signature, |_| NotClosed::Unknown))
            }
        }
    }
}

impl Shard<'_> {
    /// Whether it may be closed now.
    fn at_closing(&self, now: Time) -> Result<(), NotClosed> {
        let agreed = self.running.agreed();
        if Some(agreed.key_epoch) <= self.common.sits_out {
            return Err(NotClosed::SitsOut);
        }
        let over = now >= agreed.deadline() || self.running.outcome().is_some();
        if now < agreed.release() || over { Err(NotClosed::Time) } else { Ok(()) }
    }

    /// Checks tuples, best some 256 at a time, in any order: whatever the aggregator says of
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
        shown: Vec<Shown>,
    ) -> Result<Vec<Result<(), NotClosed>>, NotClosed> {
        self.at_closing(now)?;
        if self.running.ready.is_some() {
            return Err(NotClosed::Latched);
        }
        Ok(self.running.check(shown))
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
        let (id, pinned) = (self.common.id, self.common.pinned);
        let closing = closing.open(&pinned.aggregator).map_err(|_| NotClosed::Signature)?;
        if closing.aggregate != self.running.agreed().name() {
            return Err(NotClosed::Unknown);
        }
        self.at_closing(now)?;
        let running = &mut *self.running;
        let key_epoch = running.agreed().key_epoch;
        let Closing { aggregate, ledger, tuples, .. } = *closing;
        let ready = Ready { aggregate, key_epoch, ledger, tuples };
        match running.ready {
            Some(known) if known != ready => return Err(NotClosed::Latched),
            Some(_) => {}
            None => {
                let missing = pinned.missing_at_most(running.agreed().slots);
                running.sums = running.summed(&closing, missing)?;
                running.checked.clear();
                running.ready = Some(ready);
                running.readies.insert(id, ready);
            }
        }
        let change = records::ready(&ready, &running.sums.to_bytes());
        Ok(Step::new(vec![change], Signed::new(&ready, self.common.key)))
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
            match verdict {
                Ok(tuple) => drop(self.checked.insert(tuple.binding().slot, tuple)),
                Err(why) => {
                    if let Some(at) = verdicts.get_mut(place) {
                        *at = Err(NotClosed::Refused(why));
                    }
                }
            }
        }
        verdicts
    }

    /// Whether a tuple is that of its slot's entry; none if it was checked already.
    fn admit_tuple(&self, shown: &Shown) -> Result<Option<(Binding, Tuple)>, NotClosed> {
        let entry = self.certified(shown.slot).ok_or(NotClosed::NotCertified)?;
        if content_digest(&shown.tag, &shown.tuple, &shown.showing) != entry.content {
            return Err(NotClosed::NotCertified);
        }
        if self.checked.contains_key(&shown.slot) {
            return Ok(None);
        }
        let tuple = Tuple::from_bytes(&shown.tuple, &self.agreed().interval)?;
        Ok(Some((entry.binding(shown.tag), tuple)))
    }

    /// The sum of what a closing counts, if no more is missing than may be, every entry that it
    /// rests on is certified, every tuple that it counts was checked here and has a tag of its
    /// own, and both roots are theirs. What is certified here and empty there is missing.
    fn summed(&self, closing: &Closing, most_missing: u32) -> Result<Sums, NotClosed> {
        let (empty, rejected) = sets(closing, self.agreed().slots)?;
        if empty.len() + rejected.len() > most_missing as usize {
            return Err(NotClosed::TooManyMissing);
        }
        let (mut entries, mut tags) = (BTreeMap::new(), BTreeSet::new());
        let mut sums = Sums::new(self.agreed().terms(), self.agreed().name());
        for slot in (0..self.agreed().slots).filter(|slot| !empty.contains(slot)) {
            entries.insert(slot, *self.certified(slot).ok_or(NotClosed::Lacking)?);
            if rejected.contains(&slot) {
                continue;
            }
            let tuple = self.checked.get(&slot).ok_or(NotClosed::NotShown)?;
            if !tags.insert(*tuple.binding().tag.as_bytes()) {
                return Err(NotClosed::Duplicate);
            }
            sums.add(tuple).map_err(|_| NotClosed::NotCertified)?;
        }
        let trees = Trees::new(self.agreed().slots, &entries, |slot| !rejected.contains(&slot));
        let roots = (trees.ledger(), trees.tuples()) == (closing.ledger, closing.tuples);
        if roots { Ok(sums) } else { Err(NotClosed::OtherRoots) }
    }
}

/// Empty and rejected slots, each named once and in order, none in both.
fn sets(closing: &Closing, slots: u32) -> Result<(BTreeSet<u32>, BTreeSet<u32>), NotClosed> {
    let ordered = |of: &[u32]| {
        let ascending = of.is_sorted_by(|a, b| a < b);
        ascending && of.last().is_none_or(|last| *last < slots)
    };
    let Closing { empty, rejected, .. } = closing;
    if !ordered(empty) || !ordered(rejected) {
        return Err(NotClosed::OtherRoots);
    }
    let of = |list: &[u32]| list.iter().copied().collect::<BTreeSet<u32>>();
    let (empty, rejected) = (of(empty), of(rejected));
    if empty.is_disjoint(&rejected) { Ok((empty, rejected)) } else { Err(NotClosed::OtherRoots) }
}
