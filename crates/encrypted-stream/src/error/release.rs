//! Why a window was not released.

use serde::{Deserialize, Serialize};

use super::WindowRefusalError;

/// Why the proofs of a bounded window were not checked. It says nothing of any member.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    thiserror::Error,
)]
pub enum UncheckedProofsError {
    /// Those of other windows fill the queue.
    #[error(
        "too many proofs were waiting; ask for fewer or longer windows, or run the service on more cores"
    )]
    QueueFull,
    /// The check took too long.
    #[error("the check did not end in time; run the service on more cores")]
    Late,
    /// The check broke off.
    #[error("the check crashed, which is a bug; the service's log says where")]
    Broken,
}

/// Why a window did not open.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    thiserror::Error,
)]
pub enum ReleaseError {
    /// Fewer owners with data than the plan's minimum. The text does not say how many: it stands in
    /// rows and logs, and how few they were says much about each of them.
    #[error("population below the minimum {needed}")]
    PopulationTooSmall {
        /// The lowest count of any controller. 0 in messages to controllers.
        counted: u32,
        /// The plan's minimum.
        needed: u32,
    },
    /// More owners with data than the plan's bound.
    #[error("population {counted} above the bound {most}")]
    PopulationTooLarge {
        /// Owners with data.
        counted: u32,
        /// The plan's bound.
        most: u32,
    },
    /// Too few controllers answered. The text does not say how many: each may be one person's.
    #[error("fewer controllers answered than the {needed} needed")]
    QuorumLost {
        /// Controllers that answered. 0 in messages to controllers.
        held: u32,
        /// The minimum.
        needed: u32,
    },
    /// A controller refused, and all of its set are needed.
    #[error("a controller refused: {0}")]
    ControllerRefused(WindowRefusalError),
    /// A member of the opening set did not send its opening.
    #[error("a controller that sent its token did not send its opening")]
    OpeningLost,
    /// The sum opened, but its check word is not zero.
    #[error("the opened sum is invalid: its check word is not zero")]
    CheckWord,
    /// A token or opening has another number of words than the plan.
    #[error("a token's length differs from that of the plan's outputs")]
    WrongLength,
    /// The service lost its sums of the window before it was opened.
    #[error("the sums of the window are gone")]
    SumsLost,
    /// The plan was retired first.
    #[error("the plan was retired")]
    Retired,
    /// The adder did not deliver the window's sums in time.
    #[error("the job did not deliver the window's sums in time; look at its log and checkpoints")]
    SumsLate,
    /// The adder's sums are over other streams or controllers, or have another length.
    #[error("the job's sums are not those of the window's opening set; look at the dead letters")]
    OtherSums,
    /// Its epoch has no list that members would accept.
    #[error("no list of this epoch would be accepted by its members")]
    NotListed,
    /// The adder reported nothing about any stream of the plan before the clock closed the
    /// window.
    #[error("the job reported nothing about any stream in time: all were offline, or the job lags")]
    #[serde(rename = "Untold")]
    NothingReported,
    /// More controllers than may collude have settled the window, or have spent a token on it,
    /// of which the service's state knows nothing. That state was restored from an older copy.
    #[error("the window began in a state of the service that was lost")]
    StateLost,
    /// In a bounded plan: the proof of a member's noise does not hold, or its message has another form.
    #[error("the opening of a member does not hold")]
    FaultyOpening,
    /// In a bounded plan: the members' commitments do not open to the sum of their shares.
    #[error("the members' commitments do not open to the row")]
    NotTheRow,
    /// In a bounded plan: the service has not checked the members' proofs.
    #[error("the service has not checked the proofs of the window: {0}")]
    Unchecked(UncheckedProofsError),
}

impl ReleaseError {
    /// The same without the numbers that say how few took part, as messages to controllers have it.
    #[must_use]
    pub const fn without_counts(self) -> Self {
        match self {
            Self::PopulationTooSmall { needed, .. } => {
                Self::PopulationTooSmall { counted: 0, needed }
            }
            Self::QuorumLost { needed, .. } => Self::QuorumLost { held: 0, needed },
            Self::ControllerRefused(WindowRefusalError::PopulationTooSmall { needed, .. }) => {
                Self::ControllerRefused(WindowRefusalError::PopulationTooSmall {
                    counted: 0,
                    needed,
                })
            }
            Self::ControllerRefused(WindowRefusalError::BelowQuorum { needed, .. }) => {
                Self::ControllerRefused(WindowRefusalError::BelowQuorum { held: 0, needed })
            }
            other => other,
        }
    }
}
