//! Decides whether a plan complies with a policy, for the planner and for controllers.
//!
//! The planner checks so that it plans nothing that would be refused. Each controller
//! checks again before it takes part, because it does not trust the planner.

mod demand;
mod error;

pub use demand::Demand;
pub use error::{ComplianceError, RequirementError};

use crate::layout::Layout;
use crate::plan::Plan;
use crate::policy::ResolvedPolicy;
use crate::schema::Schema;

/// Checks a plan against the policy of one stream. For many streams of one plan, create
/// the [`Demand`] once and check each policy with it.
///
/// # Errors
/// If the policy forbids the plan: the rule, and the requested and allowed values.
///
/// # Privacy
/// This checks what a plan *may* release. For each window, the controller also checks that
/// the population is met, that windows do not overlap, and that the annotation is in force.
pub fn check(
    plan: &Plan,
    schema: &Schema,
    layout: &Layout,
    policy: &ResolvedPolicy,
) -> Result<(), ComplianceError> {
    Demand::of(plan, schema, layout)?.allowed_by(policy)
}

#[cfg(test)]
mod tests;
