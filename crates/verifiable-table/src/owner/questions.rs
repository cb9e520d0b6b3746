//! Sums over any rows, in parts: the server sums whole blocks; the owner fetches the blocks
//! at the ends and adds the tail and corrections.

use super::{Owner, Version};
use crate::error::{PlanError, VerifyError};
use crate::label::{Address, Column, Kind};
use crate::layout::{Row, Term};
use crate::messages::{Block, Request, Run, Weights};
use crate::planner::{self, Question};
use crate::ring::ITEM_LIMIT;
use crate::verifier::DecryptedSum;
use std::collections::BTreeMap;
use std::ops::Range;
use zeroize::Zeroizing;

/// The parts of a sum over rows.
#[derive(Debug)]
pub struct Plan {
    term: Term,
    pub(super) from: u64,
    pub(super) to: u64,
    whole: Option<Question>,
    ends: Vec<Part>,
    pub(super) version: Version,
}

/// A part of a block at an end of the range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The block.
    pub index: u64,
    /// The slots in the range.
    pub slots: Range<usize>,
    /// The columns to open.
    pub columns: Vec<Column>,
}

/// A plan that cannot be totalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TotalError {
    /// The answer over whole blocks is missing.
    #[error(
        "the answer over whole blocks is missing or answers another question: ask the plan's question"
    )]
    MissingAnswer,
    /// A block at an end, or one of its columns, is missing.
    #[error("block {0} is missing: fetch it and open the columns that the plan names")]
    MissingBlock(u64),
    /// Since the plan was made, rows were appended or corrected, a block was rewritten, or
    /// the table was reopened.
    #[error("the table has changed since the plan was made: plan and ask again")]
    Stale,
}

/// Some columns of a fetched block, verified and decrypted.
pub struct OpenBlock {
    address: Address,
    columns: BTreeMap<Column, Zeroizing<Vec<i64>>>,
}

impl OpenBlock {
    /// The block's number.
    #[must_use]
    pub fn index(&self) -> u64 {
        self.address.index
    }

    /// Whether these columns are open.
    #[must_use]
    pub fn has(&self, columns: &[Column]) -> bool {
        columns.iter().all(|column| self.columns.contains_key(column))
    }

    pub(super) fn item(&self, column: Column, slot: usize) -> Option<i64> {
        self.columns.get(&column)?.get(slot).copied()
    }

    fn sum(&self, kind: Kind, slots: Range<usize>) -> Option<i128> {
        let column = |column| self.columns.get(&column)?.get(slots.clone());
        Some(match kind {
            Kind::Column(a) => column(a)?.iter().map(|x| i128::from(*x)).sum(),
            Kind::Product(a, b) => {
                let pairs = column(a)?.iter().zip(column(b)?);
                pairs.map(|(x, y)| i128::from(*x) * i128::from(*y)).sum()
            }
        })
    }
}

impl Plan {
    /// The question over whole blocks. `None` if the range has no whole block.
    #[must_use]
    pub fn question(&self) -> Option<&Question> {
        self.whole.as_ref()
    }

    /// The blocks to fetch and open, at most two.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.ends
    }
}

impl Owner {
    pub(super) fn plan_term(&self, term: Term, from: u64, to: u64) -> Result<Plan, PlanError> {
        let rows = self.rows();
        if from > to || to > rows {
            return Err(PlanError::Rows { from, to, rows });
        }
        let mut plan =
            Plan { term, from, to, whole: None, ends: Vec::new(), version: self.version() };
        let Term::Sum(kind) = term else { return Ok(plan) };
        let (n, sealed) = (self.block_rows(), self.blocks() * self.block_rows());
        let (first, last) = (from.min(sealed), to.min(sealed));
        let (whole_from, whole_to) = (first.div_ceil(n), last / n);
        if whole_from < whole_to {
            let runs = self.runs_between(whole_from, whole_to);
            let request = Request { kind, runs, weights: Weights::Ones };
            plan.whole = Some(planner::plan(self.manifest.set, request, self.layout.bound(kind))?);
        }
        let mut part = |from: u64, to: u64| {
            let slot = |row: u64| usize::try_from(row - from / n * n).unwrap_or(usize::MAX);
            if from < to {
                let slots = slot(from)..slot(to);
                plan.ends.push(Part { index: from / n, slots, columns: columns(kind) });
            }
        };
        if whole_from > whole_to {
            part(first, last);
        } else {
            part(first, (whole_from * n).min(last));
            part((whole_to * n).max(first), last);
        }
        Ok(plan)
    }

