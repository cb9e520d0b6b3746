//! Why a controller does not come back from a ledger.

use alpheus_policy::ids::PlanId;
use alpheus_policy::time::Timestamp;

use crate::ledger::UnreadableRecord;

impl RestoreError {
    pub(crate) fn of(position: usize, unreadable: UnreadableRecord) -> Self {
        match unreadable {
            UnreadableRecord::Version(found) => Self::OtherFormat { position, found },
            UnreadableRecord::Damaged => Self::BadRecord { position },
        }
    }
}

/// Why a controller does not start from what it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// Keys without a ledger: what they released is unknown.
    #[error(
        "there are keys but no ledger; restore the ledger, or make new keys and a new ledger together"
    )]
    NoLedger,
    /// The ledger belongs to another controller.
    #[error("the ledger belongs to another controller")]
    OtherController,
    /// A record was written by another version of the program.
    #[error(
        "record {position} of the ledger has format {found}, and this version reads another: use the version that wrote it"
    )]
    OtherFormat {
        /// Position in what was given.
        position: usize,
        /// Its format.
        found: u8,
    },
    /// A record cannot be read.
    #[error("record {position} of the ledger cannot be read; restore a whole copy")]
    BadRecord {
        /// Position in what was given.
        position: usize,
    },
    /// A plan in the ledger no longer checks out.
    #[error("plan {plan} of the ledger does not check out under this deployment and identity")]
    Plan {
        /// The plan.
        plan: PlanId,
    },
    /// The stored clock lies after the given time by more than a step.
    #[error("the ledger's clock {ledger:?} is ahead of the given time; set the clock right")]
    ClockBehind {
        /// The ledger's.
        ledger: Timestamp,
    },
}
