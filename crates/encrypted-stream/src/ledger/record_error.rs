//! Why a record cannot be read.

use super::records::VERSION;
use crate::error::RestoreError;

/// Why a stored value cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Written by another version of the program.
    #[error("the ledger record has format {0}, but this version reads format {VERSION}")]
    Version(u8),
    /// Truncated, too long, or not a record.
    #[error("the value is not a ledger record")]
    Damaged,
}

impl RecordError {
    /// Why a role cannot be restored, whose ledger has the record at this position.
    pub(crate) fn at(self, position: usize) -> RestoreError {
        match self {
            RecordError::Version(found) => RestoreError::OtherFormat { position, found },
            RecordError::Damaged => RestoreError::BadRecord { position },
        }
    }
}
