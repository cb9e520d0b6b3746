//! Why a controller refuses a request about a window.

use serde::{Deserialize, Serialize};

/// Why a controller refuses a request about a window.
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
pub enum WindowRefusalError {
    /// Signed by another party than the plan's service.
    #[error("the message is not from the plan's service")]
    NotTheService,
    /// Addressed to another controller.
    #[error("the message is for another controller")]
    NotForMe,
    /// The controller did not accept this plan.
    #[error("this controller never accepted the plan")]
    UnknownPlan,
    /// The plan has ended.
    #[error("the plan has ended")]
    PlanEnded,
    /// Not a window of the plan: wrong start, wrong length, or before the plan begins.
    #[error("this is not a window of the plan")]
    WrongWindow,
    /// The window, with its grace, has not passed on the controller's own clock.
    #[error("the window and its grace have not yet passed on this controller's clock")]
    NotEnded,
    /// The window was closed, or is too old for the ledger to distinguish.
    #[error("the window is already settled")]
    Settled,
    /// The ledger was restored, and whether the window was released is unknown. Where owners bound
    /// the sets of a day, which sets that day had is unknown as well.
    #[error(
        "the window began before this controller's ledger was restored, or on the same day while owners limit its sets (`setsPerDay`), so it counts as released"
    )]
    CountsAsReleased,
    /// The summons repeats a stream, lists another controller's, or is out of order.
    #[error("the summons does not list this controller's streams in order")]
    MalformedSummons,
    /// The controller has no presence for the membership.
    #[error("this controller has no presence for the window; send the summons again")]
    NotPresent,
    /// The membership's numbers do not fit each other or the roster.
    #[error("the membership's sets and counts do not fit the roster")]
    MalformedMembership,
    /// The membership does not list this controller.
    #[error("this controller is not in the membership")]
    NotAMember,
    /// The membership does not contain the presence that this controller signed.
    #[error("the membership does not contain this controller's presence")]
    PresenceMisstated,
    /// The membership states a different count of this controller's owners.
    #[error("the membership misstates this controller's count of owners")]
    OwnersMisstated,
    /// The membership states more owners at a controller than the plan lists there.
    #[error("the membership states more owners at a controller than the plan lists there")]
    OwnersInvented,
    /// A token was spent on the window with another membership.
    #[error("the window already has another membership")]
    AlreadySpent,
    /// An attribute of one of the streams was released for an overlapping window.
    #[error("an attribute was already released for an overlapping window")]
    Overlaps,
    /// An owner's policy no longer allows a stream that was accepted in the presence.
    #[error(
        "an owner has changed a choice or withdrawn since this controller said who takes part, so the window is lost"
    )]
    PolicyChanged,
    /// Fewer owners than the plan or a policy requires, by this controller's count.
    #[error("the population is below {needed} by this controller's count")]
    PopulationTooSmall {
        /// This controller's count.
        counted: u32,
        /// The minimum.
        needed: u32,
    },
    /// More owners than the plan's bound.
    #[error("the population is above the plan's bound")]
    PopulationTooLarge,
    /// No other controller shares a mask with this one in this window.
    #[error("no neighbour shares a mask with this controller in this window")]
    NoNeighbours,
    /// The controller spent no token for this opening set.
    #[error("this controller spent no token on the window")]
    NoToken,
    /// A plan of one controller, whose token opens by itself, has no opening set.
    #[error("a plan of one controller has no opening set")]
    NothingToOpen,
    /// The opening set is for another membership than the token's.
    #[error("the opening set is for a different membership from the token's")]
    OtherMembership,
    /// Another set was opened.
    #[error("the window already has another opening set")]
    AlreadyOpened,
    /// The opening set does not list this controller.
    #[error("this controller is not in the opening set")]
    NotInOpeningSet,
    /// The opening set lists a controller that the membership does not.
    #[error("the opening set is not part of the membership")]
    NotASubset,
    /// The opening set is too small.
    #[error("the opening set holds fewer than the {needed} controllers needed")]
    BelowQuorum {
        /// |S|.
        held: u32,
        /// The minimum.
        needed: u32,
    },
    /// A share of noise for this number of honest controllers cannot be drawn.
    #[error("the noise of this opening set cannot be drawn in shares")]
    NoiseUnfit,
    /// Too few controllers that this one picked are in the membership or the opening set;
    /// the others may belong to the service.
    #[error("only {held} of this controller's own picks are present; {needed} are needed")]
    TooFewPicks {
        /// Picks in the set.
        held: u32,
        /// The minimum.
        needed: u32,
    },
    /// No key can be agreed on with a controller that, according to the membership, picked
    /// this one.
    #[error("no key can be agreed on with the controller at position {position}")]
    BadNeighbour {
        /// Its position.
        position: u32,
    },
    /// A later window of the running totals was opened here, and shares of noise continue
    /// from the last one.
    #[error(
        "a later window of these running totals was already opened here, so this one is left out"
    )]
    TotalsOutOfOrder,
    /// Running totals that began before the ledger was restored.
    #[error(
        "these running totals continue from the last share, which this controller's restored ledger may have lost; drop the query and ask again"
    )]
    TotalsLost,
    /// The plan of an epoch's call has a roster, streams, masks or noise, or does not fit the
    /// schema.
    #[error("the call's plan cannot be the terms of an epoch")]
    NotTerms,
    /// The controller attended an epoch that ends later.
    #[error("this controller has attended a later epoch of the plan")]
    AlreadyAttended,
    /// No stream of the controller may take part in the plan.
    #[error("no stream of this controller may take part")]
    NothingToGive,
    /// After a restart or a long absence, the controller is drawing the seeds of running
    /// totals again.
    #[error(
        "this controller is still drawing the noise of {left} earlier windows of these running totals; it answers once that is done"
    )]
    SeedsUnderWay {
        /// Windows whose seeds are missing.
        left: u32,
    },
    /// The window of a plan with noise ended before the controller accepted the plan.
    #[error(
        "the window ended before this controller accepted the plan, and the plan's noise does not cover earlier windows"
    )]
    BeforeAcceptance,
    /// An owner bounds over how many sets of owners a day's data is summed (`setsPerDay`), and this
    /// would be another.
    #[error(
        "the day's data may be summed over {limit} different sets of owners, and this is another one; windows over one of that day's earlier sets still open (`setsPerDay` in an owner's choice)"
    )]
    TooManySets {
        /// The smallest bound of an owner here.
        limit: u32,
    },
    /// The service asked about other streams each time, and so about who was silent.
    #[error(
        "the window has had {limit} different summonses, which is the limit; only the last one is still answered"
    )]
    TooManySummonses {
        /// How many a window may have.
        limit: u32,
    },
    /// The keys of the window's generation are wiped: it was too late, a stream was erased, or the
    /// controller was restarted.
    #[error("this controller has wiped the window's keys, so the window is lost here")]
    KeysGone,
    /// The membership has a key for the window's pads that its member did not sign for it, or that is
    /// too old.
    #[error("the membership has no valid key for pads of the controller at position {position}")]
    BadMaskKey {
        /// Its position.
        position: u32,
    },
    /// A member of the membership or of the opening set has a certificate that the authority has
    /// revoked, and a verified row would be what it signs too.
    #[error("the certificate of the controller at position {position} is revoked")]
    RevokedMember {
        /// Its position.
        position: u32,
    },
    /// In a bounded plan: nothing can be committed to, with a chance of 2^-252.
    #[error("this controller cannot commit to its owners' windows; restart it")]
    NotProvable,
    /// In a bounded plan: edges are asked for of a window that this controller has not opened for this
    /// set.
    #[error("this controller has not opened the window for this set")]
    NotOpened,
    /// In a bounded plan: an edge is to be left out without two differing statements of its ends.
    #[error("the membership leaves out an edge without two differing statements of its ends")]
    BadStrike,
}

impl WindowRefusalError {
    /// Whether the same request may succeed later: the controller's clock is behind, or it
    /// was restarted and needs the summons again, or more time.
    #[must_use]
    pub fn may_pass(self) -> bool {
        matches!(
            self,
            WindowRefusalError::NotEnded
                | WindowRefusalError::NotPresent
                | WindowRefusalError::UnknownPlan
                | WindowRefusalError::SeedsUnderWay { .. }
        )
    }
}
