//! What shows after a restart whether a ledger is the latest.

use alpheus_time::Timestamp;
use serde::{Deserialize, Serialize};

/// Stored apart from the ledger, in another place. After a restart it shows whether the
/// ledger is the latest. Make it durable after a commit and before that commit's messages
/// are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fence {
    /// The ledger's sequence number.
    pub sequence: u64,
    /// The number of the start since which the ledger was written, 0 before the first. Two histories
    /// that continue from one copy can be equally long; their starts differ.
    pub start: u64,
    /// The controller's clock.
    pub clock: Timestamp,
    /// When the ledger was last restored without being known as the latest. Sequence
    /// numbers of the history before that, however high, mean nothing for the one since.
    pub restored: Option<Timestamp>,
}

/// A start of a controller from its ledger.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Drawn at random for this start, not 0.
    pub number: u64,
    /// What is stored apart from the ledger, if anything.
    pub fence: Option<Fence>,
}
