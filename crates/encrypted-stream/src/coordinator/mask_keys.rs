//! In a verified plan: the members' keys for pads, which M passes on.
//!
//! Every member checks every key, and refuses M for one bad key. So what is passed on here is
//! checked more strictly than they do: no honest member refuses it, and a controller with a key that they
//! would refuse is left out alone.

use std::collections::BTreeMap;

use alpheus_crypto::signed_message::Signed;
use alpheus_time::Timestamp;

use crate::announced_plan::AnnouncedPlan;
use crate::error::MessageError;
use crate::mask::generation::{MARGIN, is_fresh};
use crate::messages::{MaskKey, Presence};

/// The last valid key of each controller, whose signature need not be checked again.
#[derive(Default)]
pub(super) struct MaskKeys(BTreeMap<u32, (Signed<MaskKey>, Timestamp)>);

impl MaskKeys {
    /// Checks that a presence has a key that its controller signed for the plan, and that every honest
    /// member takes; or none if the plan is not verified.
    pub(super) fn check(
        &mut self,
        announced: &AnnouncedPlan,
        presence: &Presence,
        clock: Timestamp,
    ) -> Result<(), MessageError> {
        let wanted = announced.plan().integrity.is_verified();
        let Some(signed) = presence.mask_key.as_ref().filter(|_| wanted) else {
            let fits = presence.mask_key.is_none() && !wanted;
            return if fits { Ok(()) } else { Err(MessageError::Malformed) };
        };
        let controller = presence.controller;
        let known = self.0.get(&controller).filter(|(known, _)| known == signed);
        let begun = match known {
            Some((_, begun)) => *begun,
            None => {
                let key = announced.mask_key(controller, signed).ok_or(MessageError::Malformed)?;
                if key.key.has_small_order() {
                    return Err(MessageError::SmallOrderKey);
                }
                self.0.insert(controller, (signed.clone(), key.begun));
                key.begun
            }
        };
        // It ages while it is known.
        if is_fresh(begun, clock, MARGIN) { Ok(()) } else { Err(MessageError::KeyOutOfTime) }
    }
}
