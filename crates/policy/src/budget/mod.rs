//! What differential privacy costs: sensitivity, noise for a given loss, and
//! accounts that refuse what would exceed an owner's budget.
//!
//! Every number that decides is an integer, rounded so that loss is never
//! counted short. `docs/budget.md` has the equations.

mod amount;
mod noise;

pub use amount::{Epsilon, Rho};
pub use noise::{RowNoise, RunningNoise};
