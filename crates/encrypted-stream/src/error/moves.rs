//! Why a controller gives no stream away, or takes none over.

use alpheus_time::Timestamp;

use super::{AnnotationError, CertificateError};

/// Why a controller refuses to give a stream away, or to take one over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoveError {
    /// The stream is not held here.
    #[error("this controller does not hold the stream")]
    NotHeld,
    /// The placement is not signed by the stream's owner, or is of another stream.
    #[error("the placement is not the owner's, or is of another stream")]
    NotTheOwners,
    /// The placement names other controllers.
    #[error("the placement does not move the stream between these two controllers")]
    OtherControllers,
    /// A placement of the same or a later version is known.
    #[error("version {version} of the placement is not later than version {known}, which is known")]
    NotLater {
        /// Of the placement.
        version: u32,
        /// The known one.
        known: u32,
    },
    /// The stream has another controller already.
    #[error("the stream has already moved to another controller; ask that one")]
    MovedAway,
    /// The border is too early: windows that end after it may have been answered.
    #[error(
        "the border of the move is too early, since windows that end after it may already have been answered; name one that is not before {} microseconds since 1970", .earliest.0
    )]
    BorderTooEarly {
        /// The earliest that would do.
        earliest: Timestamp,
    },
    /// The owner bounds the sets of a day, and the border is within one.
    #[error(
        "the choice bounds the sets of a day, so the border must be at midnight, UTC: each day has one controller"
    )]
    WithinDay,
    /// After a restore, or since the device was copied, the owner has not confirmed the choice.
    #[error(
        "the stream waits for its owner's confirmation: submit the choice again with `alpheus owner choose`, then move it"
    )]
    Unconfirmed,
    /// Consent is withdrawn, or the key destroyed.
    #[error("consent for the stream was withdrawn; there is nothing to move")]
    Withdrawn,
    /// What was handed over is not the earlier controller's, or not for this placement.
    #[error(
        "what was handed over is not signed by the previous controller, or is for another move"
    )]
    NotHandedOver,
    /// The choice is older than the one in force at the previous controller.
    #[error("version {version} of the choice is older than version {current}, which was in force")]
    OldChoice {
        /// Of the choice.
        version: u32,
        /// In force at the previous controller.
        current: u32,
    },
    /// A certificate is not valid.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The owner's choice is not valid.
    #[error(transparent)]
    Choice(#[from] AnnotationError),
}
