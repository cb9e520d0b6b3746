//! Whether the owners' policies allow a plan.

use alpheus_policy::comply::Demand;
use alpheus_policy::ids::ControllerId;
use alpheus_policy::policy::ResolvedPolicy;
use alpheus_time::{Timestamp, Window};
use std::collections::HashMap;

use super::budgets::Charges;
use super::plan_state::PlanState;
use super::stream_state::StreamState;
use crate::error::ExclusionError;

/// Maximum number of policies of a plan whose verdicts are kept.
const POLICIES_KEPT: usize = 64;
/// Verdicts that are kept for each of a plan's streams, on average: usually one choice is in force, and
/// owners keep making new ones.
const VERDICTS_PER_STREAM: usize = 4;
/// The same for a plan of few streams.
const VERDICTS_KEPT: usize = 1024;

/// Whether a stream, by position, allows a plan under a version of its annotation, and what a window
/// is charged then. A forgotten answer is computed again.
#[derive(Default)]
pub(super) struct Verdicts(HashMap<(u32, u32), Option<Charges>>);

impl Verdicts {
    fn get(&self, at: &(u32, u32)) -> Option<&Option<Charges>> {
        self.0.get(at)
    }

    /// Keeps one of a plan with so many streams. If there are far more than choices in force, the
    /// others are forgotten.
    fn keep(&mut self, at: (u32, u32), verdict: Option<Charges>, streams: usize) {
        if self.0.len() >= VERDICTS_KEPT.max(streams.saturating_mul(VERDICTS_PER_STREAM)) {
            self.0.clear();
        }
        self.0.insert(at, verdict);
    }
}

/// Checks that a stream may be released for a window now: consent is in force, and the
/// annotations in force during the window and now allow the plan. Returns what the stream
/// is charged.
pub(super) fn allow(
    joined: &mut PlanState,
    position: u32,
    state: &StreamState,
    window: Window,
    now: Timestamp,
) -> Result<Charges, ExclusionError> {
    if state.revoked.is_some() {
        return Err(ExclusionError::Revoked);
    }
    if !state.is_here(window) {
        return Err(ExclusionError::Moved);
    }
    if state.is_barred || joined.is_barred {
        return Err(ExclusionError::CertificateRevoked);
    }
    if state.is_suspended() {
        return Err(ExclusionError::Unconfirmed);
    }
    if !state.copies.is_without_any_in(window) {
        return Err(ExclusionError::Cloned);
    }
    let in_force = state.in_force(window, now).ok_or(ExclusionError::Policy)?;
    let mut charges = Charges::new();
    for annotation in in_force {
        let at = (position, annotation.version);
        let known = match joined.verdicts.get(&at) {
            Some(known) => known.clone(),
            None => {
                let known = judge(joined, state, &annotation.policy);
                joined.verdicts.keep(at, known.clone(), joined.announced.plan().streams.len());
                known
            }
        };
        // With several policies in force, every budget must cover it.
        for charge in known.ok_or(ExclusionError::Policy)? {
            if !charges.contains(&charge) {
                charges.push(charge);
            }
        }
    }
    Ok(charges)
}

/// What a policy charges for the plan; `None` if the policy does not allow it.
fn judge(joined: &mut PlanState, state: &StreamState, policy: &ResolvedPolicy) -> Option<Charges> {
    if let Some((_, known)) = joined.verdicts_by_policy.iter().find(|(known, _)| known == policy) {
        return known.clone();
    }
    let demand = Demand::of(joined.plan(), &state.schema, &state.layout);
    let verdict = demand.and_then(|demand| demand.charges(policy)).ok();
    if joined.verdicts_by_policy.len() < POLICIES_KEPT {
        joined.verdicts_by_policy.push((policy.clone(), verdict.clone()));
    }
    verdict
}

/// The other controller of a plan of two.
pub(super) fn only_other(joined: &PlanState) -> Option<ControllerId> {
    let roster = &joined.plan().roster;
    let other = roster.get(usize::from(joined.position == 0))?;
    (roster.len() == 2).then_some(*other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_do_not_grow_with_the_choices_of_owners() {
        let mut verdicts = Verdicts::default();
        for version in 0..20_000 {
            verdicts.keep((version % 3, version), None, 3);
            assert_eq!(verdicts.get(&(version % 3, version)), Some(&None));
            assert!(verdicts.0.len() <= VERDICTS_KEPT, "{}", verdicts.0.len());
        }
        // Those in force stay in a plan of many streams.
        let mut verdicts = Verdicts::default();
        (0..2_000).for_each(|stream| verdicts.keep((stream, 1), None, 2_000));
        assert!((0..2_000).all(|stream| verdicts.get(&(stream, 1)).is_some()));
    }
}
