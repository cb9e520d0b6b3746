//! Why something was refused, excluded or failed: one name for each rule.
//!
//! Names travel: a controller's refusal reaches the service, which counts them
//! and shows them beside the result. So none holds a value, a key or anything
//! that the service does not know already.

mod consumer;
mod exclusion;
mod grant;
mod plan_fault;
mod restore;
mod violation;

pub use consumer::{ConsumerFault, Unreadable};
pub use exclusion::Exclusion;
pub use grant::{GrantRefused, NotReadable};
pub use plan_fault::PlanFault;
pub use restore::RestoreError;
pub use violation::PolicyViolation;

use alpheus_crypto::signed::Rejected;
use alpheus_policy::ids::{PlanId, StreamId};
use serde::{Deserialize, Serialize};

/// A certificate that does not vouch for its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCertificate {
    /// Not signed by the deployment's authority.
    #[error("the certificate is not signed by the deployment's authority; ask it for one")]
    Unsigned,
    /// Signed for another role.
    #[error("the certificate is for another role; use the one for this role")]
    Role,
    /// Its key for agreements has small order: what is agreed on with it, everybody knows.
    #[error("the certificate's agreement key has small order; its holder must make a new one")]
    SmallOrder,
    /// For other keys than the holder's.
    #[error("the certificate is for other keys; ask for one for these")]
    OtherKeys,
    /// For another party than the one that shows it.
    #[error("the certificate is for another name than that of who shows it")]
    OtherName,
    /// It has no key that a secret could be sealed for.
    #[error(
        "the certificate has no good key to seal secrets for; ask its holder for a controller's"
    )]
    NoSealing,
}

/// Why a controller does not take an owner's annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnnotationRefused {
    /// Not signed by the given key.
    #[error("the annotation is not signed by the owner's key")]
    Unsigned,
    /// It names another owner than the key's, or than the stream's.
    #[error("the annotation is by another owner than the stream's")]
    WrongOwner,
    /// No such stream is held here.
    #[error("the stream is not at this controller; hand its secret over first")]
    NotHeld,
    /// For another schema than the stream's.
    #[error("the annotation is for another schema than the stream's")]
    WrongSchema,
    /// Not later than the one in force.
    #[error(
        "version {given} is not later than version {known}, which is in force; sign a later one"
    )]
    NotLater {
        /// Of the annotation.
        given: u32,
        /// The one in force.
        known: u32,
    },
    /// Consent was revoked for good.
    #[error("consent for the stream was revoked; start a new stream")]
    Revoked,
    /// Where the owner says that the stream is guarded is said of another stream.
    #[error("the placement is of another stream than the annotation")]
    OtherPlacement,
    /// What is known of its version says something else.
    #[error("another choice or placement of version {0} is known; sign a later one")]
    Conflicting(u32),
    /// What it allows is nothing that the schema offers.
    #[error(transparent)]
    NotOffered(#[from] alpheus_policy::policy::NotOffered),
}

