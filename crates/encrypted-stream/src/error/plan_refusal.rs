//! Why a controller refuses a plan.

use alpheus_policy::ids::{PlanId, StreamId};
use serde::{Deserialize, Serialize};

use super::{PlanConsumerError, PlanShapeError, PolicyViolationError};

/// Why a controller refuses a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum PlanRefusalError {
    /// Another party than the deployment's service announced it.
    #[error("the plan was not announced by this deployment's service")]
    NotTheService,
    /// The certificates are not those of the roster.
    #[error(
        "certificate {position} of the roster is missing, unsigned, or that of another role or party"
    )]
    Certificate {
        /// Position in the roster.
        position: u32,
    },
    /// Two certificates of the roster hold the same key, or two positions the same
    /// controller.
    #[error("position {position} of the roster repeats another party's identity or key")]
    Repeated {
        /// The later position.
        position: u32,
    },
    /// Roster or streams are not ascending, a stream is at a position beyond the roster, or
    /// the window, bounds or rows are invalid.
    #[error("the plan is malformed: {0}")]
    Malformed(PlanShapeError),
    /// This controller is not in the roster.
    #[error("this controller is not in the plan's roster")]
    NotInRoster,
    /// An owner's streams are at several controllers, so each would count that owner.
    #[error(
        "the owner of stream {stream} also has streams at another controller and would count twice"
    )]
    OwnerSplit {
        /// One of the owner's streams.
        stream: StreamId,
    },
    /// The plan places a stream at this controller that the controller does not hold.
    #[error("this controller does not hold stream {stream}")]
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
        violation: PolicyViolationError,
    },
    /// The stream has no annotation, or none since the controller was restored from an old
    /// ledger; the annotation has expired; or consent was revoked.
    #[error("stream {stream} has no consent in force")]
    NoConsent {
        /// The stream.
        stream: StreamId,
    },
    /// A stream's owner does not allow what the plan requests.
    #[error("stream {stream}: {violation}")]
    Policy {
        /// The stream.
        stream: StreamId,
        /// The first rule that forbids it.
        violation: PolicyViolationError,
    },
    /// Another running plan holds an attribute of the stream.
    #[error("the running plan {plan} holds an attribute of stream {stream}; stop that plan first")]
    Locked {
        /// The stream.
        stream: StreamId,
        /// The plan that holds it.
        plan: PlanId,
    },
    /// The masks would be too weak, or the plan can never have an honest floor.
    #[error(
        "the plan's masks do not meet its bounds; ask the planner for parameters for this roster"
    )]
    UnsafeMasks,
    /// A key agreement with a member of the roster failed.
    #[error("the key of roster position {position} has small order")]
    BadKey {
        /// Position in the roster.
        position: u32,
    },
    /// The plan was retired, so its id cannot be used again.
    #[error("this plan has ended")]
    Ended,
    /// An owner has more streams in the plan than its noise is sized for.
    #[error(
        "the owner of stream {stream} has more streams in the plan than its noise is sized for"
    )]
    NoiseForFewer {
        /// One of the owner's streams.
        stream: StreamId,
    },
    /// The shares of the plan's noise cannot be drawn.
    #[error("the plan's noise cannot be drawn in shares; ask for another mechanism or a larger ε")]
    NoiseUnfit,
    /// With `Neighbours`, each controller would pick too few, or more could be cut off than
    /// the plan states.
    #[error(
        "the plan's m = {picks} and r = {cut_off} do not meet its δ: m = {least_picks} with r = {least_cut_off} would (0: none will do); plan it again, or with masks = 'clique'"
    )]
    TooFewPicks {
        /// m.
        picks: u32,
        /// r.
        cut_off: u32,
        /// The minimum m; 0 if only the clique will do.
        least_picks: u32,
        /// The minimum r for it.
        least_cut_off: u32,
    },
    /// The controller has published picks for as many rosters as it may. Each roster is
    /// another draw for a service that hopes for a bad one.
    #[error(
        "this controller has published picks for {most} rosters, the maximum for one certificate; certify a new controller, or plan with masks = 'epoch'"
    )]
    TooManyRosters {
        /// The maximum.
        most: u32,
    },
    /// The consumer that results are sealed to is not the one that the plan names.
    #[error("the results' consumer: {0}")]
    Consumer(PlanConsumerError),
    /// Running totals that may have begun before the ledger was restored.
    #[error(
        "running totals continue from the last share, which this controller's restored ledger may have lost; drop the query and ask again"
    )]
    TotalsLost,
    /// An entry of a list does not ascend, has no owner or no stream, or repeats a stream.
    #[error("entry {position} of the list is out of order, empty, or repeats a stream")]
    Entry {
        /// Its position.
        position: u32,
    },
    /// An owner of an entry stands in an earlier one, so both controllers would count that
    /// owner.
    #[error("entry {position} of the list has an owner who is already in an earlier entry")]
    OwnerInTwoEntries {
        /// The later position.
        position: u32,
    },
    /// The agreement key of an entry is not that of the controller's certificate.
    #[error("entry {position} of the list has another agreement key than the certificate")]
    EntryKey {
        /// Its position.
        position: u32,
    },
    /// This controller's entry is not what it attended with.
    #[error("entry {position} of the list is not what this controller attended with")]
    EntryChanged {
        /// Its position.
        position: u32,
    },
    /// This controller did not attend the epoch, or has attended a later one.
    #[error("this controller did not attend the epoch, or has attended a later one since")]
    NotAttended,
    /// The ledger was restored, and whether another list was accepted is unknown.
    #[error("the epoch began before this controller's ledger was restored")]
    EpochBeforeRestore,
    /// This controller has accepted another list for the epoch.
    #[error("this controller has accepted another list for the epoch")]
    OtherList,
    /// Even if all listed owners have data, the population is too small.
    #[error(
        "this controller counts {counted} owners in the list, without those who may collude; {needed} are needed"
    )]
    ListTooSmall {
        /// This controller's count.
        counted: u32,
        /// The minimum.
        needed: u32,
    },
    /// A list of one controller, in a plan that needs others.
    #[error("this controller is alone in the list, and the plan needs others")]
    ListedAlone,
    /// A list with `Neighbours`, whose picks would be drawn for each epoch.
    #[error("an epoch's members do not mask with `neighbours`")]
    PicksInEpoch,
    /// Running totals that are too long beside those of other plans.
    #[error(
        "these running totals need {wanted} seeds of noise, in addition to {running} of other queries; a controller keeps at most {most}, so drop one of them, or ask for a shorter SIZE or longer steps"
    )]
    TooManySeeds {
        /// Seeds of other plans.
        running: u64,
        /// Seeds of this plan.
        wanted: u64,
        /// Maximum of all together.
        most: u64,
    },
    /// The authority has revoked the certificate of a controller in the roster.
    #[error("the authority has revoked the certificate of the controller at position {position}")]
    RevokedController {
        /// Its position in the roster.
        position: u32,
    },
    /// The authority has revoked the certificate of the consumer.
    #[error("the authority has revoked the certificate of the query's consumer")]
    RevokedConsumer,
    /// In a verified plan: a stream's metadata is not what the query asks for.
    #[error("the metadata of stream {stream} is not what the query asks for")]
    NotSelected {
        /// The stream.
        stream: StreamId,
    },
}
