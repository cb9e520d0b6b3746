//! Merges many runs into one: rewrites blocks in order under labels of one new epoch.

use super::{CorrectError, OpenBlock, Owner};
use crate::label::{Address, Label, Segment};
use crate::ledger::PendingStep;
use crate::messages::{Block, Run};
use rand_core::CryptoRng;
use std::ops::Range;

/// A merge in progress: an epoch of this start and the blocks still to rewrite. Each number
/// is written once. If the merge is interrupted, rewritten blocks stay valid and the rest
/// are unchanged.
pub struct Merge {
    segment: Segment,
    epoch: u32,
    blocks: Range<u64>,
}

impl Merge {
    /// The next block to fetch, open with all columns, and pass to [`Owner::merge`].
    #[must_use]
    pub fn next_block(&self) -> Option<u64> {
        (!self.blocks.is_empty()).then_some(self.blocks.start)
    }
}

/// Skips rewritten runs at the front that are longer than every run that was not rewritten,
/// as long as two runs remain.
fn skip_merged(mut runs: &[Run]) -> &[Run] {
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
    /// Ranges of blocks in `within` that are worth merging: adjacent runs, each of fewer than
    /// `below` blocks there, that become fewer runs. Blocks from an interrupted merge are left
    /// out while others have never been merged. So repeated merges make progress, however
    /// often they are interrupted.
    #[must_use]
    pub fn merge_candidates(&self, within: &Range<u64>, below: u64) -> Vec<Range<u64>> {
        let runs = self.runs_between(within.start, within.end);
        let stretches = runs.chunk_by(|a, b| [a, b].iter().all(|run| run.to - run.from < below));
        let whole = |runs: &[Run]| Some(runs.first()?.from..runs.last()?.to);
        stretches
            .map(skip_merged)
            .filter(|runs| self.reduces_runs(runs))
            .filter_map(whole)
            .collect()
    }

    /// Whether merging leaves fewer runs. Run ends that are cut off remain as runs.
    fn reduces_runs(&self, runs: &[Run]) -> bool {
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return false };
        let cut = |at: u64| self.runs.iter().any(|run| run.from < at && at < run.to);
        runs.len() > 1 + usize::from(cut(first.from)) + usize::from(cut(last.to))
    }

    /// Begins a merge of these blocks, up to the last sealed one.
    ///
    /// # Errors
    /// [`CorrectError::Epochs`].
    pub fn begin_merge(&mut self, blocks: Range<u64>) -> Result<Merge, CorrectError> {
        self.epochs = self.epochs.checked_add(1).ok_or(CorrectError::Epochs)?;
        let blocks = blocks.start..blocks.end.min(self.blocks());
        Ok(Merge { segment: self.segment, epoch: self.epochs, blocks })
    }

    /// Rewrites the next block of a merge, with corrections applied. As with
    /// [`Owner::rewrite`], the server keeps the old block too; but all blocks of one merge
    /// form one run.
    ///
    /// # Errors
    /// [`CorrectError::NotOpen`], also if another start began the merge, and
    /// [`CorrectError::Uncommitted`].
    pub fn merge(
        &mut self,
        merge: &mut Merge,
        block: &OpenBlock,
        rng: &mut impl CryptoRng,
    ) -> Result<PendingStep<Block>, CorrectError> {
        let index = block.index();
        if merge.next_block() != Some(index) || merge.segment != self.segment {
            return Err(CorrectError::NotOpen(index));
        }
        let address = Address { segment: merge.segment, epoch: merge.epoch, index };
        self.reseal(block, rng, |_| {
            merge.blocks.start += 1;
            Some(Label(address))
        })
    }

    /// Records the new address of a rewritten block: cuts it from its old run, and appends it
    /// to the run before if that has the same epoch.
    pub(super) fn insert_block(&mut self, address: &Address) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TableKey;
    use crate::label::Order;
    use crate::layout::{ColumnDeclaration, Layout};
    use crate::parameters::Set;
    use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
    use std::collections::BTreeMap;

    /// An epoch that begins again at zero would seal two blocks under one label.
    #[test]
    fn a_start_without_epochs_rewrites_nothing() {
        let (mut rng, mut store) = (ChaCha20Rng::seed_from_u64(1), BTreeMap::new());
        let column = ColumnDeclaration { min: 0, max: 9, optional: false, squares: false };
        let layout = Layout::new(vec![column], &[]).unwrap();
        let key = TableKey::random(&mut rng);
        let step = Owner::create(&key, Set::L128, Order::ONE, layout, &mut rng);
        let mut owner = step.commit(&mut store).unwrap();
        let rows = vec![vec![Some(7)]; 4096];
        let blocks = owner.append(&rows, &mut rng).unwrap().commit(&mut store).unwrap();
        let bytes = blocks[0].as_bytes();
        let open = |owner: &Owner| owner.open_block(0, &owner.all_columns(), bytes).unwrap();
        owner.epochs = u32::MAX - 1;
        let block = open(&owner);
        let last = owner.rewrite(&block, &mut rng).unwrap().commit(&mut store).unwrap();
        assert_eq!(last.address().epoch, u32::MAX);
        let block = owner.open_block(0, &owner.all_columns(), last.as_bytes()).unwrap();
        assert_eq!(owner.rewrite(&block, &mut rng).err(), Some(CorrectError::Epochs));
        assert_eq!(owner.begin_merge(0..1).err(), Some(CorrectError::Epochs));
        assert_eq!(owner.runs()[0].epoch, u32::MAX, "nothing has changed");
    }
}
