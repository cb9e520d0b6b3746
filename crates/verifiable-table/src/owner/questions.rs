//! A statistic's sum over any rows, in parts: whole blocks by the server, blocks at the
//! ends fetched and added up here, the tail and corrections at hand.

use super::{Owner, Version};
use crate::error::{Refusal, Rejected};
use crate::label::{Address, Column, Kind};
use crate::layout::{Row, Term};
use crate::messages::{Block, Request, Run, Weights};
use crate::planner::{self, Question};
use crate::ring::ITEM_LIMIT;
use crate::verifier::Opened;
use std::collections::BTreeMap;
use std::ops::Range;
use zeroize::Zeroizing;

/// How a sum over rows is put together.
#[derive(Debug)]
pub struct Plan {
    term: Term,
    pub(super) from: u64,
    pub(super) to: u64,
    whole: Option<Question>,
    ends: Vec<Part>,
    pub(super) version: Version,
}

/// A part of a block that is not asked for as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The block.
    pub index: u64,
    /// Which of its slots.
    pub slots: Range<usize>,
    /// Which of its columns.
    pub columns: Vec<Column>,
}

/// A part that a plan asks for was not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// The answer to its question.
    #[error(
        "the answer over whole blocks is missing, or answers another question: ask the plan's own"
    )]
    Answer,
    /// A fetched block, or one of its columns.
    #[error("block {0} was not fetched and opened with the columns that the plan names")]
    Block(u64),
    /// Rows were appended or corrected, or a block was written anew, or the table was
    /// opened anew, since the plan was made.
    #[error("the table has changed since the plan was made: plan anew, and ask again")]
    Stale,
}

/// A fetched block, verified and decrypted, some of its columns.
pub struct OpenBlock {
    address: Address,
    columns: BTreeMap<Column, Zeroizing<Vec<i64>>>,
}

impl OpenBlock {
    /// Which block it is.
    #[must_use]
    pub fn index(&self) -> u64 {
        self.address.index
    }

    /// Whether it has been opened with these columns.
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
    /// What to ask the server for, over whole blocks; none if there are none.
    #[must_use]
    pub fn question(&self) -> Option<&Question> {
        self.whole.as_ref()
    }

    /// Which blocks to fetch and open, at most two.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.ends
    }
}

impl Owner {
    pub(super) fn plan_term(&self, term: Term, from: u64, to: u64) -> Result<Plan, Refusal> {
        let rows = self.rows();
        if from > to || to > rows {
            return Err(Refusal::Rows { from, to, rows });
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

    /// Where blocks `from` to `to` stand.
    pub(super) fn runs_between(&self, from: u64, to: u64) -> Vec<Run> {
        let cut = |run: &Run| Run { from: run.from.max(from), to: run.to.min(to), ..*run };
        self.runs.iter().map(cut).filter(|run| run.from < run.to).collect()
    }

    /// Verifies and decrypts columns of a block that the server was asked for by its
    /// number.
    ///
    /// # Errors
    /// [`Rejected`], whatever is wrong.
    pub fn open_block(
        &self,
        index: u64,
        columns: &[Column],
        bytes: &[u8],
    ) -> Result<OpenBlock, Rejected> {
        let address = self.address(index).ok_or(Rejected)?;
        let block = Block::from_bytes(&self.manifest, bytes).map_err(|_| Rejected)?;
        if block.address() != address {
            return Err(Rejected);
        }
        let open = |column: &Column| {
            let slots = self.keys.open_column(&self.manifest, &address, &block, *column)?;
            debug_assert!(slots.iter().all(|slot| slot.abs() < ITEM_LIMIT));
            Ok((*column, slots))
        };
        let columns = columns.iter().map(open).collect::<Result<_, Rejected>>()?;
        Ok(OpenBlock { address, columns })
    }

    /// Puts a plan's parts together: the exact sum, corrections applied.
    ///
    /// # Errors
    /// [`Missing`] if a part lacks or belongs to another plan, or the plan to an earlier
    /// state.
    pub fn total<'a>(
        &self,
        plan: &Plan,
        whole: Option<&Opened>,
        open: impl Fn(u64) -> Option<&'a OpenBlock>,
    ) -> Result<i128, Missing> {
        self.current(plan.version)?;
        let Term::Sum(kind) = plan.term else { return Ok((plan.to - plan.from).into()) };
        let mut total = 0;
        if let Some(question) = &plan.whole {
            let opened = whole.filter(|opened| opened.request == *question.request());
            total += opened.ok_or(Missing::Answer)?.slots.iter().sum::<i128>();
        }
        for part in &plan.ends {
            let missing = Missing::Block(part.index);
            let block = open(part.index).filter(|block| self.holds(block, part.index));
            let block = block.ok_or(missing)?;
            total += block.sum(kind, part.slots.clone()).ok_or(missing)?;
        }
        let of = |row: &Row| self.layout.of_row(kind, row);
        total += self.tail_between(plan.from, plan.to).iter().map(of).sum::<i128>();
        let corrected = self.exceptions.range(plan.from..plan.to);
        total += corrected.map(|(_, (old, new))| of(new) - of(old)).sum::<i128>();
        Ok(total)
    }

    /// Whether an opened block is the one of that number as it stands now: one that was
    /// opened before it was written anew is not.
    pub(super) fn holds(&self, block: &OpenBlock, index: u64) -> bool {
        block.address.index == index && self.address(index) == Some(block.address)
    }

    /// A plan's questions and ends are those of the state that it was made for; tail and
    /// corrections would be added as they are now.
    pub(super) fn current(&self, version: Version) -> Result<(), Missing> {
        if version == self.version() { Ok(()) } else { Err(Missing::Stale) }
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
