//! What does not hold of a receipt.

use alpheus_time::Window;

use super::bounded_receipt::BoundsError;

/// Which part of a member's share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharePart {
    /// Z.
    Token,
    /// o.
    Opening,
    /// Which streams it left out.
    Presence,
}

impl std::fmt::Display for SharePart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Token => "share",
            Self::Opening => "opening",
            Self::Presence => "presence",
        })
    }
}

/// A receipt does not show what a row says. No variant holds a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptError {
    /// The plan does not ask for it, so its windows have no receipts.
    #[error("the plan was not asked for with `integrity = 'verified'`")]
    NotVerified,
    /// It has another list than the window's plan follows from, or one where the plan has none.
    #[error("the receipt's list of members is missing, or differs from that of the window's plan")]
    OtherList,
    /// The service did not sign M.
    #[error("the membership is not signed by the service")]
    Membership,
    /// M is of another plan.
    #[error("the membership is for another plan")]
    OtherPlan,
    /// M is of another window.
    #[error("the receipt is for the window {} – {} µs", .0.start.0, .0.end.0)]
    OtherWindow(Window),
    /// M is over another roster, or has other counts than members.
    #[error("the membership does not fit the plan's list of controllers")]
    Roster,
    /// M states more owners at a controller than the plan lists there.
    #[error(
        "the membership states more owners at controller {controller} than the plan lists there"
    )]
    OwnersInvented {
        /// Its position.
        controller: u32,
    },
    /// The service did not sign S, or there is none, or one of a plan with one controller.
    #[error("the opening set is not signed by the service, or does not fit the plan")]
    OpeningSet,
    /// S is of another plan, window or membership.
    #[error("the opening set is for another plan, window or membership")]
    OtherSet,
    /// S is not within M.
    #[error("the opening set has controllers that are not in the membership")]
    NotASubset,
    /// Too few members: a dishonest part could have opened alone.
    #[error("{held} controllers have signed, but the plan needs {needed}")]
    BelowQuorum {
        /// |S|.
        held: u32,
        /// The minimum.
        needed: u32,
    },
    /// Too few owners, or too many.
    #[error("the plan does not allow {stated} owners with data, of whom {counted} count")]
    Population {
        /// As M states.
        stated: u64,
        /// As the member with the lowest count counts them.
        counted: u64,
    },
    /// Other than one share for each member of S.
    #[error("there are {found} shares of {expected} members")]
    Shares {
        /// In the receipt.
        found: usize,
        /// |S|.
        expected: usize,
    },
    /// A controller did not sign what stands for it.
    #[error("the {part} of controller {controller} is not signed by it")]
    Signature {
        /// Its position.
        controller: u32,
        /// Which part.
        part: SharePart,
    },
    /// A controller signed it for something else.
    #[error(
        "the {part} of controller {controller} is for another plan, window, membership or opening"
    )]
    OtherShare {
        /// Its position.
        controller: u32,
        /// Which part.
        part: SharePart,
    },
    /// A share has another number of words than the plan's outputs.
    #[error(
        "the length of the {part} of controller {controller} differs from that of the plan's outputs"
    )]
    Length {
        /// Its position.
        controller: u32,
        /// Which part.
        part: SharePart,
    },
    /// What the members have signed adds up to no row.
    #[error("the shares do not add up: the check word is not zero")]
    CheckWord,
    /// The row hides exclusions that their controllers have signed.
    #[error(
        "the row says that {stated} streams were left out, but controllers signed that {signed} were"
    )]
    FewerExcluded {
        /// In the row.
        stated: u64,
        /// In the receipt.
        signed: u32,
    },
    /// In a bounded plan: the proofs do not hold, or the commitments do not open to a row.
    #[error(transparent)]
    Bounds(#[from] BoundsError),
    /// The row says something other than what the members have signed.
    #[error("the row differs from what the controllers have signed")]
    OtherRow,
}
