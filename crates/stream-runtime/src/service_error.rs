//! Why the service stops.

use crate::engine_kind::EngineKind;
use alpheus_crypto::ledger::LedgerError;
use alpheus_encrypted_stream::transformer::PlanMismatchError;
use alpheus_transport::Error;
use thiserror::Error;

/// Why the service stops.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// The log or the state store.
    #[error(transparent)]
    Store(#[from] Error),
    /// Records could not be written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A plan of another schema, or with windows that are no multiples of the tick.
    #[error(transparent)]
    Mismatch(#[from] PlanMismatchError),
    /// The stored state cannot be read.
    #[error(
        "the service's stored {what} cannot be read; restore the state folder from a backup, or start with a new --state folder"
    )]
    Damaged {
        /// What.
        what: &'static str,
    },
    /// Running plans belong to another engine, which alone has their sums.
    #[error(
        "plans are running under the engine {before}, not {asked}: drop their queries with that engine, or start with a new --state folder"
    )]
    OtherEngine {
        /// The engine that runs them.
        before: EngineKind,
        /// The requested engine.
        asked: EngineKind,
    },
    /// A row cannot be written as JSON.
    #[error(transparent)]
    Row(#[from] serde_json::Error),
}
