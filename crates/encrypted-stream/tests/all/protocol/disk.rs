//! A disk that fails when the seed says so, and old copies of it.

use alpheus_encrypted_stream::ledger::{Change, Ledger, LedgerError};

use crate::protocol::world::Memory;

/// Number of copies kept, from the disk's whole history.
pub const COPIES: usize = 20;

/// A disk whose commits may not survive. `fate` decides about the next commit.
#[derive(Default)]
pub struct Disk {
    pub memory: Memory,
    pub fate: Fate,
    copies: Vec<Memory>,
}

/// The fate of the next commit.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Fate {
    #[default]
    Durable,
    /// Power fails before it is on disk.
    Lost,
    /// Power fails right after.
    Kept,
}

impl Ledger for Disk {
    fn commit(&mut self, changes: &[Change]) -> Result<(), LedgerError> {
        if self.fate == Fate::Lost {
            return Err(LedgerError);
        }
        self.memory.commit(changes)?;
        if self.fate == Fate::Kept { Err(LedgerError) } else { Ok(()) }
    }
}

impl Disk {
    /// Keeps a copy of the present content, replacing the copy `at` if necessary.
    pub fn keep_copy(&mut self, at: usize) {
        if self.copies.len() < COPIES {
            self.copies.push(self.memory.clone());
        } else if let Some(older) = self.copies.get_mut(at) {
            *older = self.memory.clone();
        }
    }

    /// Replaces the content by an old copy.
    pub fn bring_back(&mut self, at: usize) {
        if !self.copies.is_empty() {
            self.memory = self.copies[at % self.copies.len()].clone();
        }
    }
}
