//! Whether the members of a query's windows can decide what its rows say.

use super::error::RuleError;
use super::finding::{Finding, Fix};
use crate::catalog::CatalogSchema;
use crate::plan::{NotVerifiableError, Plan};
use crate::query::{Create, Location, MembershipChoice};

/// What stands against it, no matter who takes part.
pub(super) fn not_verifiable(create: &Create, schema: &CatalogSchema) -> Option<Finding> {
    let settings = &create.settings;
    if !settings.integrity.is_some_and(|integrity| integrity.is_verified()) {
        return None;
    }
    if schema.schema.frames.is_events() {
        return Some(finding(NotVerifiableError::Frames));
    }
    if create.cumulating.is_some() {
        return Some(finding(NotVerifiableError::Totals));
    }
    let by_epochs = settings.membership == Some(MembershipChoice::Epochs);
    by_epochs.then(|| finding(NotVerifiableError::Epochs))
}

/// What stands against it among these members.
pub(super) fn of_plan(plan: &Plan) -> Option<Finding> {
    plan.not_verifiable().map(finding)
}

fn finding(reason: NotVerifiableError) -> Finding {
    let (at, fix) = (Location::default(), Some(Fix::PlainIntegrity));
    Finding { at, rule: RuleError::NotVerifiable { reason }, fix }
}
