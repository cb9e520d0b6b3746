//! Proofs of bounded windows, checked by a thread of their own: the service goes on meanwhile.

use super::Service;
use alpheus_crypto::ledger::Step;
use alpheus_encrypted_stream::coordinator::{CheckedProofs, Output, ProofCheck};
use alpheus_policy::ids::PlanId;
use alpheus_time::Timestamp;
use std::sync::mpsc::{SendError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Found = Vec<(PlanId, CheckedProofs)>;

/// The thread, and what it has found. It ends with this.
pub(super) struct ProofThread {
    to_check: Sender<(PlanId, ProofCheck)>,
    found: Arc<Mutex<Found>>,
}

impl ProofThread {
    fn start() -> Self {
        let (to_check, checks) = channel::<(PlanId, ProofCheck)>();
        let found = Arc::<Mutex<Found>>::default();
        let into = Arc::clone(&found);
        let started = std::thread::Builder::new().name("proofs".into()).spawn(move || {
            for (plan, check) in checks {
                let one = (plan, check.run());
                into.lock().unwrap_or_else(PoisonError::into_inner).push(one);
            }
        });
        if let Err(error) = started {
            tracing::warn!(%error, "no thread for proofs; they are checked between other work");
        }
        Self { to_check, found }
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, plan: PlanId, check: ProofCheck) {
        // Without the thread, windows are still checked.
        if let Err(SendError((plan, check))) = self.to_check.send((plan, check)) {
            let one = (plan, check.run());
            self.found().push(one);
        }
    }

    /// Whether it has found anything.
    pub(super) fn has_found(&self) -> bool {
        !self.found().is_empty()
    }
}

impl Service {
    /// Has proofs checked by a thread of their own, for a service that others wait for. What it finds
    /// is [due](Service::has_due) like windows. Call it before plans start.
    #[must_use]
    pub fn with_proofs_apart(self) -> Self {
        Self { proofs: Some(ProofThread::start()), ..self }
    }

    /// Hands over what there is to check.
    pub(super) fn start_checks(&mut self) {
        let Some(proofs) = &self.proofs else { return };
        for (plan, query) in &mut self.queries {
            let checks = query.coordinator.take_checks();
            checks.into_iter().for_each(|check| proofs.check(*plan, check));
        }
    }

    /// Goes on with windows whose proofs were checked.
    pub(super) fn take_checked(&mut self, now: Timestamp) -> Vec<(PlanId, Step<Vec<Output>>)> {
        let now = self.counted(now);
        let found = self.proofs.as_ref().map(|proofs| std::mem::take(&mut *proofs.found()));
        let mut steps = Vec::new();
        for (plan, checked) in found.into_iter().flatten() {
            // The plan may have ended.
            let Some(query) = self.queries.get_mut(&plan) else { continue };
            steps.push((plan, query.coordinator.handle_checked(now, checked, &self.plane)));
        }
        steps
    }
}
