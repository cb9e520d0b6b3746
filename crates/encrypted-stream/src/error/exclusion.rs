//! Why a stream is not in a result: one variant for each rule.

use serde::{Deserialize, Serialize};

/// Why a stream is not part of a window's result.
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
pub enum ExclusionError {
    /// The service has no complete sum: there is a gap, a duplicate or a missing border.
    #[error("incomplete: a gap, a duplicate or a missing border")]
    Incomplete,
    /// More events than the schema's capacity.
    #[error("more events than the schema's capacity")]
    TooManyEvents,
    /// The producer did not make a border's tag.
    #[error("a border was not made by the producer")]
    ForgedBorder,
    /// The segments do not tile the window from border to border.
    #[error("the segments do not tile the window")]
    NotTiled,
    /// More ticks are missing between sessions than the policy allows.
    #[error("ticks are missing between sessions")]
    MissingTicks,
    /// A session overlaps another one, or a dead session is resumed.
    #[error("a session overlaps an earlier one")]
    SessionOverlap,
    /// The check word is not zero: wrong key or wrong sum.
    #[error("the check word is not zero: wrong key or wrong sum")]
    CheckWord,
    /// The owner's policy, now or during the window, does not allow it.
    #[error("the owner's policy does not allow it")]
    Policy,
    /// The owner has revoked consent.
    #[error("the owner has revoked consent")]
    Revoked,
    /// An attribute was already released for an overlapping window.
    #[error("already released for an overlapping window")]
    Released,
    /// Its controller takes no part in this window.
    #[error("its controller takes no part in this window")]
    ControllerAbsent,
    /// Its controller was restored from a ledger that may not be the latest, and its owner
    /// did not confirm the annotation before the window began.
    #[error("its owner has not confirmed the policy since its controller was restored")]
    Unconfirmed,
    /// More events than the plan's noise hides.
    #[error("more events than the query's noise hides")]
    BeyondNoise,
    /// The remaining privacy budget of its owner does not cover this window.
    #[error("its owner's privacy budget is spent")]
    BudgetSpent,
    /// Its device made two different frames for one tick, so the device has a copy. Its owner
    /// has not confirmed since, or not before the window began, or the session is still the same.
    #[error("its device has a copy, and its owner has not confirmed that the copy is gone")]
    Cloned,
    /// The authority has revoked the certificate of its owner, or of the plan's consumer.
    #[error("the authority has revoked the certificate of its owner or of the query's consumer")]
    CertificateRevoked,
    /// In a verified plan: what the service says of the session's sum is not what the device
    /// stated, or it is not there.
    #[error("the service's sum is not the one that the device stated")]
    SumMismatch,
    /// Its owner has changed the choice so often that the stream waits.
    #[error("its owner changed the choice too often in the last day")]
    Restless,
    /// Another query has held one of its attributes since before the epoch's list was accepted.
    #[error("another query holds one of its attributes")]
    HeldElsewhere,
    /// In a bounded plan: its owner's window is beyond what schema and plan allow one owner.
    #[error("its owner's window is beyond the bounds of one owner; the device needs a look")]
    OutOfBounds,
    /// Its owner has moved it to another controller, or from one, and the window is not this
    /// controller's.
    #[error("its owner has moved it to another controller")]
    Moved,
}

impl ExclusionError {
    /// Every reason.
    pub const ALL: [Self; 21] = [
        Self::Incomplete,
        Self::TooManyEvents,
        Self::ForgedBorder,
        Self::NotTiled,
        Self::MissingTicks,
        Self::SessionOverlap,
        Self::CheckWord,
        Self::Policy,
        Self::Revoked,
        Self::Released,
        Self::ControllerAbsent,
        Self::Unconfirmed,
        Self::BeyondNoise,
        Self::BudgetSpent,
        Self::Cloned,
        Self::CertificateRevoked,
        Self::SumMismatch,
        Self::Restless,
        Self::HeldElsewhere,
        Self::OutOfBounds,
        Self::Moved,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reason that is added here does not compile without its place.
    fn place(reason: ExclusionError) -> usize {
        match reason {
            ExclusionError::Incomplete => 0,
            ExclusionError::TooManyEvents => 1,
            ExclusionError::ForgedBorder => 2,
            ExclusionError::NotTiled => 3,
            ExclusionError::MissingTicks => 4,
            ExclusionError::SessionOverlap => 5,
            ExclusionError::CheckWord => 6,
            ExclusionError::Policy => 7,
            ExclusionError::Revoked => 8,
            ExclusionError::Released => 9,
            ExclusionError::ControllerAbsent => 10,
            ExclusionError::Unconfirmed => 11,
            ExclusionError::BeyondNoise => 12,
            ExclusionError::BudgetSpent => 13,
            ExclusionError::Cloned => 14,
            ExclusionError::CertificateRevoked => 15,
            ExclusionError::SumMismatch => 16,
            ExclusionError::Restless => 17,
            ExclusionError::HeldElsewhere => 18,
            ExclusionError::OutOfBounds => 19,
            ExclusionError::Moved => 20,
        }
    }

    #[test]
    fn all_reasons_are_listed() {
        let places: Vec<usize> = ExclusionError::ALL.into_iter().map(place).collect();
        assert_eq!(places, (0..21).collect::<Vec<_>>());
    }
}
