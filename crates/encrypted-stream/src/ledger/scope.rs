//! Whose part of a store a key is in.

use alpheus_policy::ids::{ControllerId, PlanId};

/// The owner of a part of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One controller.
    Controller(ControllerId),
    /// All controllers of a host: plan announcements and memberships, which they share.
    Host,
    /// The service, for one plan.
    Service(PlanId),
}

impl Scope {
    /// The prefix of all its keys.
    #[must_use]
    pub fn prefix(&self) -> Vec<u8> {
        match self {
            Scope::Controller(id) => tagged(b'c', &id.0),
            Scope::Host => vec![b'h'],
            Scope::Service(plan) => tagged(b's', &plan.0),
        }
    }
}

fn tagged(tag: u8, bytes: &[u8]) -> Vec<u8> {
    std::iter::once(tag).chain(bytes.iter().copied()).collect()
}
