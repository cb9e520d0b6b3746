//! Why a plan is malformed.

use alpheus_policy::bounded_terms::NotBoundableError;
use alpheus_policy::plan::NotVerifiableError;
use serde::{Deserialize, Serialize};

/// Why a plan is malformed.
///
/// A message has the [code](Self::code) of the variant, which is its place here. So new ones come last,
/// and none is taken away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum PlanShapeError {
    /// The roster is empty or not strictly ascending.
    #[error("the roster is empty or not ascending")]
    Roster,
    /// Streams are not strictly ascending, or at a position beyond the roster.
    #[error("the streams are not ascending or are at a position beyond the roster")]
    Streams,
    /// The window is empty.
    #[error("the window is empty")]
    Window,
    /// The release has no row, an empty row, or more rows than an event has words.
    #[error("the release has no row, an empty row, or more rows than an event has words")]
    Release,
    /// The population bounds admit nothing.
    #[error("the population bounds admit no window")]
    Population,
    /// The terms of an epoch name a roster, streams, masks or another epoch.
    #[error("the terms of an epoch name a roster, streams or masks, which only its list has")]
    Terms,
    /// The terms of an epoch have noise or running totals.
    #[error("an epoch's plan has noise; fix its roster with the query instead")]
    NoiseInEpoch,
    /// The list is for another plan or epoch than its call, or the epoch does not begin with a
    /// window of the plan or has too many.
    #[error("the list is not for this plan and one of its epochs")]
    Epoch,
    /// A fraction has denominator zero or is above one.
    #[error("a fraction is not between 0 and 1")]
    Fraction,
    /// The members of its windows cannot decide what rows say.
    #[error("the plan cannot be verified: {0}")]
    NotVerifiable(NotVerifiableError),
    /// The conditions on metadata leave no outcome, or are too many.
    #[error("the conditions on metadata are not well formed")]
    Selection,
    /// The terms of an epoch are for one consumer alone, or select streams by their metadata.
    #[error(
        "an epoch's plan is for one consumer alone or has conditions; fix its roster with the query instead"
    )]
    ConditionInEpoch,
    /// The plan is bounded, and its members cannot serve it.
    #[error("the plan cannot be bounded: {0}")]
    BoundedForm(NotBoundableError),
    /// The plan is bounded, and has numbers or owners that cannot be proven together.
    #[error(
        "the plan cannot be bounded: its numbers cannot be proven together; ask for 'verified'"
    )]
    BoundedTerms,
}

impl PlanShapeError {
    /// The number that messages have for it.
    #[must_use]
    pub const fn code(&self) -> u32 {
        match self {
            Self::Roster => 0,
            Self::Streams => 1,
            Self::Window => 2,
            Self::Release => 3,
            Self::Population => 4,
            Self::Terms => 5,
            Self::NoiseInEpoch => 6,
            Self::Epoch => 7,
            Self::Fraction => 8,
            Self::NotVerifiable(_) => 9,
            Self::Selection => 10,
            Self::ConditionInEpoch => 11,
            Self::BoundedForm(_) => 12,
            Self::BoundedTerms => 13,
        }
    }
}
