//! Why a request is rejected: one variant for each rule. No variant holds a value that the other
//! side does not know already.

use crate::admission::AdmissionError;
use crate::dpf::generate::GenerationError;
use crate::envelope::EnvelopeError;
use crate::row::MessageLengthError;
use alpheus_crypto::ledger::DamagedLedgerError;
use alpheus_crypto::seal::SealingKeyError;

/// Why a database rejects a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmissionError {
    /// That epoch is not open.
    #[error("the write is for an epoch that is not open here; write in the open one")]
    Epoch,
    /// Mode 2: this server does not know yet that all others have begun the epoch.
    #[error("not all servers have begun the epoch yet; send the same write again shortly")]
    Beginning,
    /// The epoch has closed.
    #[error("the epoch is closed; write in the next one")]
    Late,
    /// The epoch has as many writes as the board accepts.
    #[error("the epoch is full; write in the next one")]
    Full,
    /// The epoch is burnt.
    #[error("the epoch is burnt; write in the next one")]
    Burnt,
    /// The ticket is invalid.
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    /// Another write of this epoch has spent the quota.
    #[error("another write has spent this quota; each quota allows one write per epoch")]
    Spent,
    /// The same key arrived in another envelope.
    #[error("the write's key has already arrived in another envelope; make a new write")]
    Replayed,
    /// The envelope is invalid.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// No other database listed this write.
    #[error("no other database listed this write when it closed the epoch")]
    NotListed,
}

/// Why a writer cannot make a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// Not all databases have begun the epoch.
    #[error("not all databases have published their keys for the epoch; ask them again")]
    NotBegun,
    /// The message does not fit.
    #[error(transparent)]
    Message(#[from] MessageLengthError),
    /// A database's sealing key is invalid.
    #[error("a database's key is unusable: {0}")]
    Key(#[from] SealingKeyError),
    /// The keys could not be generated.
    #[error(transparent)]
    Generation(#[from] GenerationError),
}

/// Why a server cannot be restored from its ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The ledger does not match its declared state, or holds records that do not fit this board.
    #[error(transparent)]
    Ledger(#[from] DamagedLedgerError),
    /// The signing key is not the one in the board's configuration.
    #[error("the signing key is not this server's key in the board's configuration")]
    OtherKey,
}
