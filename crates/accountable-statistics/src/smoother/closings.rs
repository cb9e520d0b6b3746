//! From the tuples that the aggregator sends to the one set that this smoother agrees to.

use super::aggregate::AggregateState;
use super::shard::Shard;
use super::{Smoother, records};
use crate::closing::Trees;
use crate::configuration::PinnedConfiguration;
use crate::disclosure::{DisclosedUpload, DisclosureCheck, Finding};
use crate::messages::{Closing, ClosingTuple, Ready, content_digest};
use crate::role_error::ClosingError;
use crate::sums::Sums;
use crate::tuple::{Binding, Checker, Tuple};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::Step;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

impl Smoother {
    /// As [`Shard::handle_tuples`].
    ///
    /// # Errors
    /// [`ClosingError`] for all of them, or for each.
    pub fn handle_tuples(
        &mut self,
        aggregate: &Digest,
        shown: Vec<ClosingTuple>,
        now: Timestamp,
    ) -> Result<Vec<Result<(), ClosingError>>, ClosingError> {
        self.shard(aggregate).ok_or(ClosingError::Unknown)?.handle_tuples(shown, now)
    }

    /// As [`Shard::handle_disclosures`].
    ///
    /// # Errors
    /// [`ClosingError`] for all of them, or for each.
    pub fn handle_disclosures(
        &mut self,
        aggregate: &Digest,
        shown: &[DisclosedUpload],
        now: Timestamp,
    ) -> Result<Vec<Result<(), ClosingError>>, ClosingError> {
        self.shard(aggregate).ok_or(ClosingError::Unknown)?.handle_disclosures(shown, now)
    }

    /// As [`Shard::handle_closing`].
    ///
    /// # Errors
    /// [`ClosingError`]: nothing has changed.
    pub fn handle_closing(
        &mut self,
        closing: &Signed<Closing>,
        now: Timestamp,
    ) -> Result<Step<Signed<Ready>>, ClosingError> {
        let said = closing.dangerous_unverified().ok_or(ClosingError::Signature)?;
        match self.shard(&said.aggregate) {
            Some(mut shard) => shard.handle_closing(closing, now),
            None => {
                let opened = closing.open(&self.pinned.aggregator);
                Err(opened.map_or(ClosingError::Signature, |_| ClosingError::Unknown))
            }
        }
    }
}