    /// The runs of blocks `from..to`.
    pub(super) fn runs_between(&self, from: u64, to: u64) -> Vec<Run> {
        let cut = |run: &Run| Run { from: run.from.max(from), to: run.to.min(to), ..*run };
        self.runs.iter().map(cut).filter(|run| run.from < run.to).collect()
    }

    /// Verifies and decrypts columns of the fetched block with this number.
    ///
    /// # Errors
    /// [`VerifyError`], whatever is wrong.
    pub fn open_block(
        &self,
        index: u64,
        columns: &[Column],
        bytes: &[u8],
    ) -> Result<OpenBlock, VerifyError> {
        let address = self.address(index).ok_or(VerifyError)?;
        let block = Block::from_bytes(&self.manifest, bytes).map_err(|_| VerifyError)?;
        if block.address() != address {
            return Err(VerifyError);
        }
        let open = |column: &Column| {
            let slots = self.keys.open_column(&self.manifest, &address, &block, *column)?;
            debug_assert!(slots.iter().all(|slot| slot.abs() < ITEM_LIMIT));
            Ok((*column, slots))
        };
        let columns = columns.iter().map(open).collect::<Result<_, VerifyError>>()?;
        Ok(OpenBlock { address, columns })
    }

    /// Adds up a plan's parts into the exact sum, with corrections applied.
    ///
    /// # Errors
    /// [`TotalError`] if a part is missing or belongs to another plan, or if the plan is stale.
    pub fn total<'a>(
        &self,
        plan: &Plan,
        whole: Option<&DecryptedSum>,
        open: impl Fn(u64) -> Option<&'a OpenBlock>,
    ) -> Result<i128, TotalError> {
        self.check_version(plan.version)?;
        let Term::Sum(kind) = plan.term else { return Ok((plan.to - plan.from).into()) };
        let mut total = 0;
        if let Some(question) = &plan.whole {
            let opened = whole.filter(|opened| opened.request == *question.request());
            total += opened.ok_or(TotalError::MissingAnswer)?.slots.iter().sum::<i128>();
        }
        for part in &plan.ends {
            let missing = TotalError::MissingBlock(part.index);
            let block = open(part.index).filter(|block| self.is_current_block(block, part.index));
            let block = block.ok_or(missing)?;
            total += block.sum(kind, part.slots.clone()).ok_or(missing)?;
        }
        let of = |row: &Row| self.layout.row_value(kind, row);
        total += self.tail_between(plan.from, plan.to).iter().map(of).sum::<i128>();
        let corrected = self.exceptions.range(plan.from..plan.to);
        total += corrected.map(|(_, (old, new))| of(new) - of(old)).sum::<i128>();
        Ok(total)
    }

    /// Whether an opened block is the current block of this number. A block opened before its
    /// rewrite is not.
    pub(super) fn is_current_block(&self, block: &OpenBlock, index: u64) -> bool {
        block.address.index == index && self.address(index) == Some(block.address)
    }

    /// Checks that the state has not changed since the plan was made. Otherwise the current
    /// tail and corrections would be added to answers about an older state.
    pub(super) fn check_version(&self, version: Version) -> Result<(), TotalError> {
        if version == self.version() { Ok(()) } else { Err(TotalError::Stale) }
    }

    pub(super) fn tail_between(&self, from: u64, to: u64) -> &[Row] {
        let sealed = self.blocks() * self.block_rows();
        let at = |row: u64| usize::try_from(row.saturating_sub(sealed)).unwrap_or(usize::MAX);
        self.tail.get(at(from)..at(to)).unwrap_or_default()
    }
}

fn columns(kind: Kind) -> Vec<Column> {
    match kind {
        Kind::Product(a, b) if a != b => vec![a, b],
        Kind::Column(a) | Kind::Product(a, _) => vec![a],
    }
}
