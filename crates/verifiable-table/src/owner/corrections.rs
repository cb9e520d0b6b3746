//! Corrections: kept by the owner beside a block, until the block is written anew in an
//! epoch of its own.

use super::{AppendError, OpenBlock, Owner, records};
use crate::label::{Address, Column, Label};
use crate::layout::Row;
use crate::ledger::{Change, Step, Uncommitted};
use crate::messages::Block;
use rand_core::CryptoRng;

/// A correction that cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CorrectError {
    /// The new cells do not fit the columns.
    #[error(transparent)]
    Row(#[from] AppendError),
    /// There is no such row.
    #[error("row {row} is to be corrected, the table has {rows}")]
    NoRow {
        /// The row.
        row: u64,
        /// Rows of the table.
        rows: u64,
    },
    /// What the block holds must be known, with all of its columns.
    #[error("block {0} must be fetched and opened with all its columns first, as it stands now")]
    Closed(u64),
    /// Every epoch of this start has been used.
    #[error(
        "this start has written as many blocks anew as it can: open the table anew, which begins another segment"
    )]
    Epochs,
    /// An earlier change was not stored.
    #[error(transparent)]
    Uncommitted(#[from] Uncommitted),
}

impl Owner {
    /// All columns of ciphertexts, as correcting takes them.
    #[must_use]
    pub fn all_columns(&self) -> Vec<Column> {
        (0..self.manifest.columns).map(Column).collect()
    }

    /// Replaces a row. One in a sealed block becomes an exception that the owner keeps;
    /// `block` is that block, opened with all columns.
    ///
    /// # Errors
    /// [`CorrectError`].
    pub fn correct(
        &mut self,
        row: u64,
        cells: Row,
        block: Option<&OpenBlock>,
    ) -> Result<Step<()>, CorrectError> {
        self.pending.check()?;
        self.check_row(0, &cells)?;
        let (rows, n) = (self.rows(), self.block_rows());
        if row >= rows {
            return Err(CorrectError::NoRow { row, rows });
        }
        let sealed = self.blocks() * n;
        if row >= sealed {
            return Ok(self.correct_tail(row, cells, sealed));
        }
        let index = row / n;
        let slot = usize::try_from(row % n).unwrap_or(usize::MAX);
        let block = block.filter(|block| self.holds(block, index));
        let block = block.ok_or(CorrectError::Closed(index))?;
        let old = self.held(block, slot).ok_or(CorrectError::Closed(index))?;
        let exception = (old, cells);
        let change = Self::exception_record(row, &exception);
        self.exceptions.insert(row, exception);
        Ok(self.step(vec![change], ()))
    }

    fn correct_tail(&mut self, row: u64, cells: Row, sealed: u64) -> Step<()> {
        let at = |row: u64| usize::try_from(row - sealed).unwrap_or(usize::MAX);
        if let Some(old) = self.tail.get_mut(at(row)) {
            *old = cells;
        }
        // The record that holds the row is written anew.
        let first = self.chunks.range(..=row).next_back().copied().unwrap_or(sealed);
        let next = self.chunks.range(row + 1..).next().copied().unwrap_or_else(|| self.rows());
        let rows = self.tail.get(at(first)..at(next)).unwrap_or_default();
        let record = super::chunk_record(first, rows);
        self.step(vec![record], ())
    }

    /// The row that a block holds in a slot, corrections left out.
    fn held(&self, block: &OpenBlock, slot: usize) -> Option<Row> {
        let items: Option<Vec<i64>> =
            (0..self.manifest.columns).map(|column| block.item(Column(column), slot)).collect();
        let items = items?;
        Some(self.layout.row(|column| items.get(usize::from(column.0)).copied().unwrap_or(0)))
    }

    /// Writes a block anew in an epoch of its own, corrections applied, all its products
    /// tagged again. Older copies of the ledger know the old block only: let the server
    /// drop it when none of them is kept.
    ///
    /// # Errors
    /// [`CorrectError::Closed`], [`CorrectError::Epochs`], [`CorrectError::Uncommitted`].
    pub fn rewrite(
        &mut self,
        block: &OpenBlock,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Block>, CorrectError> {
        let index = block.index();
        self.write_anew(block, rng, |owner| owner.new_epoch(index))
    }

    /// Seals an opened block again under a label that `label` gives, once all else is fine.
    pub(super) fn write_anew(
        &mut self,
        block: &OpenBlock,
        rng: &mut impl CryptoRng,
        label: impl FnOnce(&mut Self) -> Option<Label>,
    ) -> Result<Step<Block>, CorrectError> {
        self.pending.check()?;
        let (index, n) = (block.index(), self.keys.ring.degree());
        if !self.holds(block, index) {
            return Err(CorrectError::Closed(index));
        }
        let first = index * self.block_rows();
        let rows: Option<Vec<Row>> = (0..n)
            .map(|slot| match self.exceptions.get(&(first + slot as u64)) {
                Some((_, new)) => Some(new.clone()),
                None => self.held(block, slot),
            })
            .collect();
        let rows = rows.ok_or(CorrectError::Closed(index))?;
        let label = label(self).ok_or(CorrectError::Epochs)?;
        self.place(&label.0);
        let sealed = self.seal(label, &rows, rng);
        let mut changes = vec![self.outgoing(&sealed), self.runs_record()];
        let last = first + self.block_rows();
        for row in self.exceptions.extract_if(first..last, |_, _| true).map(|(row, _)| row) {
            changes.push(Change::remove(records::key(records::EXCEPTION, &row.to_be_bytes())));
        }
        Ok(self.step(changes, sealed))
    }

    /// The label of a block that is written anew: of this start's next epoch.
    /// None if there is none left: epoch 0 again could be a label again.
    fn new_epoch(&mut self, index: u64) -> Option<Label> {
        self.epochs = self.epochs.checked_add(1)?;
        Some(Label(Address { segment: self.segment, epoch: self.epochs, index }))
    }
}
