//! Running totals: windows in order, so that each controller's share of noise continues
//! from its last one, and the sum of what has been opened so far.

use std::collections::{BTreeMap, BTreeSet};

use alpheus_policy::budget::{RowNoise, max_share_variance, share_variance};
use alpheus_time::{Timestamp, Window};

use super::Coordinator;
use super::output::WindowResult;
use super::presences::OWED;
use super::recovery::ServiceRecord;
use super::round::{Phase, Round};
use crate::error::ReleaseError;
use crate::ledger::Change;
use crate::mask::set::RosterSet;
use crate::sums::add;

/// The totals of a plan's windows so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// One for each row, in units of 2^−f.
    pub(super) words: Vec<u64>,
    /// How many windows they include.
    pub(super) windows: u32,
    /// An upper bound for the variance of shares that controllers made for windows that
    /// then failed, in thousandths of a seed's. Later shares continue from these, so they
    /// are missing.
    pub(super) lost: u64,
    /// The last window that each controller made a share for, or may have made one for, as
    /// far as is known.
    pub(super) last: BTreeMap<u32, u32>,
    /// Whether unknown controllers may have made a share before a restart.
    pub(super) restarted: bool,
}

impl Totals {
    /// The variance of the shares that these controllers made for the window at `place`.
    fn variance(&self, makers: &RosterSet, place: u32) -> u64 {
        let mut counts: BTreeMap<Option<u32>, u64> = BTreeMap::new();
        for controller in makers.iter() {
            *counts.entry(self.last.get(&controller).copied()).or_default() += 1;
        }
        let of = |(last, count): (Option<u32>, u64)| match last {
            None if self.restarted => max_share_variance(place).saturating_mul(count),
            last => share_variance(place, last).saturating_mul(count),
        };
        counts.into_iter().map(of).fold(0, u64::saturating_add)
    }
}

/// Whether a window may proceed to its opening set.
pub(super) enum Turn {
    /// With these members.
    Now(RosterSet),
    /// Once an earlier window has proceeded.
    Later,
}

impl Coordinator {
    /// Whether results are running totals.
    pub(super) fn cumulates(&self) -> bool {
        self.plan().horizon().is_some()
    }

    /// Whether a window lies beyond the plan's running totals, so that it is none of them.
    #[must_use]
    pub fn is_beyond(&self, start: Timestamp) -> bool {
        let end = start.plus(self.plan().window);
        self.cumulates() && self.plan().index_in_totals(Window { start, end }).is_none()
    }

    /// With running totals: whether an earlier window has no opening set yet.
    pub(super) fn is_behind(&self, start: Timestamp) -> bool {
        let unfixed = |round: &Round| !matches!(round.phase, Phase::Opening(..));
        self.cumulates() && self.rounds.range(..start).any(|(_, round)| unfixed(round))
    }

    /// Whether M has to wait for earlier windows, because a single controller's token holds
    /// its share.
    pub(super) fn waits_with_membership(&self, start: Timestamp) -> bool {
        self.announced.is_single() && self.is_behind(start)
    }

    /// The controllers that have made a share of a window's noise, or may have.
    fn makers(&self, round: &Round) -> Option<RosterSet> {
        match &round.phase {
            Phase::Opening(_, opens) => Some(opens.set.clone()),
            Phase::Collecting(fixing) if self.announced.is_single() => {
                Some(fixing.fixed.members().clone())
            }
            _ => None,
        }
    }

    /// The members of a window's opening set. With running totals, a member that still owes
    /// the opening of an earlier window cannot be in it: if it opened the later window
    /// first, it would never open the earlier one. The window waits for such members. It
    /// proceeds without them, if the rest can open, once they have kept the earlier window
    /// waiting for long.
    pub(super) fn turn(&self, now: Timestamp, start: Timestamp, held: RosterSet) -> Turn {
        if !self.cumulates() {
            return Turn::Now(held);
        }
        if self.is_behind(start) {
            return Turn::Later;
        }
        let owing: BTreeSet<u32> = self.earlier(start).flat_map(Round::missing).collect();
        if !held.iter().any(|member| owing.contains(&member)) {
            return Turn::Now(held);
        }
        let patient = |round: &Round| {
            let begun = round.deadline.0.saturating_sub(self.timing.openings.0);
            now.0.saturating_sub(begun) < OWED.0
                && round.missing().iter().any(|p| held.contains(*p))
        };
        let Some(round) = self.rounds.get(&start).filter(|_| !self.earlier(start).any(patient))
        else {
            return Turn::Later;
        };
        let rest = held.iter().filter(|member| !owing.contains(member));
        let rest = self.graph.peel(RosterSet::of(self.announced.controllers(), rest));
        let Phase::Collecting(fixing) = &round.phase else { return Turn::Later };
        match self.forbids(&fixing.fixed, &rest) {
            None => Turn::Now(rest),
            Some(_) => Turn::Later,
        }
    }

