//! Certificates that the authority has revoked: of owners, consumers and other controllers.
//!
//! The list is no part of a ledger. The host of a controller gives it the list at each start,
//! before any message, and whenever it grows.

use std::collections::BTreeSet;
use std::sync::Arc;

use alpheus_crypto::hash::Digest;
use alpheus_policy::plan::Plan;

use super::Controller;
use super::plan_state::PlanState;
use crate::error::{PlanRefusalError, WindowRefusalError};
use crate::mask::set::RosterSet;

impl Controller {
    /// From now on nothing is released of streams whose owners' certificates are revoked, nor
    /// to consumers with such a certificate, and no plan is accepted that names one or has
    /// such a controller in its roster. A plan that runs keeps its roster: a controller that
    /// is no longer let in is absent, and in a verified plan others give nothing with it.
    pub fn note_revocations(&mut self, revoked: &Arc<BTreeSet<Digest>>) {
        self.revoked = Arc::clone(revoked);
        self.streams.values_mut().for_each(|state| state.note_revoked(revoked));
        for joined in self.plans.values_mut() {
            joined.is_barred = names_consumer(joined.plan(), revoked);
        }
    }

    /// Checks the parties of a plan.
    pub(super) fn check_parties(&self, plan: &Plan) -> Result<(), PlanRefusalError> {
        let is_out = |id: &[u8; 32]| self.revoked.contains(&Digest(*id));
        if let Some(position) = plan.roster.iter().position(|controller| is_out(&controller.0)) {
            let position = u32::try_from(position).unwrap_or(u32::MAX);
            return Err(PlanRefusalError::RevokedController { position });
        }
        if names_consumer(plan, &self.revoked) {
            return Err(PlanRefusalError::RevokedConsumer);
        }
        Ok(())
    }

    /// In a verified plan: that nobody in a set has a revoked certificate. Anyone who has its key
    /// could sign what the row says.
    pub(super) fn check_members(
        &self,
        joined: &PlanState,
        set: &RosterSet,
    ) -> Result<(), WindowRefusalError> {
        let roster = &joined.plan().roster;
        let is_out = |position: &u32| {
            let id = roster.get(*position as usize);
            id.is_some_and(|id| self.revoked.contains(&Digest(id.0)))
        };
        match set.iter().find(is_out).filter(|_| joined.is_verified()) {
            Some(position) => Err(WindowRefusalError::RevokedMember { position }),
            None => Ok(()),
        }
    }
}

fn names_consumer(plan: &Plan, revoked: &BTreeSet<Digest>) -> bool {
    plan.sealed_to.is_some_and(|consumer| revoked.contains(&Digest(consumer.0)))
}
