//! Whether a plan is what a statement asks for. A service makes the plan, so a consumer who does not
//! take its word compares the plan with the statement.

use super::epochs::membership;
use super::filter::selection;
use super::integrity::integrity;
use super::resolve::resolve;
use crate::layout::Layout;
use crate::plan::Plan;
use crate::query::{Create, MembershipChoice};
use crate::schema::Schema;

/// In what a plan differs from the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OtherMeaningError {
    /// The plan is of another schema.
    #[error("its schema and yours")]
    Schema,
    /// Its columns have other names, or are computed from other sums.
    #[error("its columns")]
    Columns,
    /// Its windows have another length or grace period, or are not running totals, or are.
    #[error("its windows")]
    Window,
    /// It is of other streams: its `WHERE` or `GROUP BY` differs.
    #[error("its streams")]
    Streams,
    /// Its results are sealed to somebody else, or are not sealed.
    #[error("its readers")]
    Reader,
    /// It opens for fewer or more owners than the statement allows.
    #[error("its bounds of the population")]
    Population,
    /// Its members are fixed, or the service lists them for each window.
    #[error("its members: fixed, or listed for each window")]
    Membership,
    /// Others decide what its rows say.
    #[error("those who decide what its rows say")]
    Integrity,
    /// It has noise, or has none.
    #[error("its noise and yours")]
    Noise,
}

/// Checks that a plan is what a statement asks for under this schema: the same columns, computed from
/// the same sums of the same streams and windows.
///
/// How much noise there is, and how many may collude, also follows from policies. So it is not
/// compared.
///
/// # Errors
/// The first difference.
pub fn check_meaning(
    create: &Create,
    schema: &Schema,
    plan: &Plan,
) -> Result<(), OtherMeaningError> {
    let same = |holds: bool, other| if holds { Ok(()) } else { Err(other) };
    let layout = Layout::of(schema).map_err(|_| OtherMeaningError::Schema)?;
    same(plan.schema == schema.id() && schema.name == create.from.text, OtherMeaningError::Schema)?;
    let (resolved, findings) = resolve(&create.items, schema, &layout);
    let columns = findings.is_empty()
        && plan.release == resolved.release
        && plan.select == resolved.select
        && plan.attributes == resolved.attributes;
    same(columns, OtherMeaningError::Columns)?;
    let windows = plan.window == create.window
        && create.grace.is_none_or(|grace| grace == plan.grace)
        && plan.horizon().is_some() == create.cumulating.is_some();
    same(windows, OtherMeaningError::Window)?;
    let selected = create.filter.as_ref().map(selection).unwrap_or_default();
    let groups = create.group_by.iter().map(|word| &word.text);
    let streams = plan.group.iter().map(|(name, _)| name).eq(groups)
        && (!plan.integrity.is_verified() || plan.selection == selected);
    same(streams, OtherMeaningError::Streams)?;
    let reader = match &create.release_to {
        Some(word) => plan.sealed_to.is_some() && plan.consumer == word.text,
        None => plan.sealed_to.is_none(),
    };
    same(reader, OtherMeaningError::Reader)?;
    let (least, most) = create.population.unwrap_or((0, u32::MAX));
    let population = plan.population.min >= least && plan.population.max <= most;
    same(population, OtherMeaningError::Population)?;
    let by_epochs = membership(create) == MembershipChoice::Epochs;
    let listed = plan.epoch.is_some() || plan.is_terms();
    same(by_epochs == listed, OtherMeaningError::Membership)?;
    same(plan.integrity == integrity(create, schema), OtherMeaningError::Integrity)?;
    let noise = create.settings.epsilon.is_none() || plan.privacy.is_some();
    same(noise, OtherMeaningError::Noise)
}
