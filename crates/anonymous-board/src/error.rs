//! Why something was refused: one name for each rule. No name holds a value that
//! the other side does not know already.

use crate::admission::NotAdmitted;
use crate::dpf::generate::NotGenerated;
use crate::envelope::BadEnvelope;
use crate::row::TooLong;
use alpheus_crypto::ledger::DamagedLog;
use alpheus_crypto::seal::BadSealingKey;

/// Why a database does not take a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Another epoch is open, or none.
    #[error("the write is for an epoch that is not open here; write in the one that is")]
    Epoch,
    /// Mode 2: this server has not heard yet that all others have begun the epoch.
    #[error("not all servers have begun the epoch yet; send the same write again in a moment")]
    Beginning,
    /// The epoch has closed.
    #[error("the epoch has closed; write in the next one")]
    Late,
    /// As many writes are in as the board takes.
    #[error("the epoch is full; write in the next one")]
    Full,
    /// The epoch is burnt.
    #[error("the epoch is burnt; write in the next one")]
    Burnt,
    /// The ticket entitles to nothing.
    #[error(transparent)]
    NotAdmitted(#[from] NotAdmitted),
    /// The quota was spent on another write of this epoch.
    #[error("this quota is spent in this epoch by another write; one epoch, one write")]
    Spent,
    /// The same key was sent in another envelope.
    #[error("the write's key was sent before in another envelope")]
    Replayed,
    /// The envelope holds nothing that counts.
    #[error(transparent)]
    Envelope(#[from] BadEnvelope),
    /// No other database said that it has this write.
    #[error("no other database listed this write when it closed")]
    NotListed,
}

/// Why a writer makes no write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotWritten {
    /// Not all databases have begun the epoch.
    #[error("the epoch's keys are not all there; ask the databases again")]
    NotBegun,
    /// The message does not fit.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// A database's key for envelopes is none.
    #[error("a database's key is unusable: {0}")]
    Key(#[from] BadSealingKey),
    /// No key came out.
    #[error(transparent)]
    NotGenerated(#[from] NotGenerated),
}

/// Why a server does not come back from its ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRestored {
    /// The ledger is not what it is said to be, or holds what this board cannot.
    #[error(transparent)]
    Ledger(#[from] DamagedLog),
    /// The signing key is not the one in the board's configuration.
    #[error("the signing key is not the one that the board's configuration has for this server")]
    OtherKey,
}
