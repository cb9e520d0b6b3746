//! A disk that fails when the seed says so, and old copies of it.

use alpheus_encrypted_stream::ledger::{Change, Ledger, LedgerError};

use crate::world::Memory;

/// Copies of a disk that are kept, of all that it ever was.
pub const COPIES: usize = 20;

/// A disk whose commits may not survive: told beforehand how the next one goes.
#[derive(Default)]
pub struct Disk {
    pub memory: Memory,
    pub fate: Fate,
    copies: Vec<Memory>,
}

/// What becomes of the next commit.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Fate {
    #[default]
    Durable,
    /// Power fails before it is on the disk.
    Lost,
    /// Power fails just after.
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
    /// Keeps a copy of what is there now, if need be in place of the copy `at`.
    pub fn keep_copy(&mut self, at: usize) {
        if self.copies.len() < COPIES {
            self.copies.push(self.memory.clone());
        } else if let Some(older) = self.copies.get_mut(at) {
            *older = self.memory.clone();
        }
    }

    /// Puts an old copy in place of what is there.
    pub fn bring_back(&mut self, at: usize) {
        if !self.copies.is_empty() {
            self.memory = self.copies[at % self.copies.len()].clone();
        }
    }
}
