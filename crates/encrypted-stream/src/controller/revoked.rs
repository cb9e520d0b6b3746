//! Certificates that the authority has revoked: of owners, consumers and other controllers.
//!
//! The list is no part of a ledger. Who hosts a controller gives it the list at each start,
//! before any message, and whenever it grows.

use std::collections::BTreeSet;
use std::sync::Arc;

use alpheus_crypto::hash::Digest;
use alpheus_policy::plan::Plan;

use super::Controller;
use crate::error::PlanRefusalError;

impl Controller {
    /// From now on nothing is released of streams whose owners' certificates are revoked, nor
    /// to consumers with such a certificate, and no plan is accepted that names one or has
    /// such a controller in its roster. A plan that runs keeps its roster: a controller that
    /// is no longer let in is absent.
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
}

fn names_consumer(plan: &Plan, revoked: &BTreeSet<Digest>) -> bool {
    plan.sealed_to.is_some_and(|consumer| revoked.contains(&Digest(consumer.0)))
}
