//! Who gets what coordinators give out, and plans that controllers did not hear the end of.

use super::Service;
use crate::runtime::hosts::ToController;
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::coordinator::Output;
use alpheus_encrypted_stream::error::PlanRefused;
use alpheus_encrypted_stream::messages::{Retirement, ServiceMessage};
use alpheus_policy::ids::PlanId;

/// Of so many ended plans a controller is told again for one that it refuses.
const MOST_ENDED: usize = 64;

impl Service {
    /// Names the receivers of what coordinators give out.
    pub(super) fn address(&mut self, outputs: Vec<(PlanId, Output)>) -> Vec<ToController> {
        let mut messages = Vec::new();
        for (id, output) in outputs {
            if let Output::Answered { controller, answer: Err(PlanRefused::Locked { plan, .. }) } =
                &output
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
                Output::Outcome(_) | Output::ForSums(_) => {}
            }
        }
        messages
    }

    /// A controller gives a stream to a plan that does not run any more: it has
    /// missed the end, or was restored from before it. It is told of that, and
    /// asked again.
    fn unlock(&mut self, asked: PlanId, controller: u32, locking: PlanId) -> Vec<ToController> {
        if self.queries.contains_key(&locking) {
            return Vec::new();
        }
        let Some(query) = self.queries.get_mut(&asked) else { return Vec::new() };
        let Some(id) = query.coordinator.plan().roster.get(controller as usize).copied() else {
            return Vec::new();
        };
        let told = query.ended.entry(id).or_default();
        if told.len() >= MOST_ENDED || !told.insert(locking) {
            return Vec::new();
        }
        let retirement = Signed::new(&Retirement { plan: locking }, &self.key);
        let announcement = query.coordinator.announcement();
        vec![
            (id, locking, ServiceMessage::Retirement(retirement)),
            (id, asked, ServiceMessage::Announcement(announcement)),
        ]
    }
}
