//! What the members of a bounded plan prove: its terms for `bounded-influence`, and its windows there.
//! One owner's values are its [cells](crate::decode::cells) of the window.

use alpheus_bounded_influence::check::Checker;
use alpheus_bounded_influence::messages::Scope;
use alpheus_bounded_influence::terms::{Cell, Relation, Terms, TermsError};
use alpheus_crypto::hash::Digest;
use alpheus_policy::bounded_terms::{BoundedCell, BoundedRelation, NotBoundableError};
use alpheus_policy::ids::PlanId;
use alpheus_policy::layout::Layout;
use alpheus_policy::plan::Plan;
use alpheus_policy::schema::Schema;
use alpheus_time::Window;

use crate::counts::narrow;

/// Bytes of a bounded window's message without what it has for each owner or edge, at most.
const HEAD_BYTES: usize = 2 << 10;

/// Bytes for each owner: three commitments and a proof of 512 bits, at most. An edge has fewer.
const EACH_BYTES: usize = 1 << 10;

/// Bytes of a message with so many owners or edges, at most. Longer messages are not even read.
pub(crate) fn most_bytes(each: u32) -> usize {
    HEAD_BYTES
        .saturating_add(EACH_BYTES.saturating_mul(usize::try_from(each).unwrap_or(usize::MAX)))
}

/// Why there are no proofs of a plan's windows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoundedTermsError {
    /// A planner refuses such a plan, and so does every controller.
    #[error(transparent)]
    NotBoundable(#[from] NotBoundableError),
    /// The same, found where proofs are made.
    #[error(transparent)]
    Terms(#[from] TermsError),
}

/// The terms of a plan: from its streams, and from its schema and layout. None unless it is bounded.
///
/// # Errors
/// [`BoundedTermsError`].
pub fn terms_of(
    plan: &Plan,
    schema: &Schema,
    layout: &Layout,
) -> Result<Option<Terms>, BoundedTermsError> {
    let Some(terms) = plan.bounded_terms(schema, layout)? else { return Ok(None) };
    let cell = |cell: &BoundedCell| {
        let BoundedCell { lowest, highest, noise, .. } = *cell;
        Cell { lowest, highest, noise }
    };
    let relation = |relation: &BoundedRelation| {
        let BoundedRelation { count, sum, squares, lowest, highest } = *relation;
        Relation { count, sum, squares, lowest, highest }
    };
    let cells: Vec<Cell> = terms.cells.iter().map(cell).collect();
    let relations: Vec<Relation> = terms.relations.iter().map(relation).collect();
    let (owners, controllers) = (plan.owners_per_controller().iter().sum(), plan.roster.len());
    Ok(Some(Terms::new(&cells, &relations, owners, narrow(controllers))?))
}

/// What checks the windows of a plan. None unless it is bounded and this is its schema.
#[must_use]
pub fn checker_of(plan: &Plan, schema: &Schema) -> Option<Checker> {
    let layout = Layout::of(schema).ok().filter(|_| plan.schema == schema.id())?;
    terms_of(plan, schema, &layout).ok().flatten().map(Checker::new)
}

/// A window of a plan under its terms and a membership. Plans of epochs are not bounded.
#[must_use]
pub fn scope_of(plan: &PlanId, terms: &Terms, window: Window, membership: Digest) -> Scope {
    Scope {
        plan: Digest(plan.0),
        terms: terms.digest(),
        start: window.start.0,
        end: window.end.0,
        epoch: 0,
        cohort: 0,
        membership,
    }
}
