//! Does a plan comply with a policy? One answer for planner and controllers.
//!
//! The planner asks so that it plans nothing that would be refused; each
//! controller asks again before it takes part, since it trusts no planner.

mod demand;
mod refusal;

pub use demand::Demand;
pub use refusal::{Denial, Refusal};

use crate::layout::Layout;
use crate::plan::Plan;
use crate::policy::ResolvedPolicy;
use crate::schema::Schema;

/// Checks one stream's policy against a plan. For many streams of one plan,
/// make the [`Demand`] once and ask it for each policy.
///
/// # Errors
/// The rule that forbids it, with the numbers asked and allowed.
///
/// # Privacy
/// What is checked here is what a plan *may* release. That a window's
/// population is met, that windows do not overlap and that the annotation is in
/// force is checked window by window, by the controller.
pub fn check(
    plan: &Plan,
    schema: &Schema,
    layout: &Layout,
    policy: &ResolvedPolicy,
) -> Result<(), Refusal> {
    Demand::of(plan, schema, layout)?.allowed_by(policy)
}

#[cfg(test)]
mod tests;
