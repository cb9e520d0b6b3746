//! In a verified plan: the members' keys for pads, which M passes on.

use std::collections::BTreeMap;

use alpheus_crypto::signed::Signed;

use crate::announced_plan::AnnouncedPlan;
use crate::messages::{MaskKey, Presence};

/// The last valid key of each controller, whose signature need not be checked again.
#[derive(Default)]
pub(super) struct MaskKeys(BTreeMap<u32, Signed<MaskKey>>);

impl MaskKeys {
    /// Whether a presence has a key that its controller signed for the plan, or none if the plan
    /// is not verified.
    pub(super) fn fit(&mut self, announced: &AnnouncedPlan, presence: &Presence) -> bool {
        let wanted = announced.plan().integrity.is_verified();
        let Some(signed) = presence.mask_key.as_ref().filter(|_| wanted) else {
            return presence.mask_key.is_none() && !wanted;
        };
        let (controller, known) = (presence.controller, self.0.get(&presence.controller));
        if known == Some(signed) {
            return true;
        }
        let valid = announced.mask_key(controller, signed).is_some();
        if valid {
            self.0.insert(controller, signed.clone());
        }
        valid
    }
}
