//! Corrections: kept by the owner until their block is rewritten in an epoch of its own.

use super::{AppendError, OpenBlock, Owner, records};
use crate::label::{Address, Column, Label};
use crate::layout::Row;
use crate::ledger::{PendingStep, UncommittedError};
use crate::messages::Block;
use alpheus_crypto::ledger::Change;
use rand_core::CryptoRng;

/// A correction that cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CorrectError {
    /// The new cells do not match the columns.
    #[error(transparent)]
    Row(#[from] AppendError),
    /// The row does not exist.
    #[error("row {row} does not exist: the table has {rows} rows, counted from 0")]
    NoRow {
        /// The row.
        row: u64,
        /// Rows of the table.
        rows: u64,
    },
    /// The current block was not opened with all its columns.
    #[error("block {0} is not open: fetch its current version and open all its columns first")]
    NotOpen(u64),
    /// This start has used every epoch.
    #[error(
        "this start can rewrite no more blocks: reopen the table, which begins another segment"
    )]
    Epochs,
    /// An earlier change was not stored.
    #[error(transparent)]
    Uncommitted(#[from] UncommittedError),
}

impl Owner {
    /// All ciphertext columns, as [`Owner::correct`] needs them.
    #[must_use]
    pub fn all_columns(&self) -> Vec<Column> {
        (0..self.manifest.columns).map(Column).collect()
    }

    /// Replaces a row. For a row in a sealed block, the owner keeps the correction as an
    /// exception, and `block` must be that block, opened with all columns.
    ///
    /// # Errors
    /// [`CorrectError`].
    pub fn correct(
        &mut self,
        row: u64,
        cells: Row,
        block: Option<&OpenBlock>,
    ) -> Result<PendingStep<()>, CorrectError> {
        self.guard.check()?;
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
        let block = block.filter(|block| self.is_current_block(block, index));
        let block = block.ok_or(CorrectError::NotOpen(index))?;
        let old = self.stored_row(block, slot).ok_or(CorrectError::NotOpen(index))?;
        let exception = (old, cells);
        let change = Self::exception_record(row, &exception);
        self.exceptions.insert(row, exception);
        Ok(self.step(vec![change], ()))
    }

    fn correct_tail(&mut self, row: u64, cells: Row, sealed: u64) -> PendingStep<()> {
        let at = |row: u64| usize::try_from(row - sealed).unwrap_or(usize::MAX);
        if let Some(old) = self.tail.get_mut(at(row)) {
            *old = cells;
        }
        // Rewrites the record that holds the row.
        let first = self.chunks.range(..=row).next_back().copied().unwrap_or(sealed);
        let next = self.chunks.range(row + 1..).next().copied().unwrap_or_else(|| self.rows());
        let rows = self.tail.get(at(first)..at(next)).unwrap_or_default();
        let record = super::chunk_record(first, rows);
        self.step(vec![record], ())
    }

    /// The row in a slot of a block, without corrections.
    fn stored_row(&self, block: &OpenBlock, slot: usize) -> Option<Row> {
        let items: Option<Vec<i64>> =
            (0..self.manifest.columns).map(|column| block.item(Column(column), slot)).collect();
        let items = items?;
        Some(self.layout.row(|column| items.get(usize::from(column.0)).copied().unwrap_or(0)))
    }

    /// The rows of a block that was opened with all columns, with corrections applied. `None` if it
    /// is not the current one of its number.
    #[must_use]
    pub fn rows_of(&self, block: &OpenBlock) -> Option<Vec<Row>> {
        let (index, n) = (block.index(), self.keys.ring.degree());
        if !self.is_current_block(block, index) {
            return None;
        }
        let first = index * self.block_rows();
        let rows = (0..n).map(|slot| match self.exceptions.get(&(first + slot as u64)) {
            Some((_, new)) => Some(new.clone()),
            None => self.stored_row(block, slot),
        });
        rows.collect()
    }

    /// Rewrites a block in an epoch of its own, with corrections applied and new tags. Older
    /// copies of the ledger know only the old block: delete it from the server once no such
    /// copy is kept.
    ///
    /// # Errors
    /// [`CorrectError::NotOpen`], [`CorrectError::Epochs`], [`CorrectError::Uncommitted`].
    pub fn rewrite(
        &mut self,
        block: &OpenBlock,
        rng: &mut impl CryptoRng,
    ) -> Result<PendingStep<Block>, CorrectError> {
        let index = block.index();
        self.reseal(block, rng, |owner| owner.next_epoch_label(index))
    }

    /// Seals an opened block under the label that `label` returns. Calls `label` only after
    /// all checks.
    pub(super) fn reseal(
        &mut self,
        block: &OpenBlock,
        rng: &mut impl CryptoRng,
        label: impl FnOnce(&mut Self) -> Option<Label>,
    ) -> Result<PendingStep<Block>, CorrectError> {
        self.guard.check()?;
        let index = block.index();
        let first = index * self.block_rows();
        let rows = self.rows_of(block).ok_or(CorrectError::NotOpen(index))?;
        let label = label(self).ok_or(CorrectError::Epochs)?;
        self.insert_block(&label.0);
        let sealed = self.seal(label, &rows, rng);
        let mut changes = vec![self.outbox_record(&sealed), self.runs_record()];
        let last = first + self.block_rows();
        for row in self.exceptions.extract_if(first..last, |_, _| true).map(|(row, _)| row) {
            changes.push(Change::remove(records::key(records::EXCEPTION, &row.to_be_bytes())));
        }
        Ok(self.step(changes, sealed))
    }

    /// A label of this start's next epoch, for a rewritten block. `None` if no epoch is left:
    /// wrapping around to epoch 0 could reuse a label.
    fn next_epoch_label(&mut self, index: u64) -> Option<Label> {
        self.epochs = self.epochs.checked_add(1)?;
        Some(Label(Address { segment: self.segment, epoch: self.epochs, index }))
    }
}
