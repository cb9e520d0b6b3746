//! What can be wrong in a bounded window: with what a member has signed, or with a request to check it.

/// What one controller did wrong. Nobody who keeps to the protocol does any of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum FaultError {
    /// The number of scalars or commitments is not that of the plan.
    #[error(
        "the number of scalars or commitments in its message differs from the plan's number of cells"
    )]
    Cells,
    /// More or fewer owners than the membership counts.
    #[error("it commits to a different number of owners from the membership's count")]
    Owners,
    /// Owners' commitments are not ascending, so that one may be there twice.
    #[error("its owners' commitments are not in ascending order, or one appears twice")]
    Order,
    /// A range proof does not hold: an owner may be out of bounds.
    #[error("a range proof of its owners does not hold")]
    Range,
    /// The range proof of its noise does not hold, or is missing.
    #[error("the range proof of its noise is missing or does not hold")]
    Noise,
}

/// A message that does not hold, and who signed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the controller at position {controller} is at fault: {fault}")]
pub struct FaultyError {
    /// Its position in the roster.
    pub controller: u32,
    /// What is wrong.
    pub fault: FaultError,
}

/// What is wrong with a request to a [`Checker`](super::Checker). It says nothing of any member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoundError {
    /// The window is one of other terms.
    #[error(
        "the window's terms differ from this checker's; check it with a checker of its own terms"
    )]
    Terms,
    /// Not one message of each member, of one window.
    #[error("the messages are not one from each member, for one window, in roster order")]
    Members,
    /// The membership is none of this plan.
    #[error(
        "the membership counts more owners at position {controller} than the plan lists; no controller answers such a membership"
    )]
    Counted {
        /// The position in the roster.
        controller: u32,
    },
}

/// Why the openings of a window do not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpeningsError {
    /// They are none of one window.
    #[error(transparent)]
    Round(#[from] RoundError),
    /// Some do not hold.
    #[error("{} openings do not hold, and {} belong to another round; leave their senders out of later windows, or ask them again", faulty.len(), misplaced.len())]
    Refused {
        /// Those that do not hold.
        faulty: Vec<FaultyError>,
        /// Members in whose place there is a message of another round or sender.
        misplaced: Vec<u32>,
    },
}

/// Why there is no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// The shares are none of one window.
    #[error(transparent)]
    Round(#[from] RoundError),
    /// There is no pad for the row of a sealed plan, or one for another row.
    #[error(
        "a row of a sealed plan needs the sum of its consumer's pads, one for each cell, and any other row needs none"
    )]
    Pad,
    /// The commitments do not open to the row.
    #[error(
        "the commitments do not open to the row in cell {cell}; ask the members for their edges to find who is at fault"
    )]
    Cell {
        /// The cell.
        cell: usize,
    },
}