/// Why a controller does not take part in a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum PlanRefused {
    /// The announcement is by somebody else than the deployment's service.
    #[error("the plan is not announced by this deployment's service")]
    NotTheService,
    /// The certificates are not those of the roster.
    #[error(
        "certificate {position} of the roster is missing, unsigned, of another role or of another party"
    )]
    Certificate {
        /// Position in the roster.
        position: u32,
    },
    /// Two certificates of the roster hold one key, or two positions one controller.
    #[error("position {position} of the roster repeats another party's identity or key")]
    Repeated {
        /// The later position.
        position: u32,
    },
    /// Roster or streams are not ascending, a stream names a position beyond
    /// the roster, or the window, bounds or rows make no sense.
    #[error("the plan is malformed: {0}")]
    Malformed(PlanFault),
    /// This controller is not in the roster.
    #[error("this controller is not in the plan's roster")]
    NotInRoster,
    /// An owner's streams are at several controllers, so that each would count
    /// that owner once more.
    #[error(
        "the owner of stream {stream} also has streams at another controller; they would count twice"
    )]
    OwnerSplit {
        /// One of the owner's streams.
        stream: StreamId,
    },
    /// The plan puts a stream at this controller that it does not hold.
    #[error("stream {stream} is not at this controller")]
    NotHeld {
        /// The stream.
        stream: StreamId,
    },
    /// The plan names another owner for a stream than the controller knows.
    #[error("stream {stream} belongs to another owner")]
    WrongOwner {
        /// The stream.
        stream: StreamId,
    },
    /// A stream of this controller has another schema than the plan.
    #[error("stream {stream} has another schema")]
    WrongSchema {
        /// The stream.
        stream: StreamId,
    },
    /// Its window, release or bounds do not fit the schema.
    #[error("the plan does not fit its schema: {violation}")]
    Form {
        /// The rule.
        violation: PolicyViolation,
    },
    /// A stream's owner has not annotated it, or not since the controller came
    /// back from an old ledger; the annotation has run out; or consent was revoked.
    #[error("stream {stream} has no consent in force")]
    NoConsent {
        /// The stream.
        stream: StreamId,
    },
    /// A stream's owner does not allow what the plan asks.
    #[error("stream {stream}: {violation}")]
    Policy {
        /// The stream.
        stream: StreamId,
        /// The first rule that forbids it.
        violation: PolicyViolation,
    },
    /// An attribute of a stream is already in another running plan.
    #[error("stream {stream} gives an attribute to the running plan {plan}; stop that plan first")]
    Locked {
        /// The stream.
        stream: StreamId,
        /// The plan that holds it.
        plan: PlanId,
    },
    /// The masks would be too thin, or the plan can never have an honest floor.
    #[error(
        "the plan's masks do not keep its bounds: ask the planner for parameters of this roster"
    )]
    UnsafeMasks,
    /// A key agreement with a member of the roster failed.
    #[error("the key of roster position {position} has small order")]
    BadKey {
        /// Position in the roster.
        position: u32,
    },
    /// The plan was retired before; its id is used up.
    #[error("this plan has ended")]
    Ended,
    /// An owner has more streams in the plan than its noise was sized for.
    #[error("the owner of stream {stream} has more streams in the plan than its noise is for")]
    NoiseForFewer {
        /// One of the owner's streams.
        stream: StreamId,
    },
    /// The shares of the plan's noise cannot be drawn.
    #[error("the plan's noise cannot be drawn in shares; ask for another mechanism or more ε")]
    NoiseUnfit,
    /// Under `Neighbours` each controller would pick too few, or more might be cut
    /// off than the plan says.
    #[error(
        "the plan's m = {picks} and r = {cut_off} do not keep its δ: m = {least_picks} with r = {least_cut_off} would (0: none will do); plan it anew, or with masks = 'clique'"
    )]
    TooFewPicks {
        /// m.
        picks: u32,
        /// r.
        cut_off: u32,
        /// The least m; 0 if only the clique will do.
        least_picks: u32,
        /// The least r for it.
        least_cut_off: u32,
    },
    /// The controller has given its picks for as many rosters as it may: each is
    /// another draw for a service that hopes for a bad one.
    #[error(
        "this controller has picked others in {most} rosters, the most of its life; certify a new one, or plan with masks = 'epoch'"
    )]
    TooManyRosters {
        /// How many it gives.
        most: u32,
    },
    /// The consumer that results are sealed to is not who the plan says.
    #[error("the results' consumer: {0}")]
    Consumer(ConsumerFault),
    /// Running totals that may have begun before the ledger was restored.
    #[error(
        "running totals go on from what was said last, which this controller's restored ledger may have lost; drop the query and ask again"
    )]
    TotalsLost,
    /// Running totals that are too long beside others.
    #[error(
        "these running totals need {wanted} seeds of noise, beside {running} of other queries; a controller keeps {most} at most, so drop one of them, or ask for a shorter SIZE or longer steps"
    )]
    TooManySeeds {
        /// Of other plans.
        running: u64,
        /// Of this one.
        wanted: u64,
        /// Of all together.
        most: u64,
    },
}

