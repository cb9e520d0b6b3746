//! Many runs into one: blocks are written anew, one after the other, under labels of one
//! epoch that begins for it.

use super::{CorrectError, OpenBlock, Owner};
use crate::label::{Address, Label, Segment};
use crate::ledger::Step;
use crate::messages::{Block, Run};
use rand_core::CryptoRng;
use std::ops::Range;

/// A merge under way: an epoch of this start, and which of its blocks comes next. Each
/// number is written once; broken off, what was written stays, and the rest is as it was.
pub struct Merge {
    segment: Segment,
    epoch: u32,
    blocks: Range<u64>,
}

impl Merge {
    /// The block to fetch, open with all columns, and hand to [`Owner::merge`].
    #[must_use]
    pub fn next_block(&self) -> Option<u64> {
        (!self.blocks.is_empty()).then_some(self.blocks.start)
    }
}

/// Without the runs at the front that were written anew, if they are longer than any run
/// that was not and two are left.
fn waiting(mut runs: &[Run]) -> &[Run] {
    let length = |run: &Run| run.to - run.from;
    while let [first, rest @ ..] = runs {
        let longest = rest.iter().filter(|run| run.epoch == 0).map(length).max();
        let shorter = longest.is_some_and(|longest| longest < length(first));
        if first.epoch == 0 || !shorter || rest.len() < 2 {
            break;
        }
        runs = rest;
    }
    runs
}

impl Owner {
    /// Stretches of blocks in `within` that are worth a merge: neighbouring runs, each of
    /// fewer than `below` blocks there, that become fewer runs. What a merge that was broken
    /// off has written is left out while blocks wait that none has: so merging again gets
    /// on, however often it is broken off.
    #[must_use]
    pub fn scattered(&self, within: &Range<u64>, below: u64) -> Vec<Range<u64>> {
        let runs = self.runs_between(within.start, within.end);
        let stretches = runs.chunk_by(|a, b| [a, b].iter().all(|run| run.to - run.from < below));
        let whole = |runs: &[Run]| Some(runs.first()?.from..runs.last()?.to);
        stretches.map(waiting).filter(|runs| self.saves(runs)).filter_map(whole).collect()
    }

    /// Whether fewer runs are left than there are: ends that are cut off stay as runs.
    fn saves(&self, runs: &[Run]) -> bool {
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return false };
        let cut = |at: u64| self.runs.iter().any(|run| run.from < at && at < run.to);
        runs.len() > 1 + usize::from(cut(first.from)) + usize::from(cut(last.to))
    }

    /// Begins a merge of blocks, those that there are.
    ///
    /// # Errors
    /// [`CorrectError::Epochs`].
    pub fn begin_merge(&mut self, blocks: Range<u64>) -> Result<Merge, CorrectError> {
        self.epochs = self.epochs.checked_add(1).ok_or(CorrectError::Epochs)?;
        let blocks = blocks.start..blocks.end.min(self.blocks());
        Ok(Merge { segment: self.segment, epoch: self.epochs, blocks })
    }

    /// Writes the next block of a merge anew, corrections applied. Like
    /// [`Owner::rewrite`], and the server keeps the old block as well; only the blocks of
    /// one merge stand in one run.
    ///
    /// # Errors
    /// [`CorrectError::Closed`], also if the merge was begun by another start, and
    /// [`CorrectError::Uncommitted`].
    pub fn merge(
        &mut self,
        merge: &mut Merge,
        block: &OpenBlock,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Block>, CorrectError> {
        let index = block.index();
        if merge.next_block() != Some(index) || merge.segment != self.segment {
            return Err(CorrectError::Closed(index));
        }
        let address = Address { segment: merge.segment, epoch: merge.epoch, index };
        self.write_anew(block, rng, |_| {
            merge.blocks.start += 1;
            Some(Label(address))
        })
    }

    /// Where a block of another epoch stands: its old place is cut out, and it joins the
    /// run before if that is of the same epoch.
    pub(super) fn place(&mut self, address: &Address) {
        let Address { segment, epoch, index } = *address;
        let alone = Run { segment, epoch, from: index, to: index + 1 };
        let split = |run: Run| {
            let before = Run { to: run.to.min(index), ..run };
            let after = Run { from: run.from.max(index + 1), ..run };
            [before, after].into_iter().filter(|run| run.from < run.to)
        };
        self.runs = std::mem::take(&mut self.runs).into_iter().flat_map(split).collect();
        let at = self.runs.partition_point(|run| run.from < index);
        let before = at.checked_sub(1).and_then(|at| self.runs.get_mut(at));
        match before.filter(|run| (run.segment, run.epoch, run.to) == (segment, epoch, index)) {
            Some(run) => run.to += 1,
            None => self.runs.insert(at, alone),
        }
    }
}
