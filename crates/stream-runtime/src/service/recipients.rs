//! Addresses the outputs of coordinators, and informs controllers of ended plans.

use super::Service;
use crate::controller_host::ToController;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::coordinator::Output;
use alpheus_encrypted_stream::error::PlanRefusalError;
use alpheus_encrypted_stream::messages::{Retirement, ServiceMessage};
use alpheus_policy::ids::PlanId;

/// Maximum number of ended plans that a controller is informed of again, per refused plan.
const MAX_ENDED: usize = 64;

impl Service {
    /// Adds the receivers to the outputs of coordinators.
    pub(super) fn address(&mut self, outputs: Vec<(PlanId, Output)>) -> Vec<ToController> {
        let mut messages = Vec::new();
        for (id, output) in outputs {
            if let Output::Answered {
                controller,
                answer: Err(PlanRefusalError::Locked { plan, .. }),
            } = &output
            {
                messages.extend(self.unlock(id, *controller, *plan));
            }
            let Some(query) = self.queries.get_mut(&id) else { continue };
            let roster = &query.coordinator.plan().roster;
            match output {
                Output::Send { to, message } => {
                    messages.extend(
                        roster.get(to as usize).map(|controller| (*controller, id, message)),
                    );
                }
                Output::Broadcast(message) => {
                    messages
                        .extend(roster.iter().map(|controller| (*controller, id, message.clone())));
                }
                Output::Answered { controller, answer: Err(refused) } => {
                    query.refusals.extend(roster.get(controller as usize).map(|id| (*id, refused)));
                }
                Output::Answered { controller, answer: Ok(()) } => {
                    roster.get(controller as usize).map(|id| query.refusals.remove(id));
                }
                Output::Outcome(_) | Output::ToAdder(_) => {}
            }
        }
        messages
    }

    /// Handles a controller that locks a stream for a plan that no longer runs: it missed
    /// the plan's end, or was restored from before it. It is informed and asked again.
    fn unlock(&mut self, asked: PlanId, controller: u32, locking: PlanId) -> Vec<ToController> {
        if self.queries.contains_key(&locking) {
            return Vec::new();
        }
        let Some(query) = self.queries.get_mut(&asked) else { return Vec::new() };
        let Some(id) = query.coordinator.plan().roster.get(controller as usize).copied() else {
            return Vec::new();
        };
        let informed = query.ended.entry(id).or_default();
        if informed.len() >= MAX_ENDED || !informed.insert(locking) {
            return Vec::new();
        }
        let retirement = Signed::new(&Retirement { plan: locking }, &self.key);
        let announcement = query.coordinator.announcement();
        vec![(id, locking, ServiceMessage::Retirement(retirement)), (id, asked, announcement)]
    }
}