/// Why a controller does not answer something about a window.
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
pub enum Refused {
    /// Signed by somebody else than the plan's service.
    #[error("the message is not by the plan's service")]
    NotTheService,
    /// Addressed to another controller.
    #[error("the message is for another controller")]
    NotForMe,
    /// The controller did not accept such a plan.
    #[error("the plan was never accepted here")]
    UnknownPlan,
    /// The plan has ended.
    #[error("the plan has ended")]
    PlanEnded,
    /// Not a window of the plan: its start, its length, or before the plan begins.
    #[error("this is not a window of the plan")]
    WrongWindow,
    /// The window, with its grace, has not passed on the controller's own clock.
    #[error("the window and its grace have not passed on this controller's clock")]
    NotEnded,
    /// The window was closed, or is older than what the ledger still tells apart.
    #[error("the window was settled before")]
    Settled,
    /// The ledger was restored and cannot tell whether the window was released.
    #[error(
        "the window closed before this controller's ledger was restored; it counts as released"
    )]
    CountsAsReleased,
    /// The summons repeats a stream, names one of another controller, or is out of order.
    #[error("the summons does not list this controller's streams in order")]
    MalformedSummons,
    /// A membership without this controller's presence before it.
    #[error("this controller holds no presence for the window; send the summons again")]
    NotPresent,
    /// The membership's numbers do not fit each other or the roster.
    #[error("the membership's sets and counts do not fit the roster")]
    MalformedMembership,
    /// The membership does not list this controller.
    #[error("this controller is not in the membership")]
    NotAMember,
    /// The membership is not over the presence that this controller signed.
    #[error("the membership is not over this controller's presence")]
    PresenceMisstated,
    /// The membership states another count of this controller's owners.
    #[error("the membership misstates this controller's count of owners")]
    OwnersMisstated,
    /// The membership states more owners at a controller than the plan lists there.
    #[error("the membership states more owners at a controller than the plan lists there")]
    OwnersInvented,
    /// A token was spent on the window against another membership.
    #[error("the window already has another membership")]
    AlreadySpent,
    /// An attribute of an own stream was released for a window that overlaps.
    #[error("an attribute was already released for an overlapping window")]
    Overlaps,
    /// An owner's policy no longer allows a stream that was accepted in the presence.
    #[error("a policy has changed since the presence; the window is lost here")]
    PolicyChanged,
    /// Fewer owners than the plan or a policy asks for, as this controller counts.
    #[error("population {counted} as this controller counts it, {needed} needed")]
    PopulationTooSmall {
        /// As counted here.
        counted: u32,
        /// The least.
        needed: u32,
    },
    /// More owners than the plan allows.
    #[error("the population is above the plan's bound")]
    PopulationTooLarge,
    /// No other controller shares a mask with this one in this round.
    #[error("no neighbour shares a mask with this controller in this window")]
    NoNeighbours,
    /// An opening set without a token before it.
    #[error("no token was given for the window")]
    NoToken,
    /// An opening set for a plan of one controller, whose token opens by itself.
    #[error("a plan of one controller has no opening set")]
    NothingToOpen,
    /// An opening set against another membership than the token's.
    #[error("the opening set is against another membership than the token's")]
    OtherMembership,
    /// An opening was given for another set.
    #[error("the window already has another opening set")]
    AlreadyOpened,
    /// The opening set does not list this controller.
    #[error("this controller is not in the opening set")]
    NotInOpeningSet,
    /// The opening set lists a controller that the membership does not.
    #[error("the opening set is not part of the membership")]
    NotASubset,
    /// The opening set is too small.
    #[error("the opening set holds {held} controllers, {needed} needed")]
    BelowQuorum {
        /// |S|.
        held: u32,
        /// The least.
        needed: u32,
    },
    /// A share of noise for so many honest controllers cannot be drawn.
    #[error("the noise of this opening set cannot be drawn in shares")]
    NoiseUnfit,
    /// Too few of those that this controller picked are in the membership or the
    /// opening set: the others may be the service's.
    #[error("{held} of this controller's own picks are there, {needed} needed")]
    TooFewPicks {
        /// Picks in the set.
        held: u32,
        /// The least.
        needed: u32,
    },
    /// The membership lists somebody as having picked this controller with whom it
    /// can agree on no key.
    #[error("there is no key to agree on with the controller at position {position}")]
    BadNeighbour {
        /// Who it is.
        position: u32,
    },
    /// A later window of running totals has been opened here: shares of noise go on
    /// from the last.
    #[error("a later window of these running totals was opened here; this one is left out")]
    TotalsOutOfOrder,
    /// Running totals that began before the ledger was restored.
    #[error(
        "these running totals go on from what was said last, which this controller's restored ledger may have lost; drop the query and ask again"
    )]
    TotalsLost,
    /// The controller was restarted, or was away for long, and draws the seeds of running
    /// totals again.
    #[error(
        "this controller is still drawing the noise of {left} earlier windows of these running totals; it answers once that is done"
    )]
    SeedsUnderWay {
        /// Windows whose seeds are missing.
        left: u32,
    },
}

