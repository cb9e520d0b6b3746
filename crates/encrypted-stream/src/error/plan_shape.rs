//! Why a plan is malformed.

use serde::{Deserialize, Serialize};

/// Why a plan is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
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
    /// A fraction has denominator zero or is above one.
    #[error("a fraction is not between 0 and 1")]
    Fraction,
}
