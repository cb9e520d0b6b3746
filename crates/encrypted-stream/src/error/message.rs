//! Why the coordinator drops a message.

use alpheus_crypto::signed_message::SignedMessageError;

/// Why the coordinator drops a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum MessageError {
    /// The signature or the signed content is invalid.
    #[error(transparent)]
    Rejected(#[from] SignedMessageError),
    /// For another plan.
    #[error("the message is for another plan")]
    OtherPlan,
    /// From a position beyond the roster.
    #[error("the sender is not in the roster")]
    UnknownController,
    /// About a window that is not in progress: it was never opened, or has ended.
    #[error("the window is not open")]
    UnknownWindow,
    /// The step that it answers has passed.
    #[error("the step that the message answers has passed")]
    Late,
    /// It answers another summons, membership or opening set.
    #[error("the message answers another request")]
    Mismatched,
    /// It contradicts itself or what it answers.
    #[error("the message contradicts what it answers")]
    Malformed,
    /// A presence in a verified plan has a key for pads that anybody could have agreed with.
    #[error("the key for pads in the presence has small order, which no honest controller makes")]
    SmallOrderKey,
    /// A presence in a verified plan has a key for pads that members would refuse as too old, or as
    /// one of the future.
    #[error(
        "the key for pads in the presence began more than 36 hours ago, or begins more than 12 hours from now; check that the clocks of the controller's host and of the service are right"
    )]
    KeyOutOfTime,
}
