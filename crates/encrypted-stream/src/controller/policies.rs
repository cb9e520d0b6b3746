//! Whether owners' choices allow a plan.

use alpheus_policy::comply::Demand;
use alpheus_policy::ids::ControllerId;
use alpheus_policy::time::{Timestamp, Window};

use super::budgets::Charges;
use super::held::Held;
use super::joined::Joined;
use crate::error::Exclusion;

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
                let demand = Demand::of(joined.plan(), &held.schema, &held.layout);
                let known = demand.and_then(|demand| demand.charges(&annotation.policy)).ok();
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

/// The other controller of a plan of two.
pub(super) fn only_other(joined: &Joined) -> Option<ControllerId> {
    let roster = &joined.plan().roster;
    let other = roster.get(usize::from(joined.position == 0))?;
    (roster.len() == 2).then_some(*other)
}
