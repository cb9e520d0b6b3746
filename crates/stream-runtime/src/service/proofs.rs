//! Proofs of bounded windows, checked by threads of their own: the service continues meanwhile.

use super::Service;
use super::proof_queue::{Check, ProofQueue};
use alpheus_crypto::ledger::Step;
use alpheus_encrypted_stream::coordinator::{CheckedProofs, Output, ProofCheck};
use alpheus_encrypted_stream::error::UncheckedProofsError;
use alpheus_policy::ids::PlanId;
use alpheus_time::Timestamp;

impl Check for ProofCheck {
    type Findings = CheckedProofs;

    fn proofs(&self) -> usize {
        ProofCheck::proofs(self)
    }

    fn is_wanted(&self) -> bool {
        ProofCheck::is_wanted(self)
    }

    fn run(self) -> CheckedProofs {
        ProofCheck::run(self)
    }

    fn unchecked(&self, why: UncheckedProofsError) -> CheckedProofs {
        ProofCheck::unchecked(self, why)
    }
}

impl Service {
    /// Has proofs checked by threads of their own, for a service that others wait for. Their findings are
    /// [due](Service::has_due) like windows. Call it before plans start.
    #[must_use]
    pub fn with_proofs_apart(self) -> Self {
        Self { proofs: Some(ProofQueue::start()), ..self }
    }

    /// Hands over what there is to check.
    pub(super) fn start_checks(&mut self) {
        let Some(proofs) = &self.proofs else { return };
        for (plan, query) in &mut self.queries {
            let checks = query.coordinator.take_checks();
            checks.into_iter().for_each(|check| proofs.add(*plan, check));
        }
    }

    /// Goes on with windows whose proofs were checked.
    pub(super) fn take_checked(&mut self, now: Timestamp) -> Vec<(PlanId, Step<Vec<Output>>)> {
        let now = self.counted(now);
        let found = self.proofs.as_ref().map(ProofQueue::take_found);
        let mut steps = Vec::new();
        for (plan, checked) in found.into_iter().flatten() {
            // The plan may have ended.
            let Some(query) = self.queries.get_mut(&plan) else { continue };
            steps.push((plan, query.coordinator.handle_checked(now, checked, &self.plane)));
        }
        steps
    }
}
