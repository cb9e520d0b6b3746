//! How members break the protocol.

use crate::error::DealingError;

/// How a member has broken the protocol, as this one sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum FaultError {
    /// It has not announced itself in time.
    #[error("has not announced itself")]
    Absent,
    /// It was the convener and sent no list.
    #[error("was the convener and has not sent its lists")]
    Silent,
    /// Two messages of one kind.
    #[error("has sent two different messages of one kind")]
    Twice,
    /// A message that is too long, or that names members twice, out of order or that do not exist.
    #[error(
        "has sent a message that is too long, or that names members twice, out of order, or that do not exist"
    )]
    Malformed,
    /// A convener's message from somebody else.
    #[error("has sent a message that only the convener may send")]
    NotConvener,
    /// The certificate that it shows is invalid.
    #[error("shows an invalid certificate")]
    Prepared,
    /// A list with messages that were not sent, do not belong there, or are too few.
    #[error(
        "has sent a list with messages that were not sent or do not belong there, or too few of them"
    )]
    List,
    /// An invalid dealing.
    #[error("has sent an invalid dealing: {0}")]
    Dealing(DealingError),
    /// It has pledged a dealing but not revealed it.
    #[error("has pledged a dealing but not revealed it")]
    NotShown,
    /// The share that it sealed for this smoother does not open or does not fit.
    #[error("has sealed a share that does not open or does not fit")]
    Share,
    /// It complains of as many dealers as the threshold.
    #[error("complains about as many dealers as the threshold; its own key may be wrong")]
    Complaints,
    /// It has not answered a complaint, or with a share that does not fit.
    #[error("has not answered a complaint with a share that fits")]
    Answer,
    /// A list that settles no key.
    #[error("has sent a list that settles no key")]
    Outcome,
    /// An invalid vote.
    #[error("has sent an invalid vote")]
    Vote,
}

impl From<DealingError> for FaultError {
    fn from(why: DealingError) -> Self {
        Self::Dealing(why)
    }
}
