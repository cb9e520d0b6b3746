//! Whether owners' choices allow a plan.

use alpheus_policy::comply::check;
use alpheus_policy::ids::ControllerId;
use alpheus_policy::time::{Timestamp, Window};

use super::held::Held;
use super::joined::Joined;
use crate::error::Exclusion;

/// Whether a stream may be released for a window now: consent stands, and the
/// annotations in force throughout the window and now allow the plan.
pub(super) fn allow(
    joined: &mut Joined,
    position: u32,
    held: &Held,
    window: Window,
    now: Timestamp,
) -> Result<(), Exclusion> {
    if held.revoked {
        return Err(Exclusion::Revoked);
    }
    if held.is_suspended() {
        return Err(Exclusion::Unconfirmed);
    }
    let in_force = held.in_force(window, now).ok_or(Exclusion::Policy)?;
    for annotation in in_force {
        let known = joined.verdicts.get(&(position, annotation.version)).copied();
        let allowed = known.unwrap_or_else(|| {
            check(joined.plan(), &held.schema, &held.layout, &annotation.policy).is_ok()
        });
        joined.verdicts.insert((position, annotation.version), allowed);
        if !allowed {
            return Err(Exclusion::Policy);
        }
    }
    Ok(())
}

/// The other controller of a plan of two.
pub(super) fn only_other(joined: &Joined) -> Option<ControllerId> {
    let roster = &joined.plan().roster;
    let other = roster.get(usize::from(joined.position == 0))?;
    (roster.len() == 2).then_some(*other)
}
