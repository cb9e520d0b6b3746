//! Whether a query's members are fixed with it, or for each window.

use std::collections::BTreeSet;

use super::error::RuleError;
use super::finding::{Finding, Fix};
use crate::catalog::Catalog;
use crate::ids::StreamId;
use crate::plan::Plan;
use crate::query::{Create, Location, MaskChoice, MembershipChoice};

/// When it is fixed who takes part.
pub(super) fn membership(create: &Create) -> MembershipChoice {
    create.settings.membership.unwrap_or(MembershipChoice::Fixed)
}

/// Over how many different sets of owners a day is summed at most, if all members bound it.
pub(super) fn sets_per_day(plans: &[Plan], catalog: &Catalog) -> Option<u32> {
    let attributes = plans.first().map_or(&[][..], |plan| &plan.attributes);
    let streams = plans.iter().flat_map(|plan| &plan.streams);
    let members: BTreeSet<StreamId> = streams.map(|planned| planned.stream).collect();
    let own = catalog.streams().filter(|own| members.contains(&own.stream));
    let bounds: Option<Vec<u32>> = own.map(|own| own.policy.sets_per_day(attributes)).collect();
    bounds?.into_iter().max()
}

/// Clauses that cannot be used by epochs.
pub(super) fn beside_epochs(create: &Create) -> Vec<Finding> {
    if create.settings.membership != Some(MembershipChoice::Epochs) {
        return Vec::new();
    }
    let finding = |(at, clause)| {
        let fix = Some(Fix::FixedMembership);
        Finding { at, rule: RuleError::NotByEpochs { clause }, fix }
    };
    unsupported(create).into_iter().map(finding).collect()
}

/// What a query says that only fixed members allow, and where.
fn unsupported(create: &Create) -> Vec<(Location, &'static str)> {
    let nowhere = Location::default();
    let settings = &create.settings;
    // Nobody but the service knows which streams a condition selects.
    let filter = create.filter.is_some().then_some((nowhere, "WHERE"));
    let sealed = create.release_to.as_ref().map(|word| (word.at, "RELEASE TO"));
    let totals = create.cumulating.map(|_| (create.places.window.0, "WINDOW CUMULATING"));
    let noise = settings.epsilon.map(|_| (nowhere, "noise"));
    let masks = match settings.masks {
        Some(MaskChoice::Epoch) => Some((nowhere, "masks = 'epoch'")),
        Some(MaskChoice::Neighbours) => Some((nowhere, "masks = 'neighbours'")),
        Some(MaskChoice::Clique | MaskChoice::Dream) | None => None,
    };
    [filter, sealed, totals, noise, masks].into_iter().flatten().collect()
}