impl Shard<'_> {
    /// Whether the aggregate may be closed now.
    fn at_closing(&self, now: Timestamp) -> Result<(), ClosingError> {
        let agreed = self.state.definition();
        if Some(agreed.key_epoch) <= self.smoother.sits_out {
            return Err(ClosingError::SitsOut);
        }
        let over = now >= agreed.deadline() || self.state.outcome().is_some();
        if now < agreed.release() || over { Err(ClosingError::Time) } else { Ok(()) }
    }

    /// Checks tuples in any order, at best some 256 at a time, whatever the aggregator claims about
    /// them. A tuple that is sent again passes again.
    ///
    /// # Errors
    /// [`ClosingError`] for all of them, or for each.
    ///
    /// # Privacy
    /// Tuples under unlinkable tags: without t smoothers nothing in them can be read.
    pub fn handle_tuples(
        &mut self,
        shown: Vec<ClosingTuple>,
        now: Timestamp,
    ) -> Result<Vec<Result<(), ClosingError>>, ClosingError> {
        self.at_closing(now)?;
        if self.state.ready.is_some() {
            return Err(ClosingError::Latched);
        }
        Ok(self.state.check(shown))
    }

    /// Checks what the aggregator discloses of uploads that it rejects. Those that are proven to be
    /// bad are no reason to open nothing, however many they are.
    ///
    /// # Errors
    /// [`ClosingError`] for all of them, or for each: then it is missing, like one without a proof.
    ///
    /// # Privacy
    /// Opens these uploads: unlinkable tags and presentations, and tuples as in
    /// [`Shard::handle_tuples`].
    pub fn handle_disclosures(
        &mut self,
        shown: &[DisclosedUpload],
        now: Timestamp,
    ) -> Result<Vec<Result<(), ClosingError>>, ClosingError> {
        self.at_closing(now)?;
        if self.state.ready.is_some() {
            return Err(ClosingError::Latched);
        }
        let pinned = self.smoother.pinned;
        Ok(shown.iter().map(|shown| self.state.check_disclosed(shown, pinned)).collect())
    }

    /// Agrees to a closing that matches what this smoother knows and has checked: to one per
    /// aggregate, ever. The same closing gets the same response, which is for all smoothers, this
    /// one included.
    ///
    /// # Errors
    /// [`ClosingError`]: nothing has changed.
    pub fn handle_closing(
        &mut self,
        closing: &Signed<Closing>,
        now: Timestamp,
    ) -> Result<Step<Signed<Ready>>, ClosingError> {
        let (id, pinned) = (self.smoother.id, self.smoother.pinned);
        let closing = closing.open(&pinned.aggregator).map_err(|_| ClosingError::Signature)?;
        if closing.aggregate != self.state.definition().name() {
            return Err(ClosingError::Unknown);
        }
        self.at_closing(now)?;
        let state = &mut *self.state;
        let key_epoch = state.definition().key_epoch;
        let Closing { aggregate, ledger, tuples, .. } = *closing;
        let ready = Ready { aggregate, key_epoch, ledger, tuples };
        match state.ready {
            Some(known) if known != ready => return Err(ClosingError::Latched),
            Some(_) => {}
            None => {
                let missing = pinned.max_missing(state.definition().slots);
                state.sums = state.summed(&closing, missing)?;
                state.checked_tuples.clear();
                state.disclosed.clear();
                state.ready = Some(ready);
                state.ready_by.insert(id, ready);
            }
        }
        let change = records::ready(&ready, &state.sums.to_bytes());
        Ok(Step::new(vec![change], Signed::new(&ready, self.smoother.key)))
    }
}

impl AggregateState {
    fn check(&mut self, shown: Vec<ClosingTuple>) -> Vec<Result<(), ClosingError>> {
        let mut verdicts = Vec::with_capacity(shown.len());
        let (mut batch, mut places) = (Vec::new(), Vec::new());
        for shown in shown {
            match self.admit_tuple(&shown) {
                Ok(None) => verdicts.push(Ok(())),
                Ok(Some(item)) => {
                    places.push((verdicts.len(), shown.slot));
                    verdicts.push(Ok(()));
                    batch.push(item);
                }
                Err(why) => verdicts.push(Err(why)),
            }
        }
        let terms = *self.definition().terms();
        let checker = self.checker.get_or_insert_with(|| Checker::new(terms));
        let checked = checker.check_batch(batch);
        for ((position, slot), verdict) in places.into_iter().zip(checked) {
            match verdict {
                Ok(tuple) => drop(self.checked_tuples.insert(slot, tuple)),
                Err(why) => {
                    if let Some(at) = verdicts.get_mut(position) {
                        *at = Err(ClosingError::Refused(why));
                    }
                }
            }
        }
        verdicts
    }

    fn check_disclosed(
        &mut self,
        shown: &DisclosedUpload,
        pinned: &PinnedConfiguration,
    ) -> Result<(), ClosingError> {
        if self.disclosed.contains_key(&shown.slot) {
            return Ok(());
        }
        let entry = *self.certified(shown.slot).ok_or(ClosingError::NotCertified)?;
        let subject = self.definition().subject(pinned.uploads());
        let terms = *self.definition().terms();
        let checker = self.checker.take().unwrap_or_else(|| Checker::new(terms));
        let (sealing, subject) = (&pinned.sealing, &subject);
        let agreed = self.definition();
        let check = DisclosureCheck { agreed, sealing, subject, checker: &checker };
        let found = shown.check(&entry, &check);
        self.checker = Some(checker);
        self.disclosed.insert(shown.slot, found?);
        Ok(())
    }

