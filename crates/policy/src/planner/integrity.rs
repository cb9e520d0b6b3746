//! Whether the members of a query's windows can decide what its rows say, and prove that no owner
//! moves them by more than its bounds.

use super::attempt::item_at;
use super::error::RuleError;
use super::finding::{Finding, Fix};
use crate::bounded_terms::NotBoundableError;
use crate::catalog::CatalogSchema;
use crate::plan::{Integrity, NotVerifiableError, Plan};
use crate::query::{Create, IntegrityChoice, Location, MembershipChoice};
use crate::schema::Schema;

/// What a plan states of it. If the query limits no events, the schema's rate and capacity do.
pub(super) fn integrity(create: &Create, schema: &Schema) -> Integrity {
    let settings = &create.settings;
    match settings.integrity.unwrap_or_default() {
        IntegrityChoice::Plain => Integrity::Plain,
        IntegrityChoice::Verified => Integrity::Verified,
        IntegrityChoice::Bounded => {
            let own = schema.capacity.events_in(create.window);
            Integrity::Bounded { events: settings.events.unwrap_or(own) }
        }
    }
}

/// What stands against it, no matter who takes part.
pub(super) fn not_verifiable(create: &Create, schema: &CatalogSchema) -> Option<Finding> {
    let settings = &create.settings;
    let choice = settings.integrity.filter(|choice| choice.is_verified())?;
    let finding = |reason| Some(finding(choice.word(), reason));
    if schema.schema.frames.is_events() {
        return finding(NotVerifiableError::Frames);
    }
    if create.cumulating.is_some() {
        return finding(NotVerifiableError::Totals);
    }
    let bounded = choice == IntegrityChoice::Bounded;
    if bounded && by_epochs(create) { finding(NotVerifiableError::Epochs) } else { None }
}

fn by_epochs(create: &Create) -> bool {
    create.settings.membership == Some(MembershipChoice::Epochs)
}

/// What stands against it among these members; by epochs, among any others too.
pub(super) fn of_plan(plan: &Plan, create: &Create) -> Option<Finding> {
    let reason = match by_epochs(create) {
        true => plan.terms().not_verifiable(),
        false => plan.not_verifiable(),
    };
    reason.map(|reason| finding(plan.integrity.word(), reason))
}

/// What stands against proofs of its owners' bounds. The nearest query limits events further, or is
/// verified.
pub(super) fn not_boundable(
    plan: &Plan,
    create: &Create,
    schema: &CatalogSchema,
) -> Option<Finding> {
    let terms = plan.bounded_terms(&schema.schema, &schema.layout);
    let reason = terms.err().or_else(|| plan.not_servable())?;
    let named = |column: &String| {
        let item = create.items.iter().find(|item| item.alias == *column);
        item.map_or_else(|| item_at(create), |item| item.at.0)
    };
    let (at, fix) = match &reason {
        NotBoundableError::Column { column } => (named(column), Fix::VerifiedIntegrity),
        NotBoundableError::TooWide { column, most: 0, .. } => {
            (named(column), Fix::VerifiedIntegrity)
        }
        NotBoundableError::TooWide { column, most, .. } => (named(column), Fix::Events(*most)),
        NotBoundableError::Events { most, .. } => (Location::default(), Fix::Events(*most)),
        NotBoundableError::Sealed => {
            let reader = create.release_to.as_ref();
            let at = reader.map_or_else(Location::default, |word| word.at);
            (at, Fix::VerifiedIntegrity)
        }
        NotBoundableError::Picks => (Location::default(), Fix::NoMasks),
        NotBoundableError::Alone | NotBoundableError::Owners { .. } => {
            (Location::default(), Fix::VerifiedIntegrity)
        }
        NotBoundableError::Cells { .. }
        | NotBoundableError::Capacity { .. }
        | NotBoundableError::Rows => (item_at(create), Fix::VerifiedIntegrity),
    };
    Some(Finding { at, rule: RuleError::NotBoundable { reason }, fix: Some(fix) })
}

fn finding(word: &'static str, reason: NotVerifiableError) -> Finding {
    // By epochs a query can be verified, and not bounded.
    let fix = match reason {
        NotVerifiableError::Epochs => Fix::VerifiedIntegrity,
        _ => Fix::PlainIntegrity,
    };
    let (at, rule) = (Location::default(), RuleError::NotVerifiable { word, reason });
    Finding { at, rule, fix: Some(fix) }
}
