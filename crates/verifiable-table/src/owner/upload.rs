//! Seals rows into blocks, each under labels of its own.

use super::{Owner, chunk_record, random, records};
use crate::label::{Address, Column, Kind, Label};
use crate::layout::Row;
use crate::ledger::{PendingStep, UncommittedError};
use crate::messages::{Block, BlockWriter, Run};
use alpheus_crypto::ledger::Change;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// Rows that cannot be appended. None of the batch was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The number of cells is wrong.
    #[error(
        "row {row} has {actual} cells, but the table has {expected} columns: give one cell for each column"
    )]
    Cells {
        /// The row, counted from the first of the batch.
        row: usize,
        /// Its cells.
        actual: usize,
        /// The table's columns.
        expected: usize,
    },
    /// A value is out of the column's bounds.
    #[error(
        "row {row}, column {column}: the value is out of the bounds {min} to {max} that the schema declares; correct it, or create a new table with wider bounds"
    )]
    Bounds {
        /// The row, counted from the first of the batch.
        row: usize,
        /// The column.
        column: usize,
        /// The smallest allowed value.
        min: i64,
        /// The largest allowed value.
        max: i64,
    },
    /// A cell of a column that is not optional is empty.
    #[error(
        "row {row}, column {column}: the cell is empty; fill it, or declare the column optional in a new table"
    )]
    Empty {
        /// The row, counted from the first of the batch.
        row: usize,
        /// The column.
        column: usize,
    },
    /// An earlier change was not stored.
    #[error(transparent)]
    Uncommitted(#[from] UncommittedError),
}

impl Owner {
    /// Appends rows and seals full blocks. The step releases the blocks once their labels,
    /// their exact bytes and the new tail are durable. Send each block until the server has
    /// it, then call [`Owner::acknowledge`].
    ///
    /// # Errors
    /// [`AppendError`]. No row was appended.
    pub fn append(
        &mut self,
        rows: &[Row],
        rng: &mut impl CryptoRng,
    ) -> Result<PendingStep<Vec<Block>>, AppendError> {
        self.guard.check()?;
        rows.iter().enumerate().try_for_each(|(at, row)| self.check_row(at, row))?;
        let (mut changes, mut blocks) = (Vec::new(), Vec::new());
        let (size, before) = (self.keys.ring.degree(), self.rows());
        if self.tail.len() + rows.len() < size {
            if !rows.is_empty() {
                self.chunks.insert(before);
                changes.push(chunk_record(before, rows));
            }
            self.tail.extend_from_slice(rows);
            return Ok(self.step(changes, blocks));
        }
        let all = [std::mem::take(&mut self.tail).as_slice(), rows].concat();
        let (full, rest) = all.split_at(all.len() / size * size);
        for rows in full.chunks_exact(size) {
            let label = self.next_label();
            let block = self.seal(label, rows, rng);
            changes.push(self.outbox_record(&block));
            blocks.push(block);
        }
        for first in std::mem::take(&mut self.chunks) {
            changes.push(Change::remove(records::key(records::TAIL, &first.to_be_bytes())));
        }
        if !rest.is_empty() {
            let first = self.blocks() * self.block_rows();
            self.chunks.insert(first);
            changes.push(chunk_record(first, rest));
        }
        self.tail = rest.to_vec();
        changes.push(self.runs_record());
        Ok(self.step(changes, blocks))
    }

    /// Checks a row against the columns.
    pub(super) fn check_row(&self, row: usize, cells: &[Option<i64>]) -> Result<(), AppendError> {
        let declared = self.layout.declarations();
        if cells.len() != declared.len() {
            return Err(AppendError::Cells { row, actual: cells.len(), expected: declared.len() });
        }
        for (column, (cell, declared)) in cells.iter().zip(declared).enumerate() {
            let (min, max) = (declared.min, declared.max);
            match cell {
                None if !declared.optional => return Err(AppendError::Empty { row, column }),
                Some(x) if *x < min || *x > max => {
                    return Err(AppendError::Bounds { row, column, min, max });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The label of the next block. A start uses each number once, and has its own segment.
    fn next_label(&mut self) -> Label {
        let (segment, index) = (self.segment, self.blocks());
        match self.runs.last_mut() {
            Some(run) if run.segment == segment && run.epoch == 0 => run.to += 1,
            _ => self.runs.push(Run { segment, epoch: 0, from: index, to: index + 1 }),
        }
        Label(Address { segment, epoch: 0, index })
    }

    /// Encrypts and tags a block. Consumes the label.
    pub(super) fn seal(
        &self,
        Label(address): Label,
        rows: &[Row],
        rng: &mut impl CryptoRng,
    ) -> Block {
        let ring = self.keys.ring;
        let mut writer = BlockWriter::new(&self.manifest, &address);
        let (mut seeds, mut ciphertexts) = (Vec::new(), Vec::new());
        for column in (0..self.manifest.columns).map(Column) {
            let items = rows.iter().map(|row| self.layout.item(column, row));
            let slots = Zeroizing::new(items.collect::<Vec<i64>>());
            let kind = Kind::Column(column);
            let (seed, ciphertext) = self.keys.encrypt(&address, kind, &slots, &random(rng));
            seeds.push(seed);
            ciphertexts.push(ciphertext);
        }
        let (tags, products) = self.keys.tags(&address, &ciphertexts, &self.manifest.products);
        for ((seed, ciphertext), tag) in seeds.iter().zip(&ciphertexts).zip(&tags) {
            writer.column(ring, seed, &ciphertext.0[0], tag);
        }
        products.iter().for_each(|tag| writer.tag(ring, tag));
        Block::sealed(address, writer)
    }

    /// The change that stores a block's exact bytes until it is acknowledged.
    pub(super) fn outbox_record(&mut self, block: &Block) -> Change {
        self.outbox.insert(block.address());
        Change::put(records::address_key(&block.address()), block.as_bytes().to_vec())
    }

    /// Blocks that the server has not acknowledged. The ledger has their exact bytes under
    /// [`Owner::outbox_key`]. Send these again; a block is never recreated.
    pub fn outbox(&self) -> impl Iterator<Item = &Address> {
        self.outbox.iter()
    }

    /// The ledger key of a block that is not acknowledged.
    #[must_use]
    pub fn outbox_key(address: &Address) -> Vec<u8> {
        records::address_key(address)
    }

    /// Records that the server has stored a block durably.
    ///
    /// # Errors
    /// [`UncommittedError`].
    pub fn acknowledge(&mut self, address: &Address) -> Result<PendingStep<()>, UncommittedError> {
        self.guard.check()?;
        self.outbox.remove(address);
        let changes = vec![Change::remove(records::address_key(address))];
        Ok(PendingStep::new(changes, (), &self.guard))
    }
}
