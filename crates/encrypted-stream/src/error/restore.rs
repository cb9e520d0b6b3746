//! Why a role cannot be restored from its ledger.

use alpheus_policy::ids::PlanId;
use alpheus_time::Timestamp;

/// Why a role cannot be restored from its ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// Keys without a ledger: what they released is unknown.
    #[error(
        "there are keys but no ledger; restore the ledger, or create new keys and a new ledger together"
    )]
    NoLedger,
    /// The ledger belongs to another controller.
    #[error("the ledger belongs to another controller")]
    OtherController,
    /// A record was written by another version of the program.
    #[error(
        "record {position} of the ledger has format {found}, which this version does not read; use the version that wrote it"
    )]
    OtherFormat {
        /// Position among the values.
        position: usize,
        /// Its format.
        found: u8,
    },
    /// A record cannot be read.
    #[error("record {position} of the ledger cannot be read; restore a complete copy")]
    BadRecord {
        /// Position among the values.
        position: usize,
    },
    /// A plan in the ledger is no longer valid.
    #[error("plan {plan} of the ledger is not valid under this deployment and identity")]
    Plan {
        /// The plan.
        plan: PlanId,
    },
    /// The stored clock is ahead of the given time by more than a step.
    #[error("the ledger's clock {ledger:?} is ahead of the given time; set the clock right")]
    ClockBehind {
        /// The ledger's.
        ledger: Timestamp,
    },
}
