//! Pure counts: how many were somewhere, each account once. No smoother takes part.
//!
//! - [`plan`]: what is counted, as a file says it,
//! - [`desk`]: the aggregator's side,
//! - [`giver`]: a client's.

pub mod desk;
pub mod giver;
pub mod plan;