    /// The tuple, if it matches its slot's entry; none if it was checked already.
    fn admit_tuple(&self, shown: &ClosingTuple) -> Result<Option<(Binding, Tuple)>, ClosingError> {
        let entry = self.certified(shown.slot).ok_or(ClosingError::NotCertified)?;
        if content_digest(&shown.tag, &shown.tuple, &shown.presentation) != entry.content {
            return Err(ClosingError::NotCertified);
        }
        if self.checked_tuples.contains_key(&shown.slot) {
            return Ok(None);
        }
        let tuple = Tuple::from_bytes(&shown.tuple, &self.definition().interval)?;
        Ok(Some((entry.binding(shown.tag), tuple)))
    }

    /// The sum of what a closing counts. Checks that the missing slots are within the limit, every
    /// entry in the closing is certified, every counted tuple was checked here and has its own tag,
    /// and both roots match. A slot that is certified here but empty in the closing is missing, and
    /// so is a rejected one, unless that is proven.
    fn summed(&self, closing: &Closing, max_missing: u32) -> Result<Sums, ClosingError> {
        let (empty, rejected) = sets(closing, self.definition().slots)?;
        let (mut entries, mut tags) = (BTreeMap::new(), BTreeMap::new());
        let mut sums = Sums::new(self.definition().terms(), self.definition().name());
        for slot in (0..self.definition().slots).filter(|slot| !empty.contains(slot)) {
            entries.insert(slot, *self.certified(slot).ok_or(ClosingError::Lacking)?);
            if rejected.contains(&slot) {
                continue;
            }
            let tuple = self.checked_tuples.get(&slot).ok_or(ClosingError::NotShown)?;
            if tags.insert(*tuple.binding().tag.as_bytes(), slot).is_some() {
                return Err(ClosingError::Duplicate);
            }
            sums.add(tuple).map_err(|_| ClosingError::NotCertified)?;
        }
        let unproven = rejected.iter().filter(|slot| !self.is_proven(**slot, &tags)).count();
        if empty.len() + unproven > max_missing as usize {
            return Err(ClosingError::TooManyMissing);
        }
        let trees = Trees::new(self.definition().slots, &entries, |slot| !rejected.contains(&slot));
        let roots = (trees.ledger(), trees.tuples()) == (closing.ledger, closing.tuples);
        if roots { Ok(sums) } else { Err(ClosingError::OtherRoots) }
    }

    /// Whether a rejection is proven, beside the tags that count. Two uploads with one tag are by the
    /// only one who knows its secret, if both presentations show that.
    fn is_proven(&self, slot: u32, tags: &BTreeMap<[u8; 32], u32>) -> bool {
        match self.disclosed.get(&slot) {
            None => false,
            Some(Finding::Bad) => true,
            Some(same @ Finding::Tag(tag)) => tags.get(tag.as_bytes()).is_some_and(|counted| {
                *counted < slot && self.disclosed.get(counted) == Some(same)
            }),
        }
    }
}

/// Empty and rejected slots: each once and in order, none in both.
fn sets(closing: &Closing, slots: u32) -> Result<(BTreeSet<u32>, BTreeSet<u32>), ClosingError> {
    let ordered = |of: &[u32]| {
        let ascending = of.is_sorted_by(|a, b| a < b);
        ascending && of.last().is_none_or(|last| *last < slots)
    };
    let Closing { empty, rejected, .. } = closing;
    if !ordered(empty) || !ordered(rejected) {
        return Err(ClosingError::OtherRoots);
    }
    let of = |list: &[u32]| list.iter().copied().collect::<BTreeSet<u32>>();
    let (empty, rejected) = (of(empty), of(rejected));
    if empty.is_disjoint(&rejected) { Ok((empty, rejected)) } else { Err(ClosingError::OtherRoots) }
}