impl Refused {
    /// Whether the same question may be answered later: the controller's clock
    /// is behind, or it was restarted and needs the summons, or some time, again.
    #[must_use]
    pub fn may_pass(self) -> bool {
        matches!(
            self,
            Refused::NotEnded
                | Refused::NotPresent
                | Refused::UnknownPlan
                | Refused::SeedsUnderWay { .. }
        )
    }
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
pub enum Failure {
    /// Fewer owners with data than the plan's minimum.
    #[error("population {counted} below the minimum {needed}")]
    PopulationTooSmall {
        /// As the controller counts it that counts the fewest.
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
    /// Too few controllers answered.
    #[error("{held} controllers answered, {needed} needed")]
    QuorumLost {
        /// Who answered.
        held: u32,
        /// The least.
        needed: u32,
    },
    /// A controller refused where all of its set are needed.
    #[error("a controller refused: {0}")]
    ControllerRefused(Refused),
    /// A member of the opening set did not come back.
    #[error("a controller that had given its token did not come back")]
    OpeningLost,
    /// The sum opened, but its check word is not zero.
    #[error("the opened sum is not sound: its check word is not zero")]
    CheckWord,
    /// A token or opening has another number of words than the plan.
    #[error("a token has another length than the plan's outputs")]
    WrongLength,
    /// The service lost what it had of the window before it was opened.
    #[error("the sums of the window are gone")]
    SumsLost,
    /// The plan was retired first.
    #[error("the plan was retired")]
    Retired,
    /// Whoever adds up for the service has not given the window's sums in time.
    #[error(
        "the job has not given the sums of the window in time; look at its log and checkpoints"
    )]
    SumsLate,
    /// What it gave are sums over other streams or controllers, or of another length.
    #[error(
        "the job's sums of the window are not those of its opening set; look at the dead letters"
    )]
    OtherSums,
    /// It told nothing of any stream of the plan before the clock closed the window.
    #[error(
        "the job has told nothing of the window's streams in time: they were offline, or the job lags"
    )]
    Untold,
}

/// Why the coordinator does not take a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NotTaken {
    /// The signature, or what it is over.
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// For another plan.
    #[error("the message is for another plan")]
    OtherPlan,
    /// From a position beyond the roster.
    #[error("the sender is not in the roster")]
    UnknownController,
    /// About a window that is not open (never was, or has ended).
    #[error("the window is not open")]
    UnknownWindow,
    /// Too late: the step it answers has passed.
    #[error("the step that the message answers has passed")]
    Late,
    /// It answers another summons, membership or opening set.
    #[error("the message answers another request")]
    Mismatched,
    /// It contradicts itself or what it answers.
    #[error("the message contradicts what it answers")]
    Malformed,
}
