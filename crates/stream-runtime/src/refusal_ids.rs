//! Ids of the reasons for which a query is refused.

use alpheus_node::errors::ErrorId;
use alpheus_policy::planner::{ExclusionError, PlanningError, RuleError, ViolationError};

/// The id of a refusal: that of the first rule that a policy sets, else of the first mistake.
#[must_use]
pub fn of_refusal(refusal: &PlanningError) -> ErrorId {
    of_violations(refusal.violations.iter())
}

/// The id of some of a refusal's violations.
#[must_use]
pub fn of_violations<'a>(violations: impl Iterator<Item = &'a ViolationError> + Clone) -> ErrorId {
    let mut rules = violations.map(|violation| &violation.rule);
    let policy = rules.clone().find(|rule| matches!(rule, RuleError::Excluded { .. }));
    policy.or_else(|| rules.next()).map_or(ErrorId::PolicyForbids, of_rule)
}

fn of_rule(rule: &RuleError) -> ErrorId {
    match rule {
        RuleError::UnknownSchema { .. }
        | RuleError::UnknownAttribute { .. }
        | RuleError::UnknownMetadata { .. }
        | RuleError::UnknownSymbol { .. } => ErrorId::QueryUnknownName,
        RuleError::IsMetadata { .. }
        | RuleError::IsData { .. }
        | RuleError::NotOffered { .. }
        | RuleError::NoEventCount { .. }
        | RuleError::NoAttribute
        | RuleError::NotAnItem { .. } => ErrorId::QueryNotOffered,
        RuleError::NotOnGrid { .. } | RuleError::TooFine { .. } | RuleError::TooLarge { .. } => {
            ErrorId::QueryBins
        }
        RuleError::OffTick { .. } => ErrorId::QueryWindow,
        RuleError::NoReader { .. } => ErrorId::QueryReader,
        RuleError::NoEpsilon
        | RuleError::NotOfTotals { .. }
        | RuleError::NotWithNoise { .. }
        | RuleError::Noise { .. } => ErrorId::QueryNoise,
        RuleError::BeyondCapacity { .. } => ErrorId::QueryTooLarge,
        RuleError::NameTaken { .. } => ErrorId::QueryNameTaken,
        RuleError::NoStreams { .. } => ErrorId::QueryNoStreams,
        RuleError::Excluded { exclusion, .. } => of_exclusion(exclusion),
        RuleError::NoMasks { .. } => ErrorId::MasksUnsafe,
        _ => ErrorId::PolicyForbids,
    }
}

fn of_exclusion(exclusion: &ExclusionError) -> ErrorId {
    match exclusion {
        ExclusionError::Private { .. } => ErrorId::PolicyForbidsPrivate,
        ExclusionError::NeedsNoise { .. } => ErrorId::PolicyRequiresNoise,
        ExclusionError::Epsilon { .. } | ExclusionError::NoDelta { .. } => {
            ErrorId::PolicyForbidsEpsilon
        }
        ExclusionError::Window { .. } => ErrorId::PolicyForbidsWindow,
        ExclusionError::Consumer { .. } => ErrorId::PolicyForbidsConsumer,
        ExclusionError::Finer { .. } => ErrorId::PolicyForbidsPrecision,
        ExclusionError::Locked { .. } => ErrorId::PolicyReleasedOnce,
        ExclusionError::SplitOwner
        | ExclusionError::TooFew { .. }
        | ExclusionError::Brittle { .. } => ErrorId::PolicyForbidsPopulation,
        ExclusionError::MaximumTooLow { .. } | ExclusionError::BeyondMaximum { .. } => {
            ErrorId::PolicyForbidsMaximum
        }
        ExclusionError::BeyondCapacity { .. } => ErrorId::QueryTooLarge,
        ExclusionError::OtherVersion | ExclusionError::NoValue { .. } => ErrorId::QueryNoStreams,
        _ => ErrorId::PolicyForbids,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With the policies of today the population is refused first.
    #[test]
    fn masks_that_are_not_safe_have_their_own_id() {
        let unsafe_masks = RuleError::NoMasks { controllers: 3, tolerated: 3 };
        assert_eq!(of_rule(&unsafe_masks).id(), "masks-unsafe");
    }
}
