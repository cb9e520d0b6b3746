//! What is malformed in a plan.

use serde::{Deserialize, Serialize};

/// What is malformed in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum PlanFault {
    /// The roster is empty or not strictly ascending.
    #[error("the roster is empty or not ascending")]
    Roster,
    /// Streams are not strictly ascending, or at a position beyond the roster.
    #[error("the streams are not ascending or lie beyond the roster")]
    Streams,
    /// The window is empty.
    #[error("the window is empty")]
    Window,
    /// The release has no row, an empty one, or more than an event has words.
    #[error("the release has no row, an empty one, or more rows than an event has words")]
    Release,
    /// The population bounds are empty.
    #[error("the population bounds allow no window")]
    Population,
    /// A fraction is over zero or above one.
    #[error("a fraction is not between 0 and 1")]
    Fraction,
}
