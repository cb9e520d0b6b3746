//! Whether owners' choices allow a plan.

use alpheus_policy::comply::Demand;
use alpheus_policy::ids::ControllerId;
use alpheus_policy::policy::ResolvedPolicy;
use alpheus_policy::time::{Timestamp, Window};

use super::budgets::Charges;
use super::held::Held;
use super::joined::Joined;
use crate::error::Exclusion;

/// Different policies of a plan whose verdicts are kept.
const POLICIES_KEPT: usize = 64;

/// Whether a stream may be released for a window now: consent stands, and the
/// annotations in force throughout the window and now allow the plan. Says what
/// it is charged.
pub(super) fn allow(
    joined: &mut Joined,
    position: u32,
    held: &Held,
    window: Window,
    now: Timestamp,
) -> Result<Charges, Exclusion> {
    if held.revoked {
        return Err(Exclusion::Revoked);
    }
    if held.is_suspended() {
        return Err(Exclusion::Unconfirmed);
    }
    let in_force = held.in_force(window, now).ok_or(Exclusion::Policy)?;
    let mut charges = Charges::new();
    for annotation in in_force {
        let at = (position, annotation.version);
        let known = match joined.verdicts.get(&at) {
            Some(known) => known.clone(),
            None => {
                let known = judge(joined, held, &annotation.policy);
                joined.verdicts.insert(at, known.clone());
                known
            }
        };
        // Of several policies in force every budget must hold it.
        for charge in known.ok_or(Exclusion::Policy)? {
            if !charges.contains(&charge) {
                charges.push(charge);
            }
        }
    }
    Ok(charges)
}

/// What a policy says to the plan; none: it does not allow it.
fn judge(joined: &mut Joined, held: &Held, policy: &ResolvedPolicy) -> Option<Charges> {
    if let Some((_, known)) = joined.judged.iter().find(|(known, _)| known == policy) {
        return known.clone();
    }
    let demand = Demand::of(joined.plan(), &held.schema, &held.layout);
    let verdict = demand.and_then(|demand| demand.charges(policy)).ok();
    if joined.judged.len() < POLICIES_KEPT {
        joined.judged.push((policy.clone(), verdict.clone()));
    }
    verdict
}

/// The other controller of a plan of two.
pub(super) fn only_other(joined: &Joined) -> Option<ControllerId> {
    let roster = &joined.plan().roster;
    let other = roster.get(usize::from(joined.position == 0))?;
    (roster.len() == 2).then_some(*other)
}