    /// Notes whether a window waits for its turn.
    pub(super) fn note_turn(&mut self, start: Timestamp, waits: bool) {
        if let Some(round) = self.rounds.get_mut(&start) {
            round.waits_for_turn = waits;
        }
    }

    fn earlier(&self, start: Timestamp) -> impl Iterator<Item = &Round> {
        self.rounds.range(..start).map(|(_, round)| round)
    }

    /// Multiplies a window's ciphertext sums by 2^f, row by row, as controllers do with
    /// their tokens.
    pub(super) fn refine(&self, words: &mut [u64]) {
        for (word, row) in words.iter_mut().zip(self.noise()) {
            *word = word.wrapping_shl(row.fraction_bits());
        }
    }

    fn noise(&self) -> &[RowNoise] {
        self.plan().privacy.as_ref().map_or(&[], |privacy| &privacy.noise)
    }

    /// A window's set is fixed: its members have made their shares, or may have. Sets are
    /// fixed in the order of windows, so shares continue from what was noted last.
    pub(super) fn note_shares(&mut self, start: Timestamp) {
        let Some(round) = self.rounds.get(&start) else { return };
        let Some(place) = self.plan().index_in_totals(round.window) else { return };
        let Some(makers) = self.makers(round) else { return };
        let over = self.totals.variance(&makers, place);
        self.totals.last.extend(makers.iter().map(|controller| (controller, place)));
        if let Some(round) = self.rounds.get_mut(&start) {
            round.over = over;
        }
    }

    /// Adds a window that ends to the totals, which replace its result. If the window
    /// failed, notes what is missing from now on. Returns the record for the commit in
    /// which the window ends.
    pub(super) fn cumulate(
        &mut self,
        round: &Round,
        result: &mut Result<WindowResult, ReleaseError>,
    ) -> Option<Change> {
        self.plan().index_in_totals(round.window)?;
        match result {
            Ok(opened) => self.add(round.window.start, opened),
            Err(_) if round.over == 0 => return None,
            Err(_) => self.totals.lost = self.totals.lost.saturating_add(round.over),
        }
        let Totals { words, windows, lost, .. } = &self.totals;
        let (words, windows, lost) = (words.clone(), *windows, *lost);
        Some(self.put(&ServiceRecord::Totals { words, windows, lost }))
    }

    fn add(&mut self, start: Timestamp, opened: &mut WindowResult) {
        self.totals.words.resize(opened.outputs.len(), 0);
        add(&mut self.totals.words, &opened.outputs);
        self.totals.windows = self.totals.windows.saturating_add(1);
        // Shares of earlier windows that still wait for an opening are in no total yet.
        let waiting = self.earlier(start).map(|round| round.over);
        opened.lost = waiting.fold(self.totals.lost, u64::saturating_add);
        opened.windows = self.totals.windows;
        let finished = self.totals.words.iter().zip(self.noise());
        opened.outputs = finished.map(|(word, row)| rounded(*word, row.fraction_bits())).collect();
    }
}

/// A signed word in units of 2^−bits, rounded to the nearest whole unit.
fn rounded(word: u64, bits: u32) -> u64 {
    let Some(half) = bits.checked_sub(1) else { return word };
    (word.cast_signed().wrapping_add(1 << half) >> bits).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_rows_are_rounded_to_the_nearest_unit() {
        let signed = |word: i64, bits| rounded(word.cast_unsigned(), bits).cast_signed();
        for (word, bits, whole) in
            [(7, 0, 7), (7, 2, 2), (5, 2, 1), (6, 2, 2), (-7, 2, -2), (-5, 2, -1)]
        {
            assert_eq!(signed(word, bits), whole, "{word} {bits}");
        }
    }
}
